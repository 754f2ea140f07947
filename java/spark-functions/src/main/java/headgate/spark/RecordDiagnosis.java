package headgate.spark;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The slow way to read a record, with Jackson: everything is checked, in the order in which reasons count, and
 * a record that the fast way was only not sure of is accepted.
 */
final class RecordDiagnosis {
  private static final JsonFactory FACTORY = new JsonFactory();
  // How many fields a reason names, and how many characters of each.
  private static final int MAX_NAMED = 20;
  private static final int MAX_CHARACTERS = 40;
  private static final String MASK = "***";

  private final StrictJson reader;
  private final byte[] value;
  private final TreeConverter converter;
  private RecordRow row;
  private String text;
  private boolean hasDuplicateKey;
  private boolean hasInfiniteNumber;

  RecordDiagnosis(StrictJson reader, byte[] value) {
    this.reader = reader;
    this.value = value;
    converter = new TreeConverter(reader);
    row = new RecordRow(reader.width());
  }

  static InternalRow notFramed(StrictJson reader) {
    return new RecordDiagnosis(reader, new byte[0])
        .refuse("not_framed", "the value has no frame of a schema registry");
  }

  InternalRow read() {
    if (!UTF8String.fromBytes(value).isValid()) {
      return refuse("not_utf8", "the value is not UTF-8 text");
    }
    text = new String(value, StandardCharsets.UTF_8);
    if (isBlank(0)) {
      return refuse("empty", "the value is empty");
    }
    JsonTree record;
    int end;
    try (JsonParser parser = FACTORY.createParser(text)) {
      parser.nextToken();
      record = readTree(parser);
      end = record.end();
    } catch (IOException | NullPointerException invalid) {
      return refuse("not_json", "the value is not JSON");
    }
    if (record.kind() != JsonTree.Kind.OBJECT) {
      return refuse("not_an_object", "the value is JSON but not an object");
    }
    if (hasDuplicateKey) {
      return refuse("duplicate_key", "a field stands twice in the record");
    }
    if (!isBlank(end)) {
      return refuse("trailing_text", "something follows the JSON object");
    }
    if (hasHalfSurrogate()) {
      return refuse("half_surrogate", "an escape is half of a surrogate pair");
    }
    return readColumns(record.fields());
  }

  /** The value at the parser's token, with its parts. */
  private JsonTree readTree(JsonParser parser) throws IOException {
    JsonToken token = parser.currentToken();
    int start = (int) parser.currentTokenLocation().getCharOffset();
    if (token == JsonToken.START_ARRAY) {
      List<JsonTree> items = new ArrayList<>();
      while (parser.nextToken() != JsonToken.END_ARRAY) {
        items.add(readTree(parser));
      }
      return JsonTree.list(items, text, start, (int) parser.currentLocation().getCharOffset());
    }
    if (token == JsonToken.START_OBJECT) {
      LinkedHashMap<String, JsonTree> fields = new LinkedHashMap<>();
      while (parser.nextToken() != JsonToken.END_OBJECT) {
        String name = parser.currentName();
        parser.nextToken();
        JsonTree value = readTree(parser);
        hasDuplicateKey |= fields.put(name, value) != null;
      }
      return JsonTree.object(fields, text, start, (int) parser.currentLocation().getCharOffset());
    }
    return readScalar(parser, token, start);
  }

  private JsonTree readScalar(JsonParser parser, JsonToken token, int start) throws IOException {
    JsonTree.Kind kind =
        switch (token) {
          case VALUE_NULL -> JsonTree.Kind.NULL;
          case VALUE_TRUE -> JsonTree.Kind.TRUE;
          case VALUE_FALSE -> JsonTree.Kind.FALSE;
          case VALUE_NUMBER_INT -> JsonTree.Kind.INTEGER;
          case VALUE_NUMBER_FLOAT -> JsonTree.Kind.FRACTION;
          default -> JsonTree.Kind.TEXT;
        };
    boolean hasText = token == JsonToken.VALUE_STRING || token.isNumeric();
    String content = hasText ? parser.getText() : null;
    hasInfiniteNumber |= token.isNumeric() && Double.isInfinite(Double.parseDouble(content));
    return JsonTree.scalar(kind, content, text, start, (int) parser.currentLocation().getCharOffset());
  }

  private InternalRow readColumns(Map<String, JsonTree> fields) {
    List<String> unread = new ArrayList<>();
    List<String> drift = new ArrayList<>();
    List<String> missing = new ArrayList<>();
    for (int index = 0; index < reader.columns.length; index++) {
      Column column = reader.columns[index];
      JsonTree field = fields.get(column.name);
      if (field == null && column.isRequired) {
        missing.add(column.name);
      }
      if (field != null && !readColumn(column, index, field)) {
        unread.add(column.name + " = " + (column.isMasked ? MASK : shorten(field.written())));
        drift.add("~" + column.name);
      }
    }
    if (converter.hasLongExponent) {
      return refuse("out_of_range", outOfRange());
    }
    if (!unread.isEmpty()) {
      String reason = "a field does not have its declared type; " + String.join("; ", unread);
      return refuse("wrong_type", reason, drift);
    }
    if (hasInfiniteNumber || converter.hasInfiniteNumber) {
      return refuse("out_of_range", outOfRange());
    }
    readKey(fields);
    List<String> unknown = new ArrayList<>(fields.keySet());
    for (Column column : reader.columns) {
      unknown.remove(column.name);
    }
    if (reader.options.key != null) {
      unknown.remove(reader.options.key.root);
    }
    return reader.options.keepsDrift ? keepDrift(fields, unknown, missing) : refuseDrift(unknown, missing);
  }

  private boolean readColumn(Column column, int index, JsonTree field) {
    if (field.kind() == JsonTree.Kind.NULL) {
      return true;
    }
    Object converted = converter.convert(field, column.type);
    if (converted == TreeConverter.WRONG_TYPE) {
      return false;
    }
    Object cast = column.castType == null ? converted : column.cast(converted, reader.zone);
    row.setBoxed(index, cast);
    return cast != null;
  }

  private void readKey(Map<String, JsonTree> fields) {
    if (reader.options.key != null) {
      JsonTree root = fields.get(reader.options.key.root);
      row.setObject(reader.keyOrdinal, root == null ? null : reader.options.key.keyIn(root));
    }
  }

  private String outOfRange() {
    for (Column column : reader.columns) {
      if (column.type.contains(JsonType.Kind.DECIMAL)) {
        return "a number is too large for its type, or its exponent has three digits";
      }
    }
    return "a number is too large for its type";
  }

  private InternalRow keepDrift(Map<String, JsonTree> fields, List<String> unknown, List<String> missing) {
    StringBuilder extra = new StringBuilder();
    for (String name : unknown) {
      extra.append(extra.isEmpty() ? '{' : ',');
      JsonText.appendQuoted(name, extra);
      extra.append(':').append(converter.toJson(fields.get(name)));
    }
    StringBuilder absent = new StringBuilder();
    for (String name : missing) {
      absent.append(absent.isEmpty() ? '[' : ',');
      JsonText.appendQuoted(name, absent);
    }
    if (!unknown.isEmpty()) {
      row.setObject(reader.extraOrdinal, UTF8String.fromString(extra.append('}').toString()));
    }
    if (!missing.isEmpty()) {
      row.setObject(reader.missingOrdinal, UTF8String.fromString(absent.append(']').toString()));
    }
    return row;
  }

  private InternalRow refuseDrift(List<String> unknown, List<String> missing) {
    if (unknown.isEmpty() && missing.isEmpty()) {
      return row;
    }
    List<String> drift = new ArrayList<>();
    unknown.forEach(name -> drift.add("+" + name));
    missing.forEach(name -> drift.add("-" + name));
    StringBuilder reason =
        new StringBuilder(
            unknown.isEmpty()
                ? "the record lacks a declared field"
                : "the record has a field that is not declared");
    for (String name : drift.subList(0, Math.min(MAX_NAMED, drift.size()))) {
      reason.append("; ").append(shorten(name));
    }
    return refuse(unknown.isEmpty() ? "missing_field" : "unknown_field", reason.toString(), drift);
  }

  private RecordRow refuse(String code, String reason) {
    row = new RecordRow(reader.width());
    row.setObject(reader.reasonCodeOrdinal, UTF8String.fromString(code));
    row.setObject(reader.reasonOrdinal, UTF8String.fromString(reason));
    return row;
  }

  private RecordRow refuse(String code, String reason, Collection<String> drift) {
    Object[] marks = drift.stream().map(UTF8String::fromString).toArray();
    refuse(code, reason).setObject(reader.driftOrdinal, new GenericArrayData(marks));
    return row;
  }

  private boolean isBlank(int from) {
    for (int at = from; at < text.length(); at++) {
      if (" \t\r\n".indexOf(text.charAt(at)) < 0) {
        return false;
      }
    }
    return true;
  }

  /** Whether an escape is half of a surrogate pair; the text is known to be JSON. */
  private boolean hasHalfSurrogate() {
    int at = text.indexOf('\\');
    while (at >= 0) {
      int next = at + 2;
      if (text.charAt(at + 1) == 'u') {
        char unit = (char) Integer.parseInt(text, at + 2, at + 6, 16);
        next = at + 6;
        if (Character.isHighSurrogate(unit) && text.startsWith("\\u", next)) {
          char low = (char) Integer.parseInt(text, next + 2, next + 6, 16);
          next += 6;
          if (!Character.isLowSurrogate(low)) {
            return true;
          }
        } else if (Character.isSurrogate(unit)) {
          return true;
        }
      }
      at = text.indexOf('\\', next);
    }
    return false;
  }

  private static String shorten(String text) {
    return text.codePointCount(0, text.length()) <= MAX_CHARACTERS
        ? text
        : text.substring(0, text.offsetByCodePoints(0, MAX_CHARACTERS));
  }
}
