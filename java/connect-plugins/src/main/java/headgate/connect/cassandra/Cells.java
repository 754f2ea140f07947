package headgate.connect.cassandra;

import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.ListType;
import com.datastax.oss.driver.api.core.type.MapType;
import com.datastax.oss.driver.api.core.type.SetType;
import com.datastax.oss.driver.api.core.type.codec.registry.CodecRegistry;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;

/**
 * How a Cassandra type appears in a Connect record.
 *
 * <p>Decimals of any scale, times and ids are text, because Connect has no type that keeps them
 * exactly; what is neither simple nor a collection is its CQL literal.
 */
public final class Cells {
  private static final DateTimeFormatter MILLIS =
      DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT)
          .withZone(ZoneOffset.UTC);
  /** Connect has no integer without a limit; a decimal of scale 0 is one. */
  private static final Schema WHOLE = Decimal.builder(0).optional().build();
  private static final Map<DataType, Schema> AS_THEY_ARE =
      Map.of(
          DataTypes.BOOLEAN, Schema.OPTIONAL_BOOLEAN_SCHEMA,
          DataTypes.TINYINT, Schema.OPTIONAL_INT8_SCHEMA,
          DataTypes.SMALLINT, Schema.OPTIONAL_INT16_SCHEMA,
          DataTypes.INT, Schema.OPTIONAL_INT32_SCHEMA,
          DataTypes.BIGINT, Schema.OPTIONAL_INT64_SCHEMA,
          DataTypes.COUNTER, Schema.OPTIONAL_INT64_SCHEMA,
          DataTypes.FLOAT, Schema.OPTIONAL_FLOAT32_SCHEMA,
          DataTypes.DOUBLE, Schema.OPTIONAL_FLOAT64_SCHEMA,
          DataTypes.BLOB, Schema.OPTIONAL_BYTES_SCHEMA);
  private static final List<DataType> BY_THEIR_TEXT =
      List.of(
          DataTypes.TEXT, DataTypes.ASCII, DataTypes.DECIMAL,
          DataTypes.UUID, DataTypes.TIMEUUID, DataTypes.DATE, DataTypes.TIME);

  private Cells() {}

  /** A column's schema and the way from the driver's value to Connect's; nulls do not come in. */
  public record Cell(Schema schema, Function<Object, Object> convert) {
    Object of(Object value) {
      return value == null ? null : convert.apply(value);
    }
  }

  public static Cell of(DataType type) {
    if (AS_THEY_ARE.containsKey(type)) {
      return new Cell(AS_THEY_ARE.get(type), Cells::bytesAside);
    }
    if (type.equals(DataTypes.TIMESTAMP)) {
      return text(value -> time((Instant) value));
    }
    if (type.equals(DataTypes.VARINT)) {
      return new Cell(WHOLE, value -> new BigDecimal((BigInteger) value));
    }
    if (type.equals(DataTypes.INET)) {
      return text(value -> ((InetAddress) value).getHostAddress());
    }
    if (BY_THEIR_TEXT.contains(type)) {
      return text(Object::toString);
    }
    if (type instanceof ListType list) {
      return array(of(list.getElementType()));
    }
    if (type instanceof SetType set) {
      return array(of(set.getElementType()));
    }
    if (type instanceof MapType map) {
      return map(of(map.getKeyType()), of(map.getValueType()));
    }
    return text(value -> CodecRegistry.DEFAULT.codecFor(type).format(value));
  }

  /** Any column as text: what a key has to be. */
  public static Cell key(DataType type) {
    Cell cell = of(type);
    return text(value -> String.valueOf(cell.of(value)));
  }

  public static String time(Instant instant) {
    return MILLIS.format(instant);
  }

  private static Cell text(Function<Object, Object> convert) {
    return new Cell(Schema.OPTIONAL_STRING_SCHEMA, convert);
  }

  private static Object bytesAside(Object value) {
    return value instanceof ByteBuffer bytes ? bytes.duplicate() : value;
  }

  private static Cell array(Cell element) {
    return new Cell(
        SchemaBuilder.array(element.schema()).optional().build(),
        values -> {
          List<Object> converted = new ArrayList<>();
          ((Collection<?>) values).forEach(value -> converted.add(element.of(value)));
          return converted;
        });
  }

  private static Cell map(Cell key, Cell value) {
    return new Cell(
        SchemaBuilder.map(key.schema(), value.schema()).optional().build(),
        values -> {
          Map<Object, Object> converted = new LinkedHashMap<>();
          ((Map<?, ?>) values).forEach((k, v) -> converted.put(key.of(k), value.of(v)));
          return converted;
        });
  }
}
