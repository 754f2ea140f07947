package headgate.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The options of strict_json, checked: an option that is misspelt must not change what is accepted. */
final class ReaderOptions implements Serializable {
  private static final long serialVersionUID = 1L;

  static final String TIMESTAMP_FORMAT = "timestampFormat";
  static final String TIMESTAMP_NTZ_FORMAT = "timestampNTZFormat";
  static final String DATE_FORMAT = "dateFormat";
  static final String DRIFT = "drift";
  static final String EVOLVED = "evolved";
  static final String JSON = "json";
  static final String SCALARS = "scalars";
  static final String CASTS = "casts";
  static final String KEY = "key";
  static final String MASKED = "masked";
  static final String FRAMED = "framed";
  private static final Set<String> NAMES =
      new TreeSet<>(
          List.of(
              TIMESTAMP_FORMAT,
              TIMESTAMP_NTZ_FORMAT,
              DATE_FORMAT,
              DRIFT,
              EVOLVED,
              JSON,
              SCALARS,
              CASTS,
              KEY,
              MASKED,
              FRAMED));

  final String timestampFormat;
  final String timestampNtzFormat;
  final String dateFormat;
  /** Unknown fields and missing ones are kept and named; else the record is refused. */
  final boolean keepsDrift;
  /** The value begins with the frame of a schema registry. */
  final boolean isFramed;
  /** The path to the key; null without the option. */
  final KeyPath key;

  private final Map<String, String> options;

  ReaderOptions(Map<String, String> options) {
    for (String name : options.keySet()) {
      if (!NAMES.contains(name)) {
        throw new ArgumentException(
            "options", "there is no option '" + name + "'; the options are " + String.join(", ", NAMES));
      }
    }
    this.options = Map.copyOf(options);
    timestampFormat =
        options.getOrDefault(TIMESTAMP_FORMAT, "yyyy-MM-dd['T'][' ']HH:mm:ss[.SSSSSS][XXX]");
    timestampNtzFormat =
        options.getOrDefault(TIMESTAMP_NTZ_FORMAT, "yyyy-MM-dd['T'][' ']HH:mm:ss[.SSSSSS]");
    dateFormat = options.getOrDefault(DATE_FORMAT, "yyyy-MM-dd");
    keepsDrift = choose(DRIFT, "keep", "refuse");
    isFramed = !choose(FRAMED, "false", "true");
    key = options.containsKey(KEY) ? KeyPath.parse(options.get(KEY)) : null;
  }

  /** Whether the option has its first value, which is also its default. */
  private boolean choose(String option, String first, String second) {
    String value = options.getOrDefault(option, first);
    if (!value.equals(first) && !value.equals(second)) {
      throw new ArgumentException(
          "options",
          String.format(
              "the option %s is '%s'; allowed are '%s' and '%s'",
              option, value, first, second));
    }
    return value.equals(first);
  }

  /** The columns of the DDL, with what the options say about each. */
  Column[] columns(String ddl) {
    StructType declared = parseDdl("columns", "they are", ddl);
    Set<String> names = new LinkedHashSet<>();
    for (StructField field : declared.fields()) {
      names.add(field.name());
    }
    Set<String> json = columnNames(JSON, names);
    Set<String> scalars = columnNames(SCALARS, names);
    Set<String> evolved = columnNames(EVOLVED, names);
    Set<String> masked = columnNames(MASKED, names);
    Map<String, DataType> casts = casts(names);
    List<Column> columns = new ArrayList<>();
    for (StructField field : declared.fields()) {
      String name = field.name();
      columns.add(
          new Column(
              name,
              typeOf(field, json, scalars),
              casts.get(name),
              !evolved.contains(name),
              masked.contains(name)));
    }
    return columns.toArray(Column[]::new);
  }

  private static JsonType typeOf(StructField field, Set<String> json, Set<String> scalars) {
    JsonType type = JsonType.of(field.dataType());
    boolean isJson = json.contains(field.name());
    boolean isScalar = scalars.contains(field.name());
    if (!isJson && !isScalar) {
      return type;
    }
    if (type.kind != JsonType.Kind.STRING || isJson && isScalar) {
      throw new ArgumentException(
          "options",
          String.format(
              "the column %s is named by the option %s, so its type must be STRING, not %s",
              field.name(),
              isJson && isScalar ? JSON + " and " + SCALARS : isJson ? JSON : SCALARS,
              field.dataType().sql()));
    }
    return JsonType.text(isJson ? JsonType.Kind.JSON : JsonType.Kind.SCALAR);
  }

  private Map<String, DataType> casts(Set<String> columns) {
    Map<String, DataType> casts = new HashMap<>();
    if (options.containsKey(CASTS)) {
      for (StructField field : parseDdl("options", "the option casts is", options.get(CASTS)).fields()) {
        requireColumn(CASTS, field.name(), columns);
        casts.put(field.name(), field.dataType());
      }
    }
    return casts;
  }

  private static StructType parseDdl(String parameter, String what, String ddl) {
    StructType type;
    try {
      type = StructType.fromDDL(ddl);
    } catch (Exception invalid) {
      // Spark's parser describes the place over several lines; the first says what is wrong.
      String reason = String.valueOf(invalid.getMessage()).strip().lines().findFirst().orElse("");
      throw new ArgumentException(
          parameter, what + " not DDL such as 'id BIGINT, name STRING': " + reason);
    }
    Set<String> names = new LinkedHashSet<>();
    for (StructField field : type.fields()) {
      if (!names.add(field.name())) {
        throw new ArgumentException(parameter, "the column " + field.name() + " is there twice");
      }
    }
    return type;
  }

  /** The columns that an option lists, separated by commas; a name with other signs stands in backticks. */
  private Set<String> columnNames(String option, Set<String> columns) {
    Set<String> names = new LinkedHashSet<>();
    String text = options.getOrDefault(option, "").strip();
    StringBuilder name = new StringBuilder();
    boolean quoted = false;
    for (int at = 0; at <= text.length() && !text.isEmpty(); at++) {
      char letter = at < text.length() ? text.charAt(at) : ',';
      if (letter == '`' && quoted && at + 1 < text.length() && text.charAt(at + 1) == '`') {
        name.append(text.charAt(++at));
      } else if (letter == '`') {
        quoted = !quoted;
      } else if (letter == ',' && (!quoted || at == text.length())) {
        requireColumn(option, name.toString(), columns);
        names.add(name.toString());
        name.setLength(0);
      } else if (quoted || !Character.isWhitespace(letter)) {
        name.append(letter);
      }
    }
    return names;
  }

  private static void requireColumn(String option, String name, Set<String> columns) {
    if (!columns.contains(name)) {
      throw new ArgumentException(
          "options",
          String.format(
              "the option %s names '%s', which is none of the columns %s",
              option, name, String.join(", ", columns)));
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ReaderOptions that && options.equals(that.options);
  }

  @Override
  public int hashCode() {
    return options.hashCode();
  }
}
