package headgate.spark;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One JSON value with its parts; numbers are kept as they are written. Start and end are the value's place in
 * the source, which is the record's bytes or its text.
 *
 * @param text the content of a text, or a number as written; else null
 * @param items the items of a list; else null
 * @param fields the fields of an object in their order; else null
 */
record JsonTree(
    Kind kind, String text, List<JsonTree> items, Map<String, JsonTree> fields, Object source, int start, int end) {

  enum Kind {
    NULL,
    TRUE,
    FALSE,
    INTEGER,
    /** A number with a fraction or an exponent. */
    FRACTION,
    TEXT,
    LIST,
    OBJECT
  }

  static JsonTree scalar(Kind kind, String text, Object source, int start, int end) {
    return new JsonTree(kind, text, null, null, source, start, end);
  }

  static JsonTree list(List<JsonTree> items, Object source, int start, int end) {
    return new JsonTree(Kind.LIST, null, items, null, source, start, end);
  }

  static JsonTree object(LinkedHashMap<String, JsonTree> fields, Object source, int start, int end) {
    return new JsonTree(Kind.OBJECT, null, null, fields, source, start, end);
  }

  boolean isNumber() {
    return kind == Kind.INTEGER || kind == Kind.FRACTION;
  }

  /** The value as the record has it; of a text its content. */
  String written() {
    if (text != null) {
      return text;
    }
    return source instanceof byte[] bytes
        ? new String(bytes, start, end - start, StandardCharsets.UTF_8)
        : ((String) source).substring(start, end);
  }

  /** The value as JSON without blanks; numbers, and the order of fields, are as the record has them. */
  void appendCompact(StringBuilder out) {
    switch (kind) {
      case TEXT -> JsonText.appendQuoted(text, out);
      case LIST -> {
        out.append('[');
        for (int at = 0; at < items.size(); at++) {
          out.append(at > 0 ? "," : "");
          items.get(at).appendCompact(out);
        }
        out.append(']');
      }
      case OBJECT -> {
        out.append('{');
        String comma = "";
        for (Map.Entry<String, JsonTree> field : fields.entrySet()) {
          out.append(comma);
          JsonText.appendQuoted(field.getKey(), out);
          field.getValue().appendCompact(out.append(':'));
          comma = ",";
        }
        out.append('}');
      }
      default -> out.append(written());
    }
  }
}
