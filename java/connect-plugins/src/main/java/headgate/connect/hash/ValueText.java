package headgate.connect.hash;

import headgate.connect.hash.LogicalType.Kind;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The text of a value in version 2: a tag, a body, and for fixed alphabets an end. */
final class ValueText {
  private static final byte[] NULL = ascii("n;");

  private ValueText() {}

  static byte[] of(LogicalType type, Object value) {
    if (value == null) {
      return type.nullsEmpty() ? empty(type.kind()) : NULL;
    }
    return switch (type.kind()) {
      case STRING -> measured(type.kind(), Bodies.string(type, value));
      case UUID -> measured(type.kind(), ascii(Values.uuid(value)));
      case LIST -> collection(type.kind(), items(type, value));
      case SET -> collection(type.kind(), once(sorted(items(type, value))));
      case MAP -> collection(type.kind(), sorted(entries(type, value)));
      default -> ascii(type.kind().tag + body(type, value) + ";");
    };
  }

  private static byte[] empty(Kind kind) {
    return ascii(kind == Kind.BINARY ? "x;" : kind.tag + "0:");
  }

  /** The body of a type whose alphabet has no semicolon in it. */
  static String body(LogicalType type, Object value) {
    return switch (type.kind()) {
      case BOOLEAN -> String.valueOf(Values.bool(value));
      case INTEGER -> Values.integer(value).toString();
      case DECIMAL -> decimal(type, Values.decimal(value));
      case DOUBLE -> real(type, Values.real(value));
      case DATE -> String.valueOf(Values.date(value).toEpochDay());
      case TIMESTAMP -> String.valueOf(Bodies.units(type.unit(), Values.time(value)));
      case BINARY -> Bodies.hex(Values.binary(value));
      default -> throw new IllegalStateException("no plain body: " + type.kind());
    };
  }

  private static String decimal(LogicalType type, BigDecimal value) {
    return Bodies.scaled(type.scale(), value).map(String::valueOf).orElseGet(() -> Bodies.exact(value));
  }

  private static String real(LogicalType type, double value) {
    return Bodies.scaled(type.scale(), value)
        .map(String::valueOf)
        .orElseGet(() -> Bodies.hexadecimal(value));
  }

  private static byte[] measured(Kind kind, byte[] body) {
    return joined(ascii(kind.tag + String.valueOf(body.length) + ":"), List.of(body));
  }

  private static byte[] collection(Kind kind, List<byte[]> texts) {
    return joined(ascii(kind.tag + String.valueOf(texts.size()) + ":"), texts);
  }

  private static List<byte[]> items(LogicalType type, Object value) {
    if (!(value instanceof Collection<?> values)) {
      throw Values.refused(type.kind().name().toLowerCase(Locale.ROOT), value);
    }
    List<byte[]> texts = new ArrayList<>(values.size());
    values.forEach(item -> texts.add(of(type.of().get(0), item)));
    return texts;
  }

  private static List<byte[]> entries(LogicalType type, Object value) {
    if (!(value instanceof Map<?, ?> map)) {
      throw Values.refused("map", value);
    }
    List<byte[]> texts = new ArrayList<>(map.size());
    map.forEach((k, v) -> texts.add(joined(of(type.of().get(0), k), List.of(of(type.of().get(1), v)))));
    return texts;
  }

  private static List<byte[]> sorted(List<byte[]> texts) {
    texts.sort(Arrays::compareUnsigned);
    return texts;
  }

  private static List<byte[]> once(List<byte[]> sorted) {
    List<byte[]> kept = new ArrayList<>(sorted.size());
    for (byte[] text : sorted) {
      if (kept.isEmpty() || !Arrays.equals(kept.get(kept.size() - 1), text)) {
        kept.add(text);
      }
    }
    return kept;
  }

  private static byte[] joined(byte[] head, List<byte[]> texts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.writeBytes(head);
    texts.forEach(all::writeBytes);
    return all.toByteArray();
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
