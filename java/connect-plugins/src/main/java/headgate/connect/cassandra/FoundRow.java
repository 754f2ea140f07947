package headgate.connect.cassandra;

import java.util.List;
import java.util.function.Supplier;
import org.apache.kafka.connect.data.Struct;

/**
 * A row as a scan finds it.
 *
 * @param key what tells it from every other row of the table
 * @param version when it was last changed, in milliseconds
 * @param value made only for rows that are sent
 */
public record FoundRow(List<Object> key, long version, Supplier<Struct> value) {}
