package headgate.connect.cassandra;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.metadata.schema.ColumnMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.DataTypes;
import headgate.connect.hash.HashField;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Whether a table can be read and hashed as the settings ask; what cannot is refused in words.
 *
 * <p>Each of these would otherwise be a wrong key or a wrong hash on every row, and so a false
 * verdict, without an error anywhere.
 */
final class TableFit {
  /** The types whose text is the same for every reader of the table. */
  private static final Set<DataType> KEYS =
      Set.of(
          DataTypes.TEXT, DataTypes.ASCII, DataTypes.BOOLEAN,
          DataTypes.TINYINT, DataTypes.SMALLINT, DataTypes.INT, DataTypes.BIGINT, DataTypes.VARINT,
          DataTypes.UUID, DataTypes.TIMEUUID);

  private final PollSettings settings;
  private final Map<String, DataType> types = new TreeMap<>();

  private TableFit(TableMetadata table, PollSettings settings) {
    this.settings = settings;
    table.getColumns().forEach((name, column) -> types.put(name.asInternal(), column.getType()));
  }

  /** {@code remembered} are columns that the table once had: it may lack those. */
  static void check(TableMetadata table, PollSettings settings, Collection<String> remembered) {
    TableFit fit = new TableFit(table, settings);
    fit.need(settings.pkColumn());
    fit.need(settings.timeColumn());
    fit.checkKey(table.getPrimaryKey());
    fit.checkTime();
    fit.checkNames(remembered);
    settings.hashed().forEach(fit::checkType);
  }

  private void need(String column) {
    if (!types.containsKey(column)) {
      String nearest = Nearest.to(column, types.keySet());
      String hint = nearest == null ? "" : "; is " + nearest + " meant?";
      throw refused("it has no column " + column + hint + " It has " + String.join(", ", types.keySet()));
    }
  }

  private void checkKey(List<ColumnMetadata> primaryKey) {
    List<String> names =
        primaryKey.stream().map(ColumnMetadata::getName).map(CqlIdentifier::asInternal).toList();
    String pk = settings.pkColumn();
    if (!names.equals(List.of(pk))) {
      throw refused(
          "its primary key is (" + String.join(", ", names) + ") and not " + pk
              + " alone, so that different rows would have one key; use the hasher for it");
    }
    if (!KEYS.contains(types.get(pk))) {
      throw refused(
          "its key " + pk + " is " + cql(pk) + "; a key can be text, ascii, an integer, a uuid, a"
              + " timeuuid or a boolean");
    }
  }

  private void checkTime() {
    String time = settings.timeColumn();
    if (!types.get(time).equals(DataTypes.TIMESTAMP)) {
      throw refused("its column " + time + " is " + cql(time) + " and no timestamp");
    }
  }

  private void checkNames(Collection<String> remembered) {
    Set<String> wanted = new LinkedHashSet<>(settings.columns());
    settings.hashed().stream().map(HashField::name).forEach(wanted::add);
    wanted.removeAll(remembered);
    wanted.forEach(this::need);
  }

  private void checkType(HashField field) {
    DataType type = types.get(field.name());
    boolean key = field.name().equals(settings.pkColumn());
    if (type == null || (key ? Hashable.keyFits(type, field.type()) : Hashable.fits(type, field.type()))) {
      return;
    }
    String words = key ? "the key is text in the record" : Hashable.allowed(type);
    throw refused(
        "its column " + field.name() + " is " + cql(field.name()) + " and cannot be hashed as "
            + field.type().words() + ": " + words);
  }

  private String cql(String column) {
    return types.get(column).asCql(true, true);
  }

  private ConnectException refused(String why) {
    return new ConnectException(settings.tableName() + " cannot be polled: " + why);
  }
}
