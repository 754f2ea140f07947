package headgate.spark;

import java.io.Serializable;
import java.time.ZoneId;
import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The function strict_json with its columns and options: turns one record into a row with its fields, or into a
 * row with the reason why it has none. It is an object in the query's plan, made once and sent to executors.
 */
public final class StrictJson implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int FRAME_BYTES = 5;
  private static final String[] ADDED = {"_extra", "_missing", "_reason_code", "_reason", "_drift"};

  final Column[] columns;
  final ReaderOptions options;
  final String zone;
  /** -1 without the option key. */
  final int keyOrdinal;

  final int extraOrdinal;
  final int missingOrdinal;
  final int reasonCodeOrdinal;
  final int reasonOrdinal;
  final int driftOrdinal;

  private final String ddl;
  /** Indexes of columns by the hashes of their names, with open addressing; -1 where a slot is free. */
  private final int[] slots;

  // Formatters are made once in each JVM that has the plan.
  private transient volatile TimeParser times;

  StrictJson(String ddl, Map<String, String> options, String zone) {
    this.ddl = ddl;
    this.options = new ReaderOptions(options);
    this.zone = zone;
    columns = this.options.columns(ddl);
    keyOrdinal = this.options.key == null ? -1 : columns.length;
    extraOrdinal = columns.length + (keyOrdinal < 0 ? 0 : 1);
    missingOrdinal = extraOrdinal + 1;
    reasonCodeOrdinal = extraOrdinal + 2;
    reasonOrdinal = extraOrdinal + 3;
    driftOrdinal = extraOrdinal + 4;
    slots = hashNames(columns);
    for (Column column : columns) {
      if (Arrays.asList(ADDED).contains(column.name) || keyOrdinal >= 0 && column.name.equals("_key")) {
        throw new ArgumentException(
            "columns", "a column " + column.name + " is added by the function: rename the declared one");
      }
    }
    times(); // so that a pattern of times that is not valid is an error of the query
  }

  int width() {
    return driftOrdinal + 1;
  }

  /** The type of the rows: the columns, then the key where it is asked for, then what was added. */
  StructType resultType() {
    StructType type = new StructType();
    for (Column column : columns) {
      type = type.add(column.name, column.columnType(), true);
    }
    if (keyOrdinal >= 0) {
      type = type.add("_key", DataTypes.StringType, true);
    }
    for (String name : Arrays.asList(ADDED).subList(0, ADDED.length - 1)) {
      type = type.add(name, DataTypes.StringType, true);
    }
    return type.add("_drift", DataTypes.createArrayType(DataTypes.StringType, false), true);
  }

  /** The row of one record, called by generated code. */
  public InternalRow read(byte[] value) {
    int start = 0;
    if (options.isFramed) {
      if (value.length < FRAME_BYTES || value[0] != 0) {
        return RecordDiagnosis.notFramed(this);
      }
      start = FRAME_BYTES;
    }
    RecordRow row = new RecordScanner(this, value, start).read();
    return row != null ? row : diagnose(value, start);
  }

  /** The row of one record by the slow way alone. */
  InternalRow diagnose(byte[] value, int start) {
    byte[] content = start == 0 ? value : Arrays.copyOfRange(value, start, value.length);
    return new RecordDiagnosis(this, content).read();
  }

  TimeParser times() {
    TimeParser parser = times;
    if (parser == null) {
      try {
        parser = new TimeParser(options, ZoneId.of(zone));
      } catch (RuntimeException invalid) {
        throw new ArgumentException("options", "a pattern of times is not valid: " + invalid.getMessage());
      }
      times = parser;
    }
    return parser;
  }

  boolean isKeyRoot(byte[] bytes, int start, int end) {
    return keyOrdinal >= 0
        && Arrays.equals(bytes, start, end, options.key.rootBytes, 0, options.key.rootBytes.length);
  }

  /** The index of the column with this name; -1 where there is none. */
  int columnIndex(byte[] bytes, int start, int end) {
    int mask = slots.length - 1;
    for (int slot = hash(bytes, start, end) & mask; slots[slot] >= 0; slot = slot + 1 & mask) {
      byte[] name = columns[slots[slot]].nameBytes;
      if (Arrays.equals(bytes, start, end, name, 0, name.length)) {
        return slots[slot];
      }
    }
    return -1;
  }

  private static int[] hashNames(Column[] columns) {
    // At most half of the slots are taken, so that a search always meets a free one.
    int[] slots = new int[Integer.highestOneBit(Math.max(4, columns.length * 4))];
    Arrays.fill(slots, -1);
    for (int index = 0; index < columns.length; index++) {
      byte[] name = columns[index].nameBytes;
      int slot = hash(name, 0, name.length) & slots.length - 1;
      while (slots[slot] >= 0) {
        slot = slot + 1 & slots.length - 1;
      }
      slots[slot] = index;
    }
    return slots;
  }

  private static int hash(byte[] bytes, int start, int end) {
    int hash = 1;
    for (int at = start; at < end; at++) {
      hash = hash * 31 + bytes[at];
    }
    return hash ^ hash >>> 15;
  }

  // Plans with the same call must be equal, or Spark reuses neither exchanges nor cached results.
  @Override
  public boolean equals(Object other) {
    return other instanceof StrictJson that
        && ddl.equals(that.ddl)
        && options.equals(that.options)
        && zone.equals(that.zone);
  }

  @Override
  public int hashCode() {
    return 31 * ddl.hashCode() + options.hashCode();
  }

  @Override
  public String toString() {
    return "strict_json with " + columns.length + " columns";
  }
}
