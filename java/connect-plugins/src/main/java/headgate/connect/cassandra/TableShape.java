package headgate.connect.cassandra;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.metadata.schema.ColumnMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import headgate.connect.plugin.SchemaFacts;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/**
 * The table as it is now, against the columns that are wanted and those that were ever seen.
 *
 * <p>A wanted column that the table once had and has lost stays in the record as null, and the record's schema
 * names it in {@link SchemaFacts#REMOVED}; so a transformation can tell a dropped column from a broken record.
 */
public final class TableShape {
  private final TableMetadata table;
  private final PollSettings settings;
  private final Map<String, Cells.Cell> cells = new LinkedHashMap<>();
  private final Set<String> known;
  private final Set<String> added = new TreeSet<>();
  private final Set<String> removed = new TreeSet<>();
  private final Schema schema;

  /** {@code remembered} are the columns that earlier scans saw; none at the very first. */
  public TableShape(TableMetadata table, PollSettings settings, Collection<String> remembered) {
    this.table = table;
    this.settings = settings;
    Set<String> present = names(table);
    TableFit.check(table, settings, remembered);
    known = new TreeSet<>(remembered);
    known.addAll(present);
    if (!remembered.isEmpty()) {
      added.addAll(present);
      added.removeAll(remembered);
    }
    removed.addAll(settings.columns().isEmpty() ? known : settings.columns());
    removed.removeAll(present);
    schema = schema();
  }

  private static Set<String> names(TableMetadata table) {
    return table.getColumns().keySet().stream()
        .map(CqlIdentifier::asInternal)
        .collect(Collectors.toCollection(TreeSet::new));
  }

  private Schema schema() {
    SchemaBuilder builder = SchemaBuilder.struct().name(settings.tableName());
    for (ColumnMetadata column : table.getColumns().values()) {
      String name = column.getName().asInternal();
      if (wanted(name)) {
        boolean key = name.equals(settings.pkColumn());
        cells.put(name, key ? Cells.key(column.getType()) : Cells.of(column.getType()));
        builder.field(name, key ? Schema.STRING_SCHEMA : cells.get(name).schema());
      }
    }
    removed.forEach(name -> builder.field(name, Schema.OPTIONAL_STRING_SCHEMA));
    SchemaFacts.tell(builder, SchemaFacts.REMOVED, removed);
    SchemaFacts.tell(builder, SchemaFacts.ADDED, added);
    return builder.build();
  }

  private boolean wanted(String name) {
    return settings.columns().isEmpty()
        || settings.columns().contains(name)
        || name.equals(settings.pkColumn())
        || name.equals(settings.timeColumn());
  }

  /** Every column that was ever seen. */
  public Set<String> known() {
    return known;
  }

  public Set<String> added() {
    return added;
  }

  public Set<String> removed() {
    return removed;
  }

  public Schema valueSchema() {
    return schema;
  }

  /** Whether the driver still describes the table as it did when this shape was taken. */
  public boolean is(TableMetadata now) {
    return table.getColumns().equals(now.getColumns());
  }

  /**
   * One scan of a token range. Cassandra filters by time after reading the range, which is what
   * ALLOW FILTERING permits; an index on a time column would serve this no better.
   */
  public String query() {
    String columns =
        queried().stream().map(name -> id(name)).collect(Collectors.joining(", "));
    String token =
        table.getPartitionKey().stream()
            .map(column -> column.getName().asCql(true))
            .collect(Collectors.joining(", ", "token(", ")"));
    return "SELECT " + columns + " FROM " + id(settings.keyspace()) + "." + id(settings.table())
        + " WHERE " + token + " > ? AND " + token + " <= ?"
        + " AND " + id(settings.timeColumn()) + " >= ? ALLOW FILTERING";
  }

  private Set<String> queried() {
    Set<String> names = new LinkedHashSet<>(cells.keySet());
    table.getPrimaryKey().forEach(column -> names.add(column.getName().asInternal()));
    return names;
  }

  private static String id(String name) {
    return CqlIdentifier.fromInternal(name).asCql(true);
  }

  /** A row as a Connect value. */
  public Struct value(Row row) {
    Struct struct = new Struct(schema);
    cells.forEach((name, cell) -> struct.put(name, cell.of(row.getObject(id(name)))));
    return struct;
  }

  /** What tells this row from every other of the table. */
  public List<Object> primaryKey(Row row) {
    List<Object> values = new ArrayList<>();
    table.getPrimaryKey().forEach(column -> values.add(row.getObject(column.getName())));
    return values;
  }

  public long version(Row row) {
    Instant time = row.getInstant(id(settings.timeColumn()));
    return time == null ? Long.MIN_VALUE : time.toEpochMilli();
  }
}
