package headgate.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads a value of any kind with its parts from a cursor: the field in which a record's key stands. */
final class TreeScanner {
  private static final int MAX_DEPTH = 100;
  private final JsonCursor cursor;
  private int depth;

  TreeScanner(JsonCursor cursor) {
    this.cursor = cursor;
  }

  /** The value at the cursor; null where it is not sure that it is JSON without a name twice. */
  JsonTree read() {
    int start = cursor.position;
    switch (cursor.peek()) {
      case '"':
        UTF8String text = cursor.readText();
        return text == null ? null : scalar(JsonTree.Kind.TEXT, text.toString(), start);
      case 't':
        return cursor.skipWord("true") ? scalar(JsonTree.Kind.TRUE, null, start) : null;
      case 'f':
        return cursor.skipWord("false") ? scalar(JsonTree.Kind.FALSE, null, start) : null;
      case 'n':
        return cursor.skipWord("null") ? scalar(JsonTree.Kind.NULL, null, start) : null;
      case '[', '{':
        depth++;
        JsonTree parts = depth > MAX_DEPTH ? null : cursor.peek() == '[' ? readList() : readObject();
        depth--;
        return parts;
      default:
        if (!cursor.readNumber()) {
          return null;
        }
        String number = cursor.textFrom(start);
        return Double.isInfinite(Double.parseDouble(number))
            ? null
            : scalar(cursor.isInteger ? JsonTree.Kind.INTEGER : JsonTree.Kind.FRACTION, number, start);
    }
  }

  private JsonTree scalar(JsonTree.Kind kind, String text, int start) {
    return JsonTree.scalar(kind, text, cursor.bytes, start, cursor.position);
  }

  private JsonTree readList() {
    int start = cursor.position++;
    List<JsonTree> items = new ArrayList<>();
    cursor.skipBlanks();
    byte separator = cursor.peek() == ']' ? cursor.skipSeparator(']') : (byte) ',';
    while (separator == ',') {
      JsonTree item = read();
      if (item == null) {
        return null;
      }
      items.add(item);
      separator = cursor.skipSeparator(']');
    }
    return separator == 0 ? null : JsonTree.list(items, cursor.bytes, start, cursor.position);
  }

  private JsonTree readObject() {
    int start = cursor.position++;
    LinkedHashMap<String, JsonTree> fields = new LinkedHashMap<>();
    cursor.skipBlanks();
    byte separator = cursor.peek() == '}' ? cursor.skipSeparator('}') : (byte) ',';
    while (separator == ',') {
      int nameStart = cursor.position + 1;
      if (!cursor.skip('"') || !cursor.skipName()) {
        return null;
      }
      int nameLength = cursor.position - 1 - nameStart;
      String name = new String(cursor.bytes, nameStart, nameLength, StandardCharsets.UTF_8);
      JsonTree value = cursor.skipColon() ? read() : null;
      if (value == null || fields.put(name, value) != null) {
        return null;
      }
      separator = cursor.skipSeparator('}');
    }
    return separator == 0 ? null : JsonTree.object(fields, cursor.bytes, start, cursor.position);
  }
}
