package headgate.spark;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/**
 * Checks the shared file of cases: one JSON object a line with a record, the columns and options to read it with,
 * and either the row, every value as text, or the reason code. Argument: the file.
 */
public final class RecordCaseFile {
  /**
   * One line of the file.
   *
   * @param record the record as text; null where `base64` has its bytes
   * @param row the columns that are not NULL, with their values as text; null where the record is refused
   */
  record Case(
      String name,
      String columns,
      Map<String, String> options,
      String record,
      String base64,
      Map<String, Object> row,
      String code,
      String reason) {
    byte[] bytes() {
      return record == null ? Base64.getDecoder().decode(base64) : record.getBytes(StandardCharsets.UTF_8);
    }
  }

  private static final ObjectMapper MAPPER = new ObjectMapper();

  private RecordCaseFile() {}

  public static void main(String[] arguments) throws IOException {
    Path file = Path.of(arguments[0]);
    List<String> differences = check(file);
    differences.forEach(System.out::println);
    System.out.println(read(file).size() + " cases, " + differences.size() + " differences");
    System.exit(differences.isEmpty() ? 0 : 1);
  }

  static List<Case> read(Path file) throws IOException {
    List<Case> cases = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      cases.add(toCase(MAPPER.readValue(line, new TypeReference<Map<String, Object>>() {})));
    }
    return cases;
  }

  @SuppressWarnings("unchecked")
  private static Case toCase(Map<String, Object> line) {
    return new Case(
        (String) line.get("name"),
        (String) line.get("columns"),
        (Map<String, String>) line.get("options"),
        (String) line.get("record"),
        (String) line.get("base64"),
        (Map<String, Object>) line.get("row"),
        (String) line.get("code"),
        (String) line.get("reason"));
  }

  /** The cases that come out differently, by the usual way or by the slow way alone. */
  static List<String> check(Path file) throws IOException {
    List<String> differences = new ArrayList<>();
    for (Case each : read(file)) {
      StrictJson reader = new StrictJson(each.columns, each.options, "UTC");
      byte[] bytes = each.bytes();
      List<InternalRow> rows = new ArrayList<>(List.of(reader.read(bytes)));
      if (!reader.options.isFramed) {
        rows.add(reader.diagnose(bytes, 0));
      }
      for (InternalRow row : rows) {
        Map<String, Object> shown = show(row, reader.resultType());
        Map<String, Object> expected = each.row;
        if (each.code != null) {
          expected = new LinkedHashMap<>(Map.of("_reason_code", each.code));
          if (each.reason != null) {
            expected.put("_reason", each.reason);
          }
          shown.keySet().retainAll(expected.keySet());
        }
        if (!expected.equals(shown)) {
          differences.add(each.name + ": expected " + expected + ", got " + show(row, reader.resultType()));
        }
      }
    }
    return differences;
  }

  /** The columns that are not NULL, with their values as text. */
  static Map<String, Object> show(InternalRow row, StructType type) {
    Map<String, Object> shown = new LinkedHashMap<>();
    for (int at = 0; at < type.size(); at++) {
      if (!row.isNullAt(at)) {
        DataType field = type.fields()[at].dataType();
        shown.put(type.fields()[at].name(), show(row.get(at, field), field));
      }
    }
    return shown;
  }

  private static Object show(Object value, DataType type) {
    if (value == null) {
      return null;
    } else if (type.equals(DataTypes.DateType)) {
      return LocalDate.ofEpochDay((int) value).toString();
    } else if (type.equals(DataTypes.TimestampType)) {
      return Instant.EPOCH.plus((long) value, ChronoUnit.MICROS).toString();
    } else if (type.equals(DataTypes.TimestampNTZType)) {
      Instant instant = Instant.EPOCH.plus((long) value, ChronoUnit.MICROS);
      return LocalDateTime.ofInstant(instant, ZoneOffset.UTC).toString();
    } else if (type instanceof StructType struct) {
      return show((InternalRow) value, struct);
    } else if (type instanceof ArrayType array) {
      return show((ArrayData) value, array.elementType());
    } else if (type instanceof MapType map) {
      Map<String, Object> shown = new LinkedHashMap<>();
      List<Object> values = show(((MapData) value).valueArray(), map.valueType());
      for (int at = 0; at < values.size(); at++) {
        shown.put(((MapData) value).keyArray().getUTF8String(at).toString(), values.get(at));
      }
      return shown;
    }
    return value.toString();
  }

  private static List<Object> show(ArrayData array, DataType type) {
    List<Object> items = new ArrayList<>();
    for (int at = 0; at < array.numElements(); at++) {
      items.add(array.isNullAt(at) ? null : show(array.get(at, type), type));
    }
    return items;
  }
}
