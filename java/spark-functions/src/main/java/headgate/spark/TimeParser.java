package headgate.spark;

import java.nio.charset.StandardCharsets;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.DateFormatter;
import org.apache.spark.sql.catalyst.util.DateFormatter$;
import org.apache.spark.sql.catalyst.util.LegacyDateFormats;
import org.apache.spark.sql.catalyst.util.TimestampFormatter;
import org.apache.spark.sql.catalyst.util.TimestampFormatter$;
import scala.Option;

/**
 * Dates and timestamps by the declared patterns. Texts of the usual ISO patterns are computed from their
 * digits, 20 times as fast as by Spark's formatter; every other text is left to Spark's formatter.
 */
final class TimeParser {
  /** The text does not have the pattern. No timestamp of Spark has this value. */
  static final long NONE = Long.MIN_VALUE;

  private static final long MICROS_PER_DAY = 86_400_000_000L;
  private static final int[] MICROS = {1_000_000, 100_000, 10_000, 1_000, 100, 10, 1};

  private final boolean isIsoDate;
  private final IsoPattern isoNtz;
  private final IsoPattern isoTimestamp;
  /** A timestamp without a zone is in the session's, and only in UTC its digits are enough. */
  private final boolean isUtc;

  private final DateFormatter date;
  private final TimestampFormatter ntz;
  private final TimestampFormatter timestamp;

  TimeParser(ReaderOptions options, ZoneId zone) {
    isIsoDate = options.dateFormat.equals("yyyy-MM-dd");
    isoNtz = IsoPattern.parse(options.timestampNtzFormat);
    isoTimestamp = IsoPattern.parse(options.timestampFormat);
    isUtc = zone.normalized().equals(ZoneOffset.UTC);
    date =
        DateFormatter$.MODULE$.apply(
            Option.apply(options.dateFormat), Locale.US, LegacyDateFormats.FAST_DATE_FORMAT(), true);
    ntz =
        TimestampFormatter$.MODULE$.apply(
            Option.apply(options.timestampNtzFormat),
            zone,
            LegacyDateFormats.FAST_DATE_FORMAT(),
            true,
            true);
    timestamp =
        TimestampFormatter$.MODULE$.apply(
            options.timestampFormat, zone, Locale.US, LegacyDateFormats.FAST_DATE_FORMAT(), true);
  }

  /**
   * A pattern yyyy-MM-dd, T or blank, HH:mm:ss, and perhaps a fraction and a zone.
   *
   * @param digits of the fraction at most; 0 where the pattern has none
   */
  private record IsoPattern(
      boolean hasT, boolean hasBlank, int digits, boolean needsFraction, boolean hasZone, boolean needsZone) {
    private static final Pattern FORM =
        Pattern.compile(
            "yyyy-MM-dd('T'| |' '|\\['T'\\]\\[' '\\])HH:mm:ss(\\.S{1,6}|\\[\\.S{1,6}\\])?(XXX|\\[XXX\\])?");

    static IsoPattern parse(String pattern) {
      Matcher form = FORM.matcher(pattern);
      if (!form.matches()) {
        return null;
      }
      String fraction = form.group(2);
      String zone = form.group(3);
      return new IsoPattern(
          form.group(1).contains("T"),
          form.group(1).contains(" "),
          fraction == null ? 0 : (int) fraction.chars().filter(letter -> letter == 'S').count(),
          fraction != null && !fraction.startsWith("["),
          zone != null,
          zone != null && !zone.startsWith("["));
    }
  }

  /** Microseconds, or days of a DATE, of the text between two positions; NONE when it has another form. */
  long parse(JsonType.Kind kind, byte[] bytes, int start, int end) {
    long value = parseIso(kind, bytes, start, end);
    return value != NONE
        ? value
        : parseByFormatter(kind, new String(bytes, start, end - start, StandardCharsets.UTF_8));
  }

  private long parseIso(JsonType.Kind kind, byte[] bytes, int start, int end) {
    if (kind == JsonType.Kind.DATE) {
      return isIsoDate && end - start == 10 ? epochDay(bytes, start) : NONE;
    }
    boolean isNtz = kind == JsonType.Kind.TIMESTAMP_NTZ;
    IsoPattern pattern = isNtz ? isoNtz : isoTimestamp;
    if (pattern == null || end - start < 19) {
      return NONE;
    }
    long days = epochDay(bytes, start);
    long micros = timeOfDay(pattern, bytes, start + 10);
    if (days == NONE || micros == NONE) {
      return NONE;
    }
    int at = start + 19;
    int digits = 0;
    if (at < end && bytes[at] == '.') {
      int fraction = 0;
      while (++at < end && bytes[at] >= '0' && bytes[at] <= '9' && digits < 7) {
        fraction = fraction * 10 + (bytes[at] - '0');
        digits++;
      }
      if (digits == 0 || digits > pattern.digits) {
        return NONE;
      }
      micros += (long) fraction * MICROS[digits];
    }
    if (digits == 0 && pattern.needsFraction) {
      return NONE;
    }
    boolean hasZone = at + 1 == end && bytes[at] == 'Z' && pattern.hasZone && !isNtz;
    boolean hasNone = at == end && !pattern.needsZone && (isNtz || isUtc);
    return hasZone || hasNone ? days * MICROS_PER_DAY + micros : NONE;
  }

  private static long timeOfDay(IsoPattern pattern, byte[] bytes, int at) {
    boolean isSeparated = bytes[at] == 'T' && pattern.hasT || bytes[at] == ' ' && pattern.hasBlank;
    int hour = twoDigits(bytes, at + 1);
    int minute = twoDigits(bytes, at + 4);
    int second = twoDigits(bytes, at + 7);
    if (!isSeparated
        || bytes[at + 3] != ':'
        || bytes[at + 6] != ':'
        || hour > 23
        || minute > 59
        || second > 59
        || (hour | minute | second) < 0) {
      return NONE;
    }
    return (hour * 3600L + minute * 60 + second) * 1_000_000L;
  }

  private static long epochDay(byte[] bytes, int at) {
    int century = twoDigits(bytes, at);
    int years = twoDigits(bytes, at + 2);
    int month = twoDigits(bytes, at + 5);
    int day = twoDigits(bytes, at + 8);
    if (century < 0 || years < 0 || month < 1 || month > 12 || day < 1) {
      return NONE;
    }
    int year = century * 100 + years;
    if (bytes[at + 4] != '-' || bytes[at + 7] != '-' || year < 1 || day > 28 && day > daysIn(year, month)) {
      return NONE;
    }
    // Years that begin in March have their leap day at the end, so that days are a linear formula.
    int shifted = month <= 2 ? year - 1 : year;
    int era = shifted / 400;
    int yearOfEra = shifted - era * 400;
    int dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear;
    return era * 146_097L + dayOfEra - 719_468L;
  }

  private static int daysIn(int year, int month) {
    if (month == 2) {
      return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    }
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  }

  private static int twoDigits(byte[] bytes, int at) {
    int high = bytes[at] - '0';
    int low = bytes[at + 1] - '0';
    return high < 0 || high > 9 || low < 0 || low > 9 ? -1 : high * 10 + low;
  }

  /** The same by Spark's formatter, as from_json reads it. */
  long parseByFormatter(JsonType.Kind kind, String text) {
    try {
      return switch (kind) {
        case DATE -> date.parse(text);
        case TIMESTAMP_NTZ -> ntz.parseWithoutTimeZone(text, false);
        default -> timestamp.parse(text);
      };
    } catch (Exception otherForm) {
      return NONE;
    }
  }
}
