package headgate.spark;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VariantType;

/** The type that a JSON value is read as; nested types carry the types of their parts. */
final class JsonType implements Serializable {
  private static final long serialVersionUID = 1L;

  /** How a value is read. JSON and SCALAR are options of STRING columns, not types of Spark. */
  enum Kind {
    INTEGER,
    DOUBLE,
    FLOAT,
    STRING,
    BOOLEAN,
    DECIMAL,
    DATE,
    TIMESTAMP_NTZ,
    TIMESTAMP,
    /** Any value, kept as its JSON text. */
    JSON,
    /** A text, a boolean or a number without an exponent, kept as text. */
    SCALAR,
    VARIANT,
    ARRAY,
    STRUCT,
    MAP
  }

  private static final JsonType[] NO_FIELDS = {};

  final Kind kind;
  final DataType dataType;
  /** Of INTEGER: the range of the type. */
  final long min;

  final long max;
  /** Of DECIMAL. */
  final int precision;

  final int scale;
  /** Of ARRAY and MAP: the type of an item. */
  final JsonType element;
  /** Of STRUCT. */
  final byte[][] fieldNames;

  final JsonType[] fieldTypes;

  private JsonType(Kind kind, DataType dataType) {
    this.kind = kind;
    this.dataType = dataType;
    max = largest(dataType);
    min = -max - 1;
    precision = dataType instanceof DecimalType decimal ? decimal.precision() : 0;
    scale = dataType instanceof DecimalType decimal ? decimal.scale() : 0;
    element = elementOf(dataType);
    StructField[] fields = dataType instanceof StructType struct ? struct.fields() : new StructField[0];
    fieldNames = new byte[fields.length][];
    fieldTypes = fields.length == 0 ? NO_FIELDS : new JsonType[fields.length];
    for (int at = 0; at < fields.length; at++) {
      fieldNames[at] = fields[at].name().getBytes(StandardCharsets.UTF_8);
      fieldTypes[at] = of(fields[at].dataType());
    }
  }

  static JsonType of(DataType dataType) {
    return new JsonType(kindOf(dataType), dataType);
  }

  /** A STRING column whose values are read as the given kind. */
  static JsonType text(Kind kind) {
    return new JsonType(kind, DataTypes.StringType);
  }

  private static Kind kindOf(DataType type) {
    if (largest(type) != 0) {
      return Kind.INTEGER;
    } else if (type instanceof DoubleType) {
      return Kind.DOUBLE;
    } else if (type instanceof FloatType) {
      return Kind.FLOAT;
    } else if (DataTypes.StringType.equals(type)) {
      return Kind.STRING;
    } else if (type instanceof BooleanType) {
      return Kind.BOOLEAN;
    } else if (type instanceof DecimalType) {
      return Kind.DECIMAL;
    } else if (type instanceof DateType) {
      return Kind.DATE;
    } else if (type instanceof TimestampNTZType) {
      return Kind.TIMESTAMP_NTZ;
    } else if (type instanceof TimestampType) {
      return Kind.TIMESTAMP;
    } else if (type instanceof VariantType) {
      return Kind.VARIANT;
    } else if (type instanceof ArrayType) {
      return Kind.ARRAY;
    } else if (type instanceof StructType) {
      return Kind.STRUCT;
    } else if (type instanceof MapType map && DataTypes.StringType.equals(map.keyType())) {
      return Kind.MAP;
    }
    throw new ArgumentException("columns", "the type " + type.sql() + " cannot be read from JSON");
  }

  private static long largest(DataType type) {
    if (type instanceof LongType) {
      return Long.MAX_VALUE;
    } else if (type instanceof IntegerType) {
      return Integer.MAX_VALUE;
    } else if (type instanceof ShortType) {
      return Short.MAX_VALUE;
    }
    return type instanceof ByteType ? Byte.MAX_VALUE : 0;
  }

  private static JsonType elementOf(DataType type) {
    if (type instanceof ArrayType array) {
      return of(array.elementType());
    }
    return type instanceof MapType map ? of(map.valueType()) : null;
  }

  /** Whether the type is, or contains, this kind. */
  boolean contains(Kind searched) {
    boolean contained = kind == searched || element != null && element.contains(searched);
    for (JsonType field : fieldTypes) {
      contained |= field.contains(searched);
    }
    return contained;
  }

  /** A number as the object that Catalyst holds it as, where a row cannot hold it unboxed. */
  Object boxed(long number) {
    return switch (kind) {
      case DOUBLE -> Double.longBitsToDouble(number);
      case FLOAT -> Float.intBitsToFloat((int) number);
      case BOOLEAN -> number != 0;
      case DATE -> (int) number;
      case INTEGER -> boxedInteger(number);
      default -> number;
    };
  }

  private Object boxedInteger(long number) {
    if (dataType instanceof LongType) {
      return number;
    } else if (dataType instanceof IntegerType) {
      return (int) number;
    }
    return dataType instanceof ShortType ? (Object) (short) number : (Object) (byte) number;
  }
}
