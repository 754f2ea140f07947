package headgate.connect.hash;

import headgate.connect.hash.LogicalType.Unit;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.time.Instant;
import java.util.Optional;

/** The bodies of version 2, and what version 1 needs to write the same values in its own way. */
final class Bodies {
  private static final int MOST_DIGITS = 38;
  private static final double LIMIT = 0x1p63;
  private static final char[] HEX = "0123456789ABCDEF".toCharArray();

  private Bodies() {}

  static byte[] string(LogicalType type, Object value) {
    if (!(value instanceof String text)) {
      throw Values.refused("string", value);
    }
    String form = type.nfc() ? Normalizer.normalize(text, Normalizer.Form.NFC) : text;
    return utf8(type.trim() ? trimmed(form) : form);
  }

  private static String trimmed(String text) {
    int from = 0;
    int to = text.length();
    while (from < to && text.charAt(from) == ' ') {
      from++;
    }
    while (to > from && text.charAt(to - 1) == ' ') {
      to--;
    }
    return text.substring(from, to);
  }

  /** UTF-8 that refuses half of a surrogate pair, where getBytes would write a question mark. */
  static byte[] utf8(String text) {
    try {
      ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] bytes = new byte[encoded.remaining()];
      encoded.get(bytes);
      return bytes;
    } catch (CharacterCodingException error) {
      throw new IllegalArgumentException("a text has half of a surrogate pair", error);
    }
  }

  /** The integer value × 10^scale; empty when there is no scale or it has more than 38 digits. */
  static Optional<BigInteger> scaled(Integer scale, BigDecimal value) {
    if (scale == null) {
      return Optional.empty();
    }
    // Judged by its magnitude first: 1E+1000000000 must not become that many digits.
    long magnitude = (long) value.precision() - value.scale() + scale;
    if (value.signum() == 0 || magnitude < 0) {
      return Optional.of(BigInteger.ZERO);
    }
    if (magnitude > MOST_DIGITS + 1) {
      return Optional.empty();
    }
    BigInteger whole = value.setScale(scale, RoundingMode.HALF_UP).unscaledValue();
    boolean fits = new BigDecimal(whole).precision() <= MOST_DIGITS;
    return fits ? Optional.of(whole) : Optional.empty();
  }

  static String exact(BigDecimal value) {
    if (value.signum() == 0) {
      return "0e0";
    }
    BigDecimal shortest = value.stripTrailingZeros();
    return shortest.unscaledValue() + "e" + -(long) shortest.scale();
  }

  /** The integer nearest to value × 10^scale in doubles; empty when there is none of 64 bits. */
  static Optional<Long> scaled(Integer scale, double value) {
    if (scale == null) {
      return Optional.empty();
    }
    double product = value * Math.pow(10, scale);
    boolean fits = product > -LIMIT && product < LIMIT;
    return fits ? Optional.of((long) Math.rint(product)) : Optional.empty();
  }

  static String hexadecimal(double value) {
    return value == 0 ? "0x0.0p0" : Double.toHexString(value);
  }

  static long units(Unit unit, Instant time) {
    return Math.addExact(
        Math.multiplyExact(time.getEpochSecond(), unit.perSecond), time.getNano() / unit.nanos);
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder(2 * bytes.length);
    for (byte b : bytes) {
      text.append(HEX[(b >> 4) & 15]).append(HEX[b & 15]);
    }
    return text.toString();
  }
}
