package headgate.connect.hash;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Locale;

/** The text of a value in version 1, when the contract gives its type. */
final class PlainText {
  private static final int LAST_YEAR = 9999;

  private PlainText() {}

  static byte[] of(LogicalType type, Object value) {
    if (value == null) {
      return new byte[0];
    }
    return switch (type.kind()) {
      case STRING -> Bodies.string(type, value);
      case UUID -> ascii(Values.uuid(value));
      case DECIMAL -> ascii(decimal(type, Values.decimal(value)));
      case DOUBLE -> ascii(real(type, Values.real(value)));
      case DATE -> ascii(date(Values.date(value)));
      case TIMESTAMP -> ascii(time(type, Values.time(value)));
      case LIST, SET, MAP -> ValueText.of(type, value);
      default -> ascii(ValueText.body(type, value));
    };
  }

  private static String decimal(LogicalType type, BigDecimal value) {
    return Bodies.scaled(type.scale(), value)
        .map(whole -> new BigDecimal(whole, type.scale()).toPlainString())
        .orElseGet(() -> Bodies.exact(value));
  }

  private static String real(LogicalType type, double value) {
    return Bodies.scaled(type.scale(), value)
        .map(whole -> BigDecimal.valueOf(whole, type.scale()).toPlainString())
        .orElseGet(() -> Bodies.hexadecimal(value));
  }

  private static String date(LocalDate date) {
    return String.format(
        Locale.ROOT, "%04d-%02d-%02d", year(date.getYear()), date.getMonthValue(), date.getDayOfMonth());
  }

  private static String time(LogicalType type, Instant instant) {
    ZonedDateTime time = instant.atZone(ZoneOffset.UTC);
    String clock =
        String.format(Locale.ROOT, "T%02d:%02d:%02d", time.getHour(), time.getMinute(), time.getSecond());
    int digits = type.unit().digits;
    String fraction =
        digits == 0 ? "" : "." + String.format(Locale.ROOT, "%09d", time.getNano()).substring(0, digits);
    return date(time.toLocalDate()) + clock + fraction + "Z";
  }

  private static int year(int year) {
    if (year < 1 || year > LAST_YEAR) {
      throw new IllegalArgumentException("version 1 writes the years 1 to 9999 only");
    }
    return year;
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
