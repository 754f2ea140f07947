package headgate.spark;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.ZoneId;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.types.variant.Variant;
import org.apache.spark.types.variant.VariantBuilder;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/** Converts JSON values to the declared types, for one record; numbers and texts are never taken for each other. */
final class TreeConverter {
  /** Given instead of a value that is not of the type. */
  static final Object WRONG_TYPE = new Object();

  // For a DECIMAL, Spark would compute 10 to the power of the exponent, which can take minutes. No DECIMAL
  // needs three digits, so they are refused whatever their value, also in a text that stands for a number.
  private static final Pattern LONG_EXPONENT = Pattern.compile("[-0-9.]+[eE][-+]?[0-9]{3,}");
  private static final Pattern LONG_EXPONENT_IN_TEXT = Pattern.compile("(?s)[^A-Za-z]*[eE].{3,}");

  /** A DECIMAL was met that has such an exponent. */
  boolean hasLongExponent;
  /** A FLOAT was met that is beyond the largest one. */
  boolean hasInfiniteNumber;

  private final StrictJson reader;

  TreeConverter(StrictJson reader) {
    this.reader = reader;
  }

  /** The value as Catalyst holds it boxed; null for JSON's null. */
  Object convert(JsonTree value, JsonType type) {
    if (value.kind() == JsonTree.Kind.NULL) {
      return null;
    }
    boolean isText = value.kind() == JsonTree.Kind.TEXT;
    return switch (type.kind) {
      case INTEGER -> value.kind() == JsonTree.Kind.INTEGER ? toInteger(value.text(), type) : WRONG_TYPE;
      case DOUBLE -> value.isNumber() ? toDouble(value) : WRONG_TYPE;
      case FLOAT -> value.isNumber() ? toFloat(value) : WRONG_TYPE;
      case STRING -> isText ? UTF8String.fromString(value.text()) : WRONG_TYPE;
      case BOOLEAN -> toBoolean(value);
      case DECIMAL -> toDecimal(value, type);
      case DATE, TIMESTAMP, TIMESTAMP_NTZ -> isText ? toTime(value.text(), type) : WRONG_TYPE;
      case JSON -> UTF8String.fromString(toJson(value));
      case SCALAR -> toScalar(value);
      case VARIANT -> toVariantVal(value);
      case ARRAY -> toArray(value, type);
      case MAP -> toMap(value, type);
      case STRUCT -> toStruct(value, type);
    };
  }

  /** The value's JSON as Spark writes a VARIANT. */
  String toJson(JsonTree value) {
    return toVariant(value).toJson(ZoneId.of(reader.zone));
  }

  private static Variant toVariant(JsonTree value) {
    try {
      return VariantBuilder.parseJson(((String) value.source()).substring(value.start(), value.end()), false);
    } catch (IOException invalid) {
      throw new IllegalStateException("a value that is JSON is no VARIANT", invalid);
    }
  }

  private static Object toVariantVal(JsonTree value) {
    Variant variant = toVariant(value);
    return new VariantVal(variant.getValue(), variant.getMetadata());
  }

  private static Object toInteger(String written, JsonType type) {
    try {
      long number = Long.parseLong(written);
      return number >= type.min && number <= type.max ? type.boxed(number) : WRONG_TYPE;
    } catch (NumberFormatException tooLarge) {
      return WRONG_TYPE;
    }
  }

  private static boolean isIntegerZero(JsonTree value) {
    return value.kind() == JsonTree.Kind.INTEGER && value.text().equals("-0");
  }

  private static Object toDouble(JsonTree value) {
    return isIntegerZero(value) ? 0.0 : Double.parseDouble(value.text());
  }

  private Object toFloat(JsonTree value) {
    float number = isIntegerZero(value) ? 0 : Float.parseFloat(value.text());
    hasInfiniteNumber |= Float.isInfinite(number);
    return number;
  }

  private static Object toBoolean(JsonTree value) {
    return switch (value.kind()) {
      case TRUE -> true;
      case FALSE -> false;
      default -> WRONG_TYPE;
    };
  }

  private Object toDecimal(JsonTree value, JsonType type) {
    if (value.kind() == JsonTree.Kind.TEXT) {
      hasLongExponent |= LONG_EXPONENT_IN_TEXT.matcher(value.text()).matches();
      return WRONG_TYPE;
    }
    if (!value.isNumber()) {
      return WRONG_TYPE;
    }
    if (LONG_EXPONENT.matcher(value.text()).matches()) {
      hasLongExponent = true;
      return WRONG_TYPE;
    }
    try {
      BigDecimal number = new BigDecimal(value.text()).setScale(type.scale, RoundingMode.UNNECESSARY);
      return number.precision() > type.precision
          ? WRONG_TYPE
          : Decimal.apply(number, type.precision, type.scale);
    } catch (ArithmeticException tooFine) {
      return WRONG_TYPE;
    }
  }

  private Object toTime(String written, JsonType type) {
    long time = reader.times().parseByFormatter(type.kind, written);
    return time == TimeParser.NONE ? WRONG_TYPE : type.boxed(time);
  }

  private static Object toScalar(JsonTree value) {
    return switch (value.kind()) {
      case TEXT, TRUE, FALSE -> UTF8String.fromString(value.written());
      case INTEGER, FRACTION ->
          JsonText.isExact(value.text())
              ? UTF8String.fromString(JsonText.ofNumber(value.text()))
              : WRONG_TYPE;
      default -> WRONG_TYPE;
    };
  }

  private Object toArray(JsonTree value, JsonType type) {
    if (value.kind() != JsonTree.Kind.LIST) {
      return WRONG_TYPE;
    }
    Object[] items = new Object[value.items().size()];
    for (int at = 0; at < items.length; at++) {
      items[at] = convert(value.items().get(at), type.element);
      if (items[at] == WRONG_TYPE) {
        return WRONG_TYPE;
      }
    }
    return new GenericArrayData(items);
  }

  private Object toMap(JsonTree value, JsonType type) {
    if (value.kind() != JsonTree.Kind.OBJECT) {
      return WRONG_TYPE;
    }
    Object[] keys = value.fields().keySet().stream().map(UTF8String::fromString).toArray();
    Object[] values = new Object[keys.length];
    int count = 0;
    for (JsonTree field : value.fields().values()) {
      values[count] = convert(field, type.element);
      if (values[count++] == WRONG_TYPE) {
        return WRONG_TYPE;
      }
    }
    return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(values));
  }

  private Object toStruct(JsonTree value, JsonType type) {
    if (value.kind() != JsonTree.Kind.OBJECT) {
      return WRONG_TYPE;
    }
    Object[] fields = new Object[type.fieldTypes.length];
    for (int at = 0; at < fields.length; at++) {
      String name = new String(type.fieldNames[at], java.nio.charset.StandardCharsets.UTF_8);
      JsonTree field = value.fields().get(name);
      fields[at] = field == null ? null : convert(field, type.fieldTypes[at]);
      if (fields[at] == WRONG_TYPE) {
        return WRONG_TYPE;
      }
    }
    return new GenericInternalRow(fields);
  }
}
