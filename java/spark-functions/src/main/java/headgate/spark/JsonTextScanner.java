package headgate.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Copies JSON values from a cursor into one text, written as Spark writes a VARIANT: no blanks, the keys of
 * objects in order, numbers without needless digits. Where it returns false the value has to be read by
 * Jackson: it is not JSON, it has a name twice, or it is of a kind that is left to Jackson.
 */
final class JsonTextScanner {
  private static final int MAX_DEPTH = 100;
  // From this byte on, UTF-8 and Java's UTF-16 order characters differently.
  private static final int ORDER_DIFFERS = 0xEE;
  private static final byte[] HEX = "0123456789ABCDEF".getBytes(StandardCharsets.US_ASCII);

  private final JsonCursor cursor;
  private final byte[] bytes;
  private byte[] out = new byte[128];
  private int length;

  JsonTextScanner(JsonCursor cursor) {
    this.cursor = cursor;
    bytes = cursor.bytes;
  }

  void append(char letter) {
    ensure(1);
    out[length++] = (byte) letter;
  }

  void append(int start, int end) {
    ensure(end - start);
    System.arraycopy(bytes, start, out, length, end - start);
    length += end - start;
  }

  UTF8String text() {
    return UTF8String.fromBytes(out, 0, length);
  }

  boolean isEmpty() {
    return length == 0;
  }

  /** Copy the value that begins at the cursor. */
  boolean copyValue() {
    return copyValue(0);
  }

  /** Check the value that begins at the cursor, and forget it. */
  boolean skipValue() {
    int before = length;
    boolean isValid = copyValue(0);
    length = before;
    return isValid;
  }

  private boolean copyValue(int depth) {
    int start = cursor.position;
    boolean isWord;
    switch (cursor.peek()) {
      case '"':
        return copyText();
      case '{':
        return depth < MAX_DEPTH && copyObject(depth + 1);
      case '[':
        return depth < MAX_DEPTH && copyList(depth + 1);
      case 't':
        isWord = cursor.skipWord("true");
        break;
      case 'f':
        isWord = cursor.skipWord("false");
        break;
      case 'n':
        isWord = cursor.skipWord("null");
        break;
      default:
        return copyNumber();
    }
    append(start, cursor.position);
    return isWord;
  }

  private boolean copyText() {
    int start = cursor.position;
    UTF8String text = cursor.readText();
    if (text == null) {
      return false;
    }
    if (text.numBytes() == cursor.position - start - 2) {
      append(start, cursor.position); // it has no escapes
    } else {
      appendQuoted(text);
    }
    return true;
  }

  private void appendQuoted(UTF8String text) {
    ensure(6 * text.numBytes() + 2);
    out[length++] = '"';
    for (int at = 0; at < text.numBytes(); at++) {
      byte letter = text.getByte(at);
      int shortEscape = "\b\t\n\f\r\"\\".indexOf(letter);
      if (shortEscape >= 0) {
        out[length++] = '\\';
        out[length++] = (byte) "btnfr\"\\".charAt(shortEscape);
      } else if (letter >= 0 && letter < ' ') {
        out[length++] = '\\';
        out[length++] = 'u';
        out[length++] = '0';
        out[length++] = '0';
        out[length++] = HEX[letter >> 4];
        out[length++] = HEX[letter & 15];
      } else {
        out[length++] = letter;
      }
    }
    out[length++] = '"';
  }

  private boolean copyNumber() {
    int start = cursor.position;
    if (!cursor.readNumber()) {
      return false;
    }
    if (cursor.isInteger && cursor.digits <= 18 && cursor.mantissa != 0) {
      append(start, cursor.position);
      return true;
    }
    String text = JsonText.ofNumber(cursor.textFrom(start));
    if (text == null) {
      return false;
    }
    UTF8String number = UTF8String.fromString(text);
    ensure(number.numBytes());
    number.writeToMemory(out, Platform.BYTE_ARRAY_OFFSET + length);
    length += number.numBytes();
    return true;
  }

  private boolean copyList(int depth) {
    cursor.position++;
    append('[');
    cursor.skipBlanks();
    if (cursor.peek() == ']') {
      cursor.position++;
      append(']');
      return true;
    }
    while (copyValue(depth)) {
      byte separator = cursor.skipSeparator(']');
      if (separator == 0) {
        return false;
      }
      append((char) separator);
      if (separator == ']') {
        return true;
      }
    }
    return false;
  }

  private boolean copyObject(int depth) {
    cursor.position++;
    append('{');
    cursor.skipBlanks();
    if (cursor.peek() == '}') {
      cursor.position++;
      append('}');
      return true;
    }
    Fields fields = new Fields();
    while (cursor.skip('"')) {
      int start = cursor.position;
      if (!cursor.skipName()) {
        return false;
      }
      int end = cursor.position - 1;
      if (!fields.begin(start, end)) {
        return false;
      }
      append(start - 1, end + 1);
      append(':');
      if (!cursor.skipColon() || !copyValue(depth)) {
        return false;
      }
      fields.finish();
      byte separator = cursor.skipSeparator('}');
      if (separator == 0) {
        return false;
      }
      append((char) separator);
      if (separator == '}') {
        return fields.sort();
      }
    }
    return false;
  }

  private void ensure(int more) {
    if (length + more > out.length) {
      out = Arrays.copyOf(out, Math.max(2 * out.length, length + more));
    }
  }

  /** The fields of the object that is being copied: where each name stands, and where each field was written. */
  private final class Fields {
    private int[] places = new int[16]; // four numbers a field: name from, name to, written from, written to
    private int size;
    private boolean isSorted = true;

    boolean begin(int nameStart, int nameEnd) {
      if (size == places.length) {
        places = Arrays.copyOf(places, 2 * size);
      }
      for (int at = nameStart; at < nameEnd; at++) {
        if (bytes[at] < 0 && (bytes[at] & 0xFF) >= ORDER_DIFFERS) {
          return false;
        }
      }
      places[size] = nameStart;
      places[size + 1] = nameEnd;
      places[size + 2] = length;
      isSorted &= size == 0 || compare(size - 4, size) < 0;
      return true;
    }

    void finish() {
      places[size + 3] = length;
      size += 4;
    }

    private int compare(int left, int right) {
      return Arrays.compareUnsigned(
          bytes, places[left], places[left + 1], bytes, places[right], places[right + 1]);
    }

    /** Bring the fields that were written into the order of their names; false where one is there twice. */
    boolean sort() {
      if (isSorted) {
        return true; // names that rise strictly are distinct
      }
      Integer[] order = new Integer[size / 4];
      for (int at = 0; at < order.length; at++) {
        order[at] = 4 * at;
      }
      Arrays.sort(order, this::compare);
      int start = places[2];
      byte[] written = Arrays.copyOfRange(out, start, length);
      length = start;
      for (int at = 0; at < order.length; at++) {
        int field = order[at];
        if (at > 0 && compare(order[at - 1], field) == 0) {
          return false;
        }
        int from = places[field + 2] - start;
        int count = places[field + 3] - places[field + 2];
        System.arraycopy(written, from, out, length, count);
        length += count;
        out[length++] = (byte) (at + 1 < order.length ? ',' : '}');
      }
      return true;
    }
  }
}
