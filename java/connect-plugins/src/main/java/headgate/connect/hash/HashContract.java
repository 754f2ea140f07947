package headgate.connect.hash;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.json.JsonConverter;

/** The fields of a row that are hashed, in order, each with its type. */
public record HashContract(List<HashField> fields) {
  public HashContract {
    Set<String> names = new LinkedHashSet<>();
    for (HashField field : fields) {
      if (!names.add(field.name())) {
        throw new IllegalArgumentException("the contract names " + field.name() + " twice");
      }
    }
    if (fields.isEmpty()) {
      throw new IllegalArgumentException("the contract names no field");
    }
    fields = List.copyOf(fields);
  }

  /**
   * Reads a contract: its one-line form ({@code col1:string,col2:decimal(2)}), JSON text, or the
   * path of a file with either.
   */
  public static HashContract read(String setting) {
    String text = setting.strip();
    Path file = file(text);
    if (file == null) {
      return parse(text);
    }
    try {
      return parse(Files.readString(file, StandardCharsets.UTF_8).strip());
    } catch (IOException error) {
      throw new IllegalArgumentException("the contract " + file + " cannot be read", error);
    }
  }

  private static Path file(String text) {
    if (text.startsWith("{")) {
      return null;
    }
    try {
      Path path = Path.of(text);
      return Files.isRegularFile(path) ? path : null;
    } catch (InvalidPathException error) {
      return null;
    }
  }

  private static HashContract parse(String text) {
    return text.startsWith("{") ? ofJson(text) : new HashContract(new TypeReader(text).fields());
  }

  private static HashContract ofJson(String text) {
    if (!(json(text) instanceof Map<?, ?> contract) || !(contract.get("fields") instanceof List<?> listed)) {
      throw new IllegalArgumentException("the contract's JSON has no list of fields");
    }
    List<HashField> fields = new ArrayList<>();
    listed.forEach(field -> fields.add(field(field)));
    return new HashContract(fields);
  }

  private static HashField field(Object field) {
    // A type must be whole in its one line: a scale beside it would otherwise be passed over.
    if (field instanceof Map<?, ?> map
        && Set.of("name", "type").equals(map.keySet())
        && map.get("name") instanceof String name
        && map.get("type") instanceof String type) {
      return new HashField(name, LogicalType.parse(type));
    }
    throw new IllegalArgumentException("a field of the contract is {\"name\": …, \"type\": …}");
  }

  /** JSON by Connect's own converter, so that the plugin brings no library along. */
  private static Object json(String text) {
    try (JsonConverter converter = new JsonConverter()) {
      converter.configure(Map.of("schemas.enable", "false"), false);
      return converter.toConnectData("", text.getBytes(StandardCharsets.UTF_8)).value();
    } catch (DataException error) {
      throw new IllegalArgumentException("the contract is no JSON", error);
    }
  }

  public List<String> names() {
    return fields.stream().map(HashField::name).toList();
  }
}
