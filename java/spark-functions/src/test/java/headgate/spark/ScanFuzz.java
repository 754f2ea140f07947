package headgate.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Compares the fast way with the slow one on random records: what the fast way accepts, the slow way must
 * accept with equal values. Arguments: the seed, and how many records.
 */
public final class ScanFuzz {
  private ScanFuzz() {}

  public static void main(String[] arguments) {
    long seed = Long.parseLong(arguments[0]);
    int count = Integer.parseInt(arguments[1]);
    int differences = compare(seed, count, "keep") + compare(seed + 1, count, "refuse");
    System.exit(differences == 0 ? 0 : 1);
  }

  /** How many records both ways read differently; each is printed. */
  static int compare(long seed, int count, String drift) {
    java.util.Map<String, String> options = new java.util.HashMap<>(RandomRecords.OPTIONS);
    options.put("drift", drift);
    StrictJson reader = new StrictJson(RandomRecords.COLUMNS, options, "UTC");
    RandomRecords records = new RandomRecords(seed);
    int fast = 0;
    int accepted = 0;
    int differences = 0;
    for (int at = 0; at < count; at++) {
      byte[] record = records.next();
      InternalRow expected = reader.diagnose(record, 0);
      accepted += expected.isNullAt(reader.reasonCodeOrdinal) ? 1 : 0;
      InternalRow scanned = new RecordScanner(reader, record, 0).read();
      if (scanned == null) {
        continue;
      }
      fast++;
      String first = show(scanned, reader.resultType());
      String second = show(expected, reader.resultType());
      if (!first.equals(second)) {
        differences++;
        System.out.println("DIFFERENT " + new String(record, StandardCharsets.UTF_8));
        System.out.println("  fast " + first);
        System.out.println("  slow " + second);
      }
    }
    System.out.printf(
        "drift %s: %d records, %d accepted, %d of them by the fast way, %d differences%n",
        drift, count, accepted, fast, differences);
    return differences;
  }

  /** A row as text, exact to the bits of its numbers. */
  static String show(InternalRow row, StructType type) {
    StringBuilder text = new StringBuilder("{");
    for (int at = 0; at < type.size(); at++) {
      StructField field = type.fields()[at];
      Object value = row.isNullAt(at) ? null : row.get(at, field.dataType());
      text.append(at > 0 ? ", " : "").append(field.name()).append('=').append(show(value, field.dataType()));
    }
    return text.append('}').toString();
  }

  private static String show(Object value, DataType type) {
    if (value instanceof VariantVal variant) {
      return Arrays.toString(variant.getValue()) + Arrays.toString(variant.getMetadata());
    } else if (value instanceof InternalRow row) {
      return show(row, (StructType) type);
    } else if (value instanceof MapData map) {
      MapType mapType = (MapType) type;
      return show(map.keyArray(), mapType.keyType()) + show(map.valueArray(), mapType.valueType());
    } else if (value instanceof ArrayData array) {
      return show(array, type instanceof ArrayType list ? list.elementType() : type);
    }
    return Objects.toString(value) + (value == null ? "" : ":" + value.getClass().getSimpleName());
  }

  private static String show(ArrayData array, DataType type) {
    StringBuilder text = new StringBuilder("[");
    for (int at = 0; at < array.numElements(); at++) {
      text.append(at > 0 ? ", " : "").append(show(array.isNullAt(at) ? null : array.get(at, type), type));
    }
    return text.append(']').toString();
  }
}
