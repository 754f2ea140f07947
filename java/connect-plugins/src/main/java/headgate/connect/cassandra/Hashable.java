package headgate.connect.cassandra;

import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.ListType;
import com.datastax.oss.driver.api.core.type.MapType;
import com.datastax.oss.driver.api.core.type.SetType;
import headgate.connect.hash.LogicalType;
import headgate.connect.hash.LogicalType.Kind;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Which logical types a column of Cassandra may be hashed as: the table of docs/hash_contract.md.
 *
 * <p>Only those for which every reader of the table, this one and the hasher, gives equal bytes;
 * for others a verdict would depend on who read the row.
 */
public final class Hashable {
  private static final Set<Kind> WHOLE = EnumSet.of(Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE);
  private static final Map<DataType, Set<Kind>> SIMPLE = simple();

  private Hashable() {}

  private static Map<DataType, Set<Kind>> simple() {
    Map<DataType, Set<Kind>> found = new HashMap<>();
    for (DataType text : List.of(DataTypes.TEXT, DataTypes.ASCII)) {
      found.put(text, EnumSet.of(Kind.STRING, Kind.UUID));
    }
    for (DataType whole : List.of(DataTypes.TINYINT, DataTypes.SMALLINT, DataTypes.INT,
        DataTypes.BIGINT, DataTypes.VARINT, DataTypes.COUNTER)) {
      found.put(whole, WHOLE);
    }
    found.put(DataTypes.BOOLEAN, EnumSet.of(Kind.BOOLEAN));
    found.put(DataTypes.DECIMAL, EnumSet.of(Kind.DECIMAL));
    found.put(DataTypes.FLOAT, EnumSet.of(Kind.DOUBLE));
    found.put(DataTypes.DOUBLE, EnumSet.of(Kind.DOUBLE));
    found.put(DataTypes.TIMESTAMP, EnumSet.of(Kind.TIMESTAMP));
    found.put(DataTypes.DATE, EnumSet.of(Kind.DATE));
    found.put(DataTypes.UUID, EnumSet.of(Kind.UUID));
    found.put(DataTypes.TIMEUUID, EnumSet.of(Kind.UUID));
    found.put(DataTypes.BLOB, EnumSet.of(Kind.BINARY));
    return Map.copyOf(found);
  }

  public static boolean fits(DataType column, LogicalType type) {
    if (!kinds(column).contains(type.kind())) {
      return false;
    }
    if (column instanceof ListType list) {
      return fits(list.getElementType(), type.of().get(0));
    }
    if (column instanceof SetType set) {
      return fits(set.getElementType(), type.of().get(0));
    }
    return !(column instanceof MapType map)
        || fits(map.getKeyType(), type.of().get(0)) && fits(map.getValueType(), type.of().get(1));
  }

  /** The same for the key, which stands in the record as text whatever it is. */
  public static boolean keyFits(DataType column, LogicalType type) {
    return !WHOLE.equals(kinds(column)) && !column.equals(DataTypes.BOOLEAN) && fits(column, type);
  }

  private static Set<Kind> kinds(DataType column) {
    if (column instanceof ListType) {
      return EnumSet.of(Kind.LIST, Kind.SET);
    }
    if (column instanceof SetType) {
      return EnumSet.of(Kind.SET);
    }
    if (column instanceof MapType) {
      return EnumSet.of(Kind.MAP);
    }
    return SIMPLE.getOrDefault(column, Set.of());
  }

  /** For a person: what this column may be hashed as. */
  public static String allowed(DataType column) {
    Set<Kind> kinds = kinds(column);
    return kinds.isEmpty()
        ? "it cannot be hashed at all"
        : kinds.stream()
            .map(kind -> kind.name().toLowerCase(Locale.ROOT))
            .sorted()
            .collect(Collectors.joining(", ", "it may be hashed as ", ""));
  }
}
