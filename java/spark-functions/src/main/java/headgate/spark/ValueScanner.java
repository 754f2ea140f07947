package headgate.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.types.variant.Variant;
import org.apache.spark.types.variant.VariantBuilder;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Reads values of declared types from a cursor into a row. Every method returns false where it is not sure
 * that the value is JSON and of its type; the record is then read by Jackson, which says what is wrong.
 */
final class ValueScanner {
  private static final double[] POWERS_OF_TEN = {
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22
  };
  private static final long[] LONG_POWERS_OF_TEN = new long[19];

  static {
    LONG_POWERS_OF_TEN[0] = 1;
    for (int at = 1; at < LONG_POWERS_OF_TEN.length; at++) {
      LONG_POWERS_OF_TEN[at] = LONG_POWERS_OF_TEN[at - 1] * 10;
    }
  }

  private static final int MAX_DEPTH = 100;

  private final JsonCursor cursor;
  private final TimeParser times;
  private int depth;

  ValueScanner(JsonCursor cursor, TimeParser times) {
    this.cursor = cursor;
    this.times = times;
  }

  /** Read a value of the type into the row; JSON's null leaves the row's field NULL. */
  boolean read(JsonType type, RecordRow row, int ordinal) {
    if (cursor.peek() == 'n') {
      return cursor.skipWord("null");
    }
    switch (type.kind) {
      case INTEGER:
        return readInteger(type, row, ordinal);
      case DOUBLE:
        return readDouble(row, ordinal);
      case FLOAT:
        return readFloat(row, ordinal);
      case STRING:
        UTF8String text = cursor.readText();
        row.setObject(ordinal, text);
        return text != null;
      case BOOLEAN:
        boolean isTrue = cursor.peek() == 't';
        row.setNumber(ordinal, isTrue ? 1 : 0);
        return cursor.skipWord(isTrue ? "true" : "false");
      case DECIMAL:
        return readDecimal(type, row, ordinal);
      case DATE, TIMESTAMP, TIMESTAMP_NTZ:
        return readTime(type, row, ordinal);
      case JSON:
        JsonTextScanner json = new JsonTextScanner(cursor);
        boolean isJson = json.copyValue();
        row.setObject(ordinal, json.text());
        return isJson;
      case SCALAR:
        return readScalar(row, ordinal);
      case VARIANT:
        return readVariant(row, ordinal);
      default:
        return readNested(type, row, ordinal);
    }
  }

  private boolean readInteger(JsonType type, RecordRow row, int ordinal) {
    // Nineteen digits may or may not fit into a BIGINT: they are rare, and Jackson decides.
    if (!cursor.readNumber() || !cursor.isInteger || cursor.digits > 18) {
      return false;
    }
    long number = cursor.isNegative ? -cursor.mantissa : cursor.mantissa;
    row.setNumber(ordinal, number);
    return number >= type.min && number <= type.max;
  }

  private boolean readDouble(RecordRow row, int ordinal) {
    int start = cursor.position;
    if (!cursor.readNumber()) {
      return false;
    }
    double number;
    int exponent = cursor.exponent;
    if (cursor.digits <= 15 && exponent >= -22 && exponent <= 22) {
      // Both operands are exact as doubles, so that the one operation on them rounds correctly.
      number =
          exponent < 0
              ? cursor.mantissa / POWERS_OF_TEN[-exponent]
              : cursor.mantissa * POWERS_OF_TEN[exponent];
      number = cursor.isNegative ? -number : number;
    } else {
      number = Double.parseDouble(cursor.textFrom(start));
    }
    row.setNumber(ordinal, Double.doubleToRawLongBits(isIntegerZero() ? 0 : number));
    return !Double.isInfinite(number);
  }

  private boolean readFloat(RecordRow row, int ordinal) {
    int start = cursor.position;
    if (!cursor.readNumber()) {
      return false;
    }
    float number = isIntegerZero() ? 0 : Float.parseFloat(cursor.textFrom(start));
    row.setNumber(ordinal, Float.floatToRawIntBits(number));
    return !Float.isInfinite(number);
  }

  /** Jackson takes -0 for the integer 0, and -0.0 for the negative zero of DOUBLE. */
  private boolean isIntegerZero() {
    return cursor.isInteger && cursor.mantissa == 0 && cursor.digits == 1;
  }

  private boolean readDecimal(JsonType type, RecordRow row, int ordinal) {
    if (!cursor.readNumber() || cursor.digits > 18 || cursor.hasLongExponent) {
      return false;
    }
    int shift = type.scale + cursor.exponent;
    if (shift < 0 || shift + cursor.digits > 18) {
      return false;
    }
    long unscaled = cursor.mantissa * LONG_POWERS_OF_TEN[shift];
    if (type.precision < 19 && unscaled >= LONG_POWERS_OF_TEN[type.precision]) {
      return false;
    }
    row.setObject(
        ordinal,
        Decimal.createUnsafe(cursor.isNegative ? -unscaled : unscaled, type.precision, type.scale));
    return true;
  }

  private boolean readTime(JsonType type, RecordRow row, int ordinal) {
    if (!cursor.skip('"')) {
      return false;
    }
    int start = cursor.position;
    if (!cursor.skipPlainText()) {
      return false;
    }
    long time = times.parse(type.kind, cursor.bytes, start, cursor.position - 1);
    row.setNumber(ordinal, time);
    return time != TimeParser.NONE;
  }

  private boolean readScalar(RecordRow row, int ordinal) {
    int start = cursor.position;
    UTF8String text;
    switch (cursor.peek()) {
      case '"':
        text = cursor.readText();
        break;
      case 't':
        text = cursor.skipWord("true") ? UTF8String.fromString("true") : null;
        break;
      case 'f':
        text = cursor.skipWord("false") ? UTF8String.fromString("false") : null;
        break;
      default:
        if (!cursor.readNumber() || !JsonText.isExact(cursor.textFrom(start))) {
          return false;
        }
        text = UTF8String.fromString(JsonText.ofNumber(cursor.textFrom(start)));
    }
    row.setObject(ordinal, text);
    return text != null;
  }

  private boolean readVariant(RecordRow row, int ordinal) {
    int start = cursor.position;
    if (!new JsonTextScanner(cursor).skipValue()) {
      return false;
    }
    try {
      Variant variant = VariantBuilder.parseJson(cursor.textFrom(start), false);
      row.setObject(ordinal, new VariantVal(variant.getValue(), variant.getMetadata()));
      return true;
    } catch (Exception invalid) {
      return false;
    }
  }

  private boolean readNested(JsonType type, RecordRow row, int ordinal) {
    if (depth == MAX_DEPTH) {
      return false;
    }
    depth++;
    Object value =
        switch (type.kind) {
          case ARRAY -> readArray(type.element);
          case MAP -> readMap(type.element);
          default -> readStruct(type);
        };
    depth--;
    row.setObject(ordinal, value);
    return value != null;
  }

  private GenericArrayData readArray(JsonType type) {
    if (!cursor.skip('[')) {
      return null;
    }
    List<Object> items = new ArrayList<>();
    cursor.skipBlanks();
    byte separator = cursor.peek() == ']' ? cursor.skipSeparator(']') : (byte) ',';
    while (separator == ',') {
      RecordRow item = new RecordRow(1);
      if (!read(type, item, 0)) {
        return null;
      }
      items.add(item.getBoxed(0, type));
      separator = cursor.skipSeparator(']');
    }
    return separator == 0 ? null : new GenericArrayData(items.toArray());
  }

  private ArrayBasedMapData readMap(JsonType type) {
    if (!cursor.skip('{')) {
      return null;
    }
    List<Object> keys = new ArrayList<>();
    List<Object> values = new ArrayList<>();
    NameSet names = new NameSet(cursor.bytes);
    cursor.skipBlanks();
    byte separator = cursor.peek() == '}' ? cursor.skipSeparator('}') : (byte) ',';
    while (separator == ',') {
      if (!cursor.skip('"')) {
        return null;
      }
      int start = cursor.position;
      if (!cursor.skipName() || !names.add(start, cursor.position - 1)) {
        return null;
      }
      keys.add(UTF8String.fromBytes(cursor.bytes, start, cursor.position - 1 - start));
      RecordRow value = new RecordRow(1);
      if (!cursor.skipColon() || !read(type, value, 0)) {
        return null;
      }
      values.add(value.getBoxed(0, type));
      separator = cursor.skipSeparator('}');
    }
    return separator == 0
        ? null
        : new ArrayBasedMapData(new GenericArrayData(keys.toArray()), new GenericArrayData(values.toArray()));
  }

  /** The declared fields of an object; others are checked and left out. */
  private RecordRow readStruct(JsonType type) {
    if (!cursor.skip('{')) {
      return null;
    }
    RecordRow struct = new RecordRow(type.fieldNames.length);
    NameSet names = new NameSet(cursor.bytes);
    cursor.skipBlanks();
    byte separator = cursor.peek() == '}' ? cursor.skipSeparator('}') : (byte) ',';
    while (separator == ',') {
      if (!cursor.skip('"')) {
        return null;
      }
      int start = cursor.position;
      if (!cursor.skipName() || !names.add(start, cursor.position - 1)) {
        return null;
      }
      int field = indexOf(type.fieldNames, start, cursor.position - 1);
      if (!cursor.skipColon()) {
        return null;
      }
      boolean isRead =
          field < 0
              ? new JsonTextScanner(cursor).skipValue()
              : read(type.fieldTypes[field], struct, field);
      if (!isRead) {
        return null;
      }
      separator = cursor.skipSeparator('}');
    }
    return separator == 0 ? null : struct;
  }

  private int indexOf(byte[][] names, int start, int end) {
    for (int at = 0; at < names.length; at++) {
      if (Arrays.equals(cursor.bytes, start, end, names[at], 0, names[at].length)) {
        return at;
      }
    }
    return -1;
  }
}
