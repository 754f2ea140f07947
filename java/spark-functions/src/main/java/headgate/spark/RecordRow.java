package headgate.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGettersReader;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.GeographyVal;
import org.apache.spark.unsafe.types.GeometryVal;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * A row whose numbers, booleans and times are not boxed: a record of 20 numbers would otherwise cost 20
 * allocations. One row is made for each record, and nobody changes it after it was returned.
 */
public final class RecordRow extends InternalRow {
  private static final long serialVersionUID = 1L;
  private static final Object NUMBER = new Object[0];
  private final long[] numbers;
  private final Object[] objects;

  RecordRow(int width) {
    numbers = new long[width];
    objects = new Object[width];
  }

  /** Set a number, a boolean or a time, as the bits that Catalyst keeps of it. */
  void setNumber(int ordinal, long bits) {
    numbers[ordinal] = bits;
    objects[ordinal] = NUMBER;
  }

  void setObject(int ordinal, Object value) {
    objects[ordinal] = value;
  }

  /** Set a value of any type that Catalyst holds boxed; null for NULL. */
  void setBoxed(int ordinal, Object value) {
    if (value instanceof Double number) {
      setNumber(ordinal, Double.doubleToRawLongBits(number));
    } else if (value instanceof Float number) {
      setNumber(ordinal, Float.floatToRawIntBits(number));
    } else if (value instanceof Boolean truth) {
      setNumber(ordinal, truth ? 1 : 0);
    } else if (value instanceof Long
        || value instanceof Integer
        || value instanceof Short
        || value instanceof Byte) {
      setNumber(ordinal, ((Number) value).longValue());
    } else {
      setObject(ordinal, value);
    }
  }

  /** A value as Catalyst holds it boxed. */
  Object getBoxed(int ordinal, JsonType type) {
    Object value = objects[ordinal];
    return value == NUMBER ? type.boxed(numbers[ordinal]) : value;
  }

  @Override
  public int numFields() {
    return numbers.length;
  }

  @Override
  public boolean isNullAt(int ordinal) {
    return objects[ordinal] == null;
  }

  @Override
  public boolean getBoolean(int ordinal) {
    return numbers[ordinal] != 0;
  }

  @Override
  public byte getByte(int ordinal) {
    return (byte) numbers[ordinal];
  }

  @Override
  public short getShort(int ordinal) {
    return (short) numbers[ordinal];
  }

  @Override
  public int getInt(int ordinal) {
    return (int) numbers[ordinal];
  }

  @Override
  public long getLong(int ordinal) {
    return numbers[ordinal];
  }

  @Override
  public float getFloat(int ordinal) {
    return Float.intBitsToFloat((int) numbers[ordinal]);
  }

  @Override
  public double getDouble(int ordinal) {
    return Double.longBitsToDouble(numbers[ordinal]);
  }

  @Override
  public Decimal getDecimal(int ordinal, int precision, int scale) {
    return (Decimal) objects[ordinal];
  }

  @Override
  public UTF8String getUTF8String(int ordinal) {
    return (UTF8String) objects[ordinal];
  }

  @Override
  public byte[] getBinary(int ordinal) {
    return (byte[]) objects[ordinal];
  }

  @Override
  public GeographyVal getGeography(int ordinal) {
    return (GeographyVal) objects[ordinal];
  }

  @Override
  public GeometryVal getGeometry(int ordinal) {
    return (GeometryVal) objects[ordinal];
  }

  @Override
  public CalendarInterval getInterval(int ordinal) {
    return (CalendarInterval) objects[ordinal];
  }

  @Override
  public VariantVal getVariant(int ordinal) {
    return (VariantVal) objects[ordinal];
  }

  @Override
  public InternalRow getStruct(int ordinal, int width) {
    return (InternalRow) objects[ordinal];
  }

  @Override
  public ArrayData getArray(int ordinal) {
    return (ArrayData) objects[ordinal];
  }

  @Override
  public MapData getMap(int ordinal) {
    return (MapData) objects[ordinal];
  }

  @Override
  public Object get(int ordinal, DataType type) {
    return SpecializedGettersReader.read(this, ordinal, type, true, false);
  }

  @Override
  public void setNullAt(int ordinal) {
    objects[ordinal] = null;
  }

  @Override
  public void update(int ordinal, Object value) {
    throw new UnsupportedOperationException("a row of strict_json cannot be changed");
  }

  @Override
  public InternalRow copy() {
    return this;
  }
}
