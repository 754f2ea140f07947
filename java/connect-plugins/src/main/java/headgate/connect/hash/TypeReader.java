package headgate.connect.hash;

import headgate.connect.hash.LogicalType.Kind;
import headgate.connect.hash.LogicalType.Unit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/** Reads types, and whole contracts, in their one-line form. */
final class TypeReader {
  private static final int DECIMAL_DIGITS = 30;
  private static final int DOUBLE_DIGITS = 15;
  private static final Set<Kind> CAN_BE_EMPTY =
      Set.of(Kind.STRING, Kind.BINARY, Kind.LIST, Kind.SET, Kind.MAP);

  private final String text;
  private int at;

  TypeReader(String text) {
    this.text = text;
  }

  /** {@code name:type,name:type}, in contract order. */
  List<HashField> fields() {
    List<HashField> fields = new ArrayList<>();
    do {
      String name = until(':');
      fields.add(new HashField(name, type()));
    } while (take(','));
    end();
    return fields;
  }

  LogicalType type() {
    Kind kind = kind(word());
    List<LogicalType> of = inside(kind);
    List<String> arguments = arguments();
    if (kind == Kind.DECIMAL || kind == Kind.DOUBLE) {
      return simple(kind, scale(kind, arguments), null);
    }
    if (kind == Kind.TIMESTAMP) {
      return simple(kind, null, unit(arguments));
    }
    return worded(kind, of, arguments);
  }

  private static LogicalType simple(Kind kind, Integer scale, Unit unit) {
    return new LogicalType(kind, scale, unit, false, false, false, List.of());
  }

  private LogicalType worded(Kind kind, List<LogicalType> of, List<String> arguments) {
    List<String> left = new ArrayList<>(arguments);
    boolean nfc = kind == Kind.STRING && left.remove("nfc");
    boolean trim = kind == Kind.STRING && left.remove("trim");
    boolean empty = CAN_BE_EMPTY.contains(kind) && left.remove("nulls_empty");
    if (!left.isEmpty()) {
      throw fault("it does not take " + left.get(0));
    }
    return new LogicalType(kind, null, null, nfc, trim, empty, of);
  }

  private Kind kind(String word) {
    try {
      return Kind.valueOf(word.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException error) {
      throw fault("there is no type '" + word + "'");
    }
  }

  private List<LogicalType> inside(Kind kind) {
    List<LogicalType> of = new ArrayList<>();
    int wanted = kind == Kind.MAP ? 2 : kind == Kind.LIST || kind == Kind.SET ? 1 : 0;
    for (int i = 0; i < wanted; i++) {
      need(i == 0 ? '<' : ',');
      of.add(type());
    }
    if (wanted > 0) {
      need('>');
    }
    return of;
  }

  private List<String> arguments() {
    List<String> arguments = new ArrayList<>();
    if (take('(')) {
      do {
        arguments.add(word());
      } while (take(','));
      need(')');
    }
    return arguments;
  }

  private Integer scale(Kind kind, List<String> arguments) {
    if (arguments.isEmpty()) {
      return null;
    }
    int most = kind == Kind.DECIMAL ? DECIMAL_DIGITS : DOUBLE_DIGITS;
    String digits = arguments.get(0);
    if (arguments.size() > 1 || !digits.matches("[0-9]{1,2}") || Integer.parseInt(digits) > most) {
      throw fault("a scale is a number from 0 to " + most);
    }
    return Integer.valueOf(digits);
  }

  private Unit unit(List<String> arguments) {
    if (arguments.size() != 1 || !Set.of("s", "ms", "us").contains(arguments.get(0))) {
      throw fault("a timestamp has the unit s, ms or us");
    }
    return Unit.valueOf(arguments.get(0).toUpperCase(Locale.ROOT));
  }

  void end() {
    skip();
    if (at < text.length()) {
      throw fault("there is more than a type");
    }
  }

  private String until(char end) {
    int found = text.indexOf(end, at);
    String name = found < 0 ? "" : text.substring(at, found).strip();
    if (name.isEmpty()) {
      throw fault("a field's name and a colon are wanted");
    }
    at = found + 1;
    return name;
  }

  private String word() {
    skip();
    int from = at;
    while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || text.charAt(at) == '_')) {
      at++;
    }
    return text.substring(from, at);
  }

  private boolean take(char sign) {
    skip();
    boolean there = at < text.length() && text.charAt(at) == sign;
    at += there ? 1 : 0;
    return there;
  }

  private void need(char sign) {
    if (!take(sign)) {
      throw fault("'" + sign + "' is wanted");
    }
  }

  private void skip() {
    while (at < text.length() && text.charAt(at) == ' ') {
      at++;
    }
  }

  private IllegalArgumentException fault(String what) {
    return new IllegalArgumentException(
        "'" + text + "' is no contract: " + what + " at character " + (at + 1));
  }
}
