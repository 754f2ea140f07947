package headgate.connect.hash;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import org.apache.kafka.connect.json.JsonConverter;

/** Hashes every shared vector, in several time zones and locales; what differs is printed. */
public final class VectorCheck {
  // The strange ones first: what is set up once must not be set up in a plain place.
  static final List<String> ZONES = List.of("Asia/Kathmandu", "America/St_Johns", "UTC");
  static final List<String> LOCALES = List.of("ar-EG-u-nu-arab", "tr-TR", "en-US");

  private VectorCheck() {}

  public static void main(String[] files) throws IOException {
    List<Map<?, ?>> vectors = read(Path.of(files[0]));
    List<String> faults = faults(vectors);
    faults.stream().limit(20).forEach(System.out::println);
    System.out.printf(
        Locale.ROOT,
        "%d vectors, %d zones, %d locales, %d differences%n",
        vectors.size(), ZONES.size(), LOCALES.size(), faults.size());
    System.exit(faults.isEmpty() && !vectors.isEmpty() ? 0 : 1);
  }

  static List<Map<?, ?>> read(Path file) throws IOException {
    List<Map<?, ?>> vectors = new ArrayList<>();
    try (JsonConverter json = new JsonConverter()) {
      json.configure(Map.of("schemas.enable", "false"), false);
      for (String line : Files.readAllLines(file)) {
        byte[] bytes = line.getBytes(StandardCharsets.UTF_8);
        vectors.add((Map<?, ?>) json.toConnectData("", bytes).value());
      }
    }
    return vectors;
  }

  static List<String> faults(List<Map<?, ?>> vectors) {
    List<String> faults = new ArrayList<>();
    for (String zone : ZONES) {
      for (String locale : LOCALES) {
        TimeZone.setDefault(TimeZone.getTimeZone(zone));
        Locale.setDefault(Locale.forLanguageTag(locale));
        for (Map<?, ?> vector : vectors) {
          check(vector, zone + " " + locale + " vector " + vector.get("id"), faults);
        }
      }
    }
    return faults;
  }

  private static void check(Map<?, ?> vector, String name, List<String> faults) {
    try {
      HashContract contract = contract((List<?>) vector.get("fields"));
      Map<String, Object> row = row(contract, (Map<?, ?>) vector.get("row"));
      RowHash newer = RowHash.version2(contract);
      RowHash older = RowHash.version1(contract, "SHA-256");
      compare(name + " text", vector.get("text"), HexFormat.of().formatHex(newer.text(row::get)), faults);
      compare(name + " v2", vector.get("v2"), newer.of(row::get), faults);
      compare(name + " v1", vector.get("v1"), older.of(row::get), faults);
    } catch (RuntimeException error) {
      faults.add(name + " (" + vector.get("trap") + "): " + error);
    }
  }

  private static void compare(String what, Object wanted, Object found, List<String> faults) {
    if (!found.equals(wanted)) {
      faults.add(what + ": " + found + " instead of " + wanted);
    }
  }

  private static HashContract contract(List<?> listed) {
    List<HashField> fields = new ArrayList<>();
    for (Object field : listed) {
      Map<?, ?> facts = (Map<?, ?>) field;
      fields.add(new HashField((String) facts.get("name"), LogicalType.parse((String) facts.get("type"))));
    }
    return new HashContract(fields);
  }

  private static Map<String, Object> row(HashContract contract, Map<?, ?> written) {
    Map<String, Object> row = new HashMap<>();
    contract.fields().forEach(f -> row.put(f.name(), value(f.type(), written.get(f.name()))));
    return row;
  }

  /** A value as the vector file writes it, as Java would hold it. */
  private static Object value(LogicalType type, Object written) {
    if (written == null) {
      return null;
    }
    return switch (type.kind()) {
      case INTEGER -> new BigInteger((String) written);
      case DECIMAL -> new BigDecimal((String) written);
      case DOUBLE -> Double.valueOf((String) written);
      case BINARY -> HexFormat.of().parseHex((String) written);
      case LIST, SET -> items(type, (List<?>) written);
      case MAP -> entries(type, (List<?>) written);
      default -> written;
    };
  }

  private static List<Object> items(LogicalType type, List<?> written) {
    List<Object> items = new ArrayList<>();
    written.forEach(item -> items.add(value(type.of().get(0), item)));
    return items;
  }

  private static Map<Object, Object> entries(LogicalType type, List<?> written) {
    Map<Object, Object> entries = new LinkedHashMap<>();
    for (Object pair : written) {
      List<?> entry = (List<?>) pair;
      entries.put(value(type.of().get(0), entry.get(0)), value(type.of().get(1), entry.get(1)));
    }
    return entries;
  }
}
