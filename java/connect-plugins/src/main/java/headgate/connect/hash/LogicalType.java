package headgate.connect.hash;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * A type of the hash contract, with all that belongs to it.
 *
 * @param scale digits behind the point, or null for the exact value
 * @param unit of a timestamp, else null
 * @param of the types inside: one of a list or set, two of a map
 */
public record LogicalType(
    Kind kind,
    Integer scale,
    Unit unit,
    boolean nfc,
    boolean trim,
    boolean nullsEmpty,
    List<LogicalType> of) {

  /** The kinds of value, each with the tag that begins its text. */
  public enum Kind {
    STRING('s'),
    UUID('u'),
    BOOLEAN('b'),
    INTEGER('i'),
    DECIMAL('d'),
    DOUBLE('f'),
    DATE('c'),
    TIMESTAMP('t'),
    BINARY('x'),
    LIST('L'),
    SET('S'),
    MAP('M');

    final char tag;

    Kind(char tag) {
      this.tag = tag;
    }
  }

  /** What a timestamp counts in. */
  public enum Unit {
    S(1, 1_000_000_000, 0),
    MS(1_000, 1_000_000, 3),
    US(1_000_000, 1_000, 6);

    final long perSecond;
    final long nanos;
    final int digits;

    Unit(long perSecond, long nanos, int digits) {
      this.perSecond = perSecond;
      this.nanos = nanos;
      this.digits = digits;
    }
  }

  /** For a person, without arguments: {@code map<string,list<decimal>>}. */
  public String words() {
    String name = kind.name().toLowerCase(Locale.ROOT);
    return of.isEmpty()
        ? name
        : of.stream().map(LogicalType::words).collect(Collectors.joining(",", name + "<", ">"));
  }

  /** A type written in one line, such as {@code map<string,list<decimal(2)>>}. */
  public static LogicalType parse(String text) {
    TypeReader reader = new TypeReader(text);
    LogicalType type = reader.type();
    reader.end();
    return type;
  }
}
