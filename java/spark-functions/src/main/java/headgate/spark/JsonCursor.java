package headgate.spark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A position in the UTF-8 bytes of one record, and the tokens of JSON from there on. A method that returns
 * false, null or -1 has met something that is not JSON or that it leaves to others; the position is then
 * anywhere, and the record has to be read by Jackson.
 */
final class JsonCursor {
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long HIGH_BITS = 0x8080808080808080L;
  // Jackson refuses names of more than 50,000 characters and numbers of more than 1,000.
  private static final int MAX_NAME_BYTES = 10_000;
  private static final int MAX_NUMBER_DIGITS = 400;

  final byte[] bytes;
  final int end;
  int position;

  // The number that was read last. The mantissa is exact up to 18 digits.
  long mantissa;
  int digits;
  int exponent;
  boolean isNegative;
  boolean isInteger;
  /** The exponent has three digits: a DECIMAL must not have it, whatever its value. */
  boolean hasLongExponent;

  JsonCursor(byte[] bytes, int start) {
    this.bytes = bytes;
    end = bytes.length;
    position = start;
  }

  boolean isUtf8() {
    int at = position;
    long bits = 0;
    for (; at <= end - 8; at += 8) {
      bits |= (long) LONGS.get(bytes, at);
    }
    for (; at < end; at++) {
      bits |= (long) bytes[at] << 56;
    }
    return (bits & HIGH_BITS) == 0 || UTF8String.fromBytes(bytes, position, end - position).isValid();
  }

  void skipBlanks() {
    while (position < end) {
      byte letter = bytes[position];
      if (letter != ' ' && letter != '\n' && letter != '\r' && letter != '\t') {
        return;
      }
      position++;
    }
  }

  boolean isAtEnd() {
    return position >= end;
  }

  /** The byte at the position; 0, which begins no token, at the end. */
  byte peek() {
    return position < end ? bytes[position] : 0;
  }

  boolean skip(char expected) {
    return position < end && bytes[position++] == expected;
  }

  boolean skipWord(String word) {
    if (end - position < word.length()) {
      return false;
    }
    for (int at = 0; at < word.length(); at++) {
      if (bytes[position++] != word.charAt(at)) {
        return false;
      }
    }
    return true;
  }

  /** Skip the colon behind a name, to the first byte of the value. */
  boolean skipColon() {
    skipBlanks();
    if (!skip(':')) {
      return false;
    }
    skipBlanks();
    return position < end;
  }

  /**
   * Skip what stands between two values: a comma gives ',', the end gives the closing bracket, and anything
   * else 0.
   */
  byte skipSeparator(char closing) {
    skipBlanks();
    byte letter = peek();
    position++;
    if (letter == ',') {
      skipBlanks();
      return ',';
    }
    return letter == closing ? letter : 0;
  }

  /** Whether this name and its closing quote are next. */
  boolean isNext(byte[] name) {
    int close = position + name.length;
    return close < end
        && bytes[close] == '"'
        && Arrays.equals(bytes, position, close, name, 0, name.length);
  }

  /** Skip a name and its closing quote, from behind the opening one; false where it has escapes. */
  boolean skipName() {
    int start = position;
    return skipPlainText() && position - start <= MAX_NAME_BYTES;
  }

  /** Skip a text and its closing quote, from behind the opening one; false where it has escapes. */
  boolean skipPlainText() {
    while (position < end) {
      byte letter = bytes[position++];
      if (letter == '"') {
        return true;
      }
      if (letter == '\\' || letter >= 0 && letter < ' ') {
        return false;
      }
    }
    return false;
  }

  /** A text, from its opening quote; without escapes it is a part of the record's bytes, not a copy. */
  UTF8String readText() {
    if (!skip('"')) {
      return null;
    }
    int start = position;
    while (position < end) {
      byte letter = bytes[position++];
      if (letter == '"') {
        return UTF8String.fromBytes(bytes, start, position - 1 - start);
      }
      if (letter == '\\') {
        position--;
        return readEscapedText(start);
      }
      if (letter >= 0 && letter < ' ') {
        return null;
      }
    }
    return null;
  }

  private UTF8String readEscapedText(int start) {
    int length = position - start;
    byte[] text = new byte[length + 64];
    System.arraycopy(bytes, start, text, 0, length);
    while (position < end) {
      // An escape adds four bytes at most.
      if (length > text.length - 4) {
        text = Arrays.copyOf(text, 2 * text.length);
      }
      byte letter = bytes[position++];
      if (letter == '"') {
        return UTF8String.fromBytes(text, 0, length);
      }
      if (letter >= 0 && letter < ' ') {
        return null;
      }
      if (letter != '\\') {
        text[length++] = letter;
        continue;
      }
      int codePoint = readEscape();
      if (codePoint < 0) {
        return null;
      }
      length = encode(codePoint, text, length);
    }
    return null;
  }

  /** The character of an escape, from behind its backslash; -1 also for half a surrogate pair. */
  private int readEscape() {
    byte letter = peek();
    position++;
    switch (letter) {
      case '"', '\\', '/':
        return letter;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'u':
        int unit = readHex();
        if (unit < 0 || !Character.isSurrogate((char) unit)) {
          return unit;
        }
        if (Character.isLowSurrogate((char) unit) || !skip('\\') || !skip('u')) {
          return -1;
        }
        int low = readHex();
        return low >= 0 && Character.isLowSurrogate((char) low)
            ? Character.toCodePoint((char) unit, (char) low)
            : -1;
      default:
        return -1;
    }
  }

  private int readHex() {
    if (end - position < 4) {
      return -1;
    }
    int unit = 0;
    for (int at = 0; at < 4; at++) {
      int digit = Character.digit(bytes[position++], 16);
      if (digit < 0) {
        return -1;
      }
      unit = unit << 4 | digit;
    }
    return unit;
  }

  private static int encode(int codePoint, byte[] text, int length) {
    if (codePoint < 0x80) {
      text[length++] = (byte) codePoint;
      return length;
    }
    if (codePoint < 0x800) {
      text[length++] = (byte) (0xC0 | codePoint >> 6);
    } else {
      if (codePoint < 0x10000) {
        text[length++] = (byte) (0xE0 | codePoint >> 12);
      } else {
        text[length++] = (byte) (0xF0 | codePoint >> 18);
        text[length++] = (byte) (0x80 | codePoint >> 12 & 0x3F);
      }
      text[length++] = (byte) (0x80 | codePoint >> 6 & 0x3F);
    }
    text[length++] = (byte) (0x80 | codePoint & 0x3F);
    return length;
  }

  /** Read a number by JSON's grammar into this cursor; what may follow it is for the caller to check. */
  boolean readNumber() {
    isNegative = isInteger = hasLongExponent = false;
    mantissa = 0;
    exponent = 0;
    if (peek() == '-') {
      isNegative = true;
      position++;
    }
    int start = position;
    skipDigits();
    digits = position - start;
    if (digits == 0 || digits > 1 && bytes[start] == '0') {
      return false;
    }
    isInteger = true;
    if (peek() == '.') {
      isInteger = false;
      start = ++position;
      skipDigits();
      if (position == start) {
        return false;
      }
      exponent = start - position;
      digits += position - start;
    }
    if (peek() == 'e' || peek() == 'E') {
      isInteger = false;
      position++;
      return readExponent() && digits < MAX_NUMBER_DIGITS;
    }
    return digits < MAX_NUMBER_DIGITS;
  }

  private void skipDigits() {
    while (position < end && bytes[position] >= '0' && bytes[position] <= '9') {
      mantissa = mantissa * 10 + (bytes[position++] - '0');
    }
  }

  private boolean readExponent() {
    boolean isDown = peek() == '-';
    if (isDown || peek() == '+') {
      position++;
    }
    int start = position;
    int power = 0;
    while (position < end && bytes[position] >= '0' && bytes[position] <= '9' && position - start < 4) {
      power = power * 10 + (bytes[position++] - '0');
    }
    exponent += isDown ? -power : power;
    hasLongExponent = position - start > 2;
    return position > start && position - start < 4;
  }

  String textFrom(int start) {
    return new String(bytes, start, position - start, StandardCharsets.UTF_8);
  }
}
