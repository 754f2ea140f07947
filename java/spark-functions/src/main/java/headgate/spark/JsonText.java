package headgate.spark;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.math.BigDecimal;

/** JSON as Spark writes a VARIANT: no blanks, the keys of objects in order, numbers without needless digits. */
final class JsonText {
  private static final int MAX_DECIMAL_DIGITS = 38;
  private static final int MAX_LONG_DIGITS = 18;

  private JsonText() {}

  static void appendQuoted(String text, StringBuilder out) {
    out.append('"');
    JsonStringEncoder.getInstance().quoteAsString(text, out);
    out.append('"');
  }

  /** A number as a VARIANT shows it; null when it is beyond the largest DOUBLE. */
  static String ofNumber(String written) {
    if (isPlain(written)) {
      if (written.length() <= MAX_LONG_DIGITS && written.indexOf('.') < 0) {
        return Long.toString(Long.parseLong(written));
      }
      BigDecimal exact = new BigDecimal(written);
      if (exact.precision() <= MAX_DECIMAL_DIGITS && exact.scale() <= MAX_DECIMAL_DIGITS) {
        return exact.stripTrailingZeros().toPlainString();
      }
    }
    double rounded = Double.parseDouble(written);
    return Double.isInfinite(rounded) ? null : Double.toString(rounded);
  }

  /** Whether a number has no exponent and few enough digits for a DECIMAL: those are kept exactly. */
  static boolean isExact(String written) {
    if (!isPlain(written)) {
      return false;
    }
    BigDecimal number = new BigDecimal(written);
    return number.precision() <= MAX_DECIMAL_DIGITS && number.scale() <= MAX_DECIMAL_DIGITS;
  }

  private static boolean isPlain(String written) {
    return written.indexOf('e') < 0 && written.indexOf('E') < 0;
  }
}
