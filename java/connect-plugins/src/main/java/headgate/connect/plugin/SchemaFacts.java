package headgate.connect.plugin;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;

/** What a record's schema says about the table it comes from, in its parameters. */
public final class SchemaFacts {
  /** Columns that the table has lost; the record has them as null. */
  public static final String REMOVED = "headgate.removed";
  /** Columns that the table has got since it was first read. */
  public static final String ADDED = "headgate.added";

  private SchemaFacts() {}

  public static void tell(SchemaBuilder builder, String fact, Set<String> columns) {
    if (!columns.isEmpty()) {
      builder.parameter(fact, String.join(",", columns));
    }
  }

  public static Set<String> told(Schema schema, String fact) {
    String columns = schema.parameters() == null ? null : schema.parameters().get(fact);
    return columns == null ? Set.of() : new TreeSet<>(List.of(columns.split(",")));
  }
}
