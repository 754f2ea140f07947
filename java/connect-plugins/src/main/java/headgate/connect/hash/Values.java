package headgate.connect.hash;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.TemporalAccessor;
import java.util.Date;
import java.util.UUID;

/**
 * Takes what Connect, the driver and JSON hold for a logical type; everything else is refused.
 *
 * <p>Decimals, times and ids may come as text, since neither JSON nor Connect has a type for each.
 */
final class Values {
  private static final DateTimeFormatter TIME = DateTimeFormatter.ISO_DATE_TIME;

  private Values() {}

  static boolean bool(Object value) {
    if (value instanceof Boolean truth) {
      return truth;
    }
    throw refused("boolean", value);
  }

  static BigInteger integer(Object value) {
    if (value instanceof BigInteger big) {
      return big;
    }
    if (isWhole(value)) {
      return BigInteger.valueOf(((Number) value).longValue());
    }
    // Connect has no integer without a limit; a decimal of scale 0 stands for one.
    if (value instanceof BigDecimal decimal && decimal.scale() == 0) {
      return decimal.unscaledValue();
    }
    throw refused("integer", value);
  }

  static BigDecimal decimal(Object value) {
    if (value instanceof BigDecimal decimal) {
      return decimal;
    }
    if (value instanceof BigInteger big) {
      return new BigDecimal(big);
    }
    if (isWhole(value)) {
      return BigDecimal.valueOf(((Number) value).longValue());
    }
    if (value instanceof String text) {
      return parsed(text);
    }
    throw refused("decimal", value);
  }

  private static BigDecimal parsed(String text) {
    try {
      return new BigDecimal(text);
    } catch (NumberFormatException error) {
      throw refused("decimal", text);
    }
  }

  static double real(Object value) {
    if (value instanceof Double || value instanceof Float || isWhole(value)) {
      return ((Number) value).doubleValue();
    }
    if (value instanceof BigDecimal || value instanceof BigInteger) {
      return finite(((Number) value).doubleValue());
    }
    throw refused("double", value);
  }

  private static double finite(double nearest) {
    if (Double.isInfinite(nearest)) {
      throw new IllegalArgumentException("no double is so large");
    }
    return nearest;
  }

  private static boolean isWhole(Object value) {
    return value instanceof Long
        || value instanceof Integer
        || value instanceof Short
        || value instanceof Byte;
  }

  static LocalDate date(Object value) {
    if (value instanceof LocalDate date) {
      return date;
    }
    if (value instanceof Date connect) {
      return connect.toInstant().atZone(ZoneOffset.UTC).toLocalDate();
    }
    if (value instanceof String text) {
      try {
        return LocalDate.parse(text);
      } catch (DateTimeException error) {
        throw refused("date", text);
      }
    }
    throw refused("date", value);
  }

  static Instant time(Object value) {
    if (value instanceof Instant instant) {
      return instant;
    }
    if (value instanceof Date connect) {
      return connect.toInstant();
    }
    if (value instanceof OffsetDateTime time) {
      return time.toInstant();
    }
    if (value instanceof LocalDateTime time) {
      return time.toInstant(ZoneOffset.UTC);
    }
    if (value instanceof String text) {
      return instant(text);
    }
    throw refused("timestamp", value);
  }

  private static Instant instant(String text) {
    try {
      TemporalAccessor time = TIME.parseBest(text, OffsetDateTime::from, LocalDateTime::from);
      return time instanceof OffsetDateTime zoned
          ? zoned.toInstant()
          : ((LocalDateTime) time).toInstant(ZoneOffset.UTC);
    } catch (DateTimeException error) {
      throw refused("timestamp", text);
    }
  }

  static String uuid(Object value) {
    if (value instanceof UUID id) {
      return id.toString();
    }
    if (value instanceof String text && text.matches("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")) {
      return UUID.fromString(text).toString();
    }
    throw refused("uuid", value);
  }

  static byte[] binary(Object value) {
    if (value instanceof byte[] bytes) {
      return bytes;
    }
    if (value instanceof ByteBuffer buffer) {
      byte[] bytes = new byte[buffer.remaining()];
      buffer.duplicate().get(bytes);
      return bytes;
    }
    throw refused("binary", value);
  }

  /** The message names the class and not the value: values may be secret. */
  static IllegalArgumentException refused(String type, Object value) {
    String found = value == null ? "null" : value.getClass().getSimpleName();
    String words = value instanceof String ? "a text that is none" : "a " + found;
    return new IllegalArgumentException(type + " is wanted, but there is " + words);
  }
}
