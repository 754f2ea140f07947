package headgate.spark;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Records of one schema for the fuzz test: valid ones, with odd values, and with bytes changed. */
final class RandomRecords {
  static final String COLUMNS =
      "id BIGINT, n INT, small SMALLINT, tiny TINYINT, amount DOUBLE, ratio FLOAT, name STRING, flag BOOLEAN,"
          + " price DECIMAL(10, 2), wide DECIMAL(30, 5), day DATE, at TIMESTAMP_NTZ, seen TIMESTAMP,"
          + " doc STRING, label STRING, tree VARIANT, list ARRAY<BIGINT>, texts MAP<STRING, DOUBLE>,"
          + " parts ARRAY<STRUCT<type: STRING, value: STRING, n: DECIMAL(6, 1)>>, code STRING, `é` INT";
  static final Map<String, String> OPTIONS =
      Map.of(
          "json", "doc",
          "scalars", "label",
          "casts", "code DECIMAL(12, 3), n STRING",
          "key", "parts[type='PK'].value",
          "evolved", "texts, `é`");

  private static final Map<String, String[]> VALUES =
      Map.ofEntries(
          Map.entry("id", array("1", "-7", "0", "-0", "9223372036854775807", "123456789012345678")),
          Map.entry("n", array("5", "2147483647", "-2147483648", "0")),
          Map.entry("small", array("-32768", "32767", "12")),
          Map.entry("tiny", array("127", "-128", "3")),
          Map.entry("amount", array("1.5", "-0.0", "-0", "1e22", "1e23", "0.1", "4.9e-324", "123456.789e-5")),
          Map.entry("ratio", array("0.1", "16777217", "1e-45", "3.4028235e38", "7.038531e-26", "-0", "-0.0")),
          Map.entry("name", array("\"x\"", "\"\"", "\"é\\n\\u0041\"", "\"\\ud83d\\ude00\"", "\"a\\/b\"")),
          Map.entry("flag", array("true", "false")),
          Map.entry("price", array("1.50", "12345678.99", "1e2", "-0.5", "1.5e-1", "0e00", "0")),
          Map.entry("wide", array("1234567890123456789012345.12345", "1e20", "7", "0.00001")),
          Map.entry("day", array("\"2024-02-29\"", "\"0001-01-01\"", "\"9999-12-31\"")),
          Map.entry("at", array("\"2024-01-31T23:59:59\"", "\"2024-01-31 10:00:00.123\"")),
          Map.entry(
              "seen",
              array("\"2024-01-31T10:00:00.5Z\"", "\"2024-01-31T10:00:00+02:00\"", "\"2024-01-31 10:00:00.000001\"")),
          Map.entry("doc", array("{\"b\":1.50,\"a\":[1,2.0,\"s\\t\",null,true],\"c\":{}}", "\"q\"", "1e5", "[]", "{ \"z\" : 1 }")),
          Map.entry("label", array("\"x\"", "5", "1.500", "true", "12345678901234567890", "-0")),
          Map.entry("tree", array("{\"a\":[1,{\"b\":null}]}", "1.25", "\"t\"")),
          Map.entry("list", array("[1,2,null]", "[]", "[ -3 ]")),
          Map.entry("texts", array("{\"a\":1,\"b\":2.5}", "{}", "{\"é\":null}")),
          Map.entry(
              "parts",
              array(
                  "[{\"type\":\"PK\",\"value\":\"k\"}]",
                  "[{\"value\":\"k\",\"n\":1.5,\"other\":{\"x\":[1]},\"type\":\"PK\"}]",
                  "[{\"type\":\"PK\",\"value\":\"a\\\"b\"},{\"type\":\"CK\"},{\"type\":\"PK\",\"value\":null}]",
                  "[]",
                  "[null]")),
          Map.entry("code", array("\"1.5\"", "\" 12 \"", "\"1e3\"", "\"-0.001\"")),
          Map.entry("é", array("1", "null")));

  private static final String[] ODD = {
    "null", "1", "-1.5", "1e5", "1E400", "1e-9000000", "1e005", "01", "-", "1.", ".5", "+1", "NaN", "Infinity",
    "123456789012345678901234567890123456789012", "0.30000000000000004", "9007199254740993", "8.5e22",
    "1.7976931348623157e308", "1.8e308", "9223372036854775808", "-9223372036854775808", "1.005", "12345678.995",
    "true", "tru", "\"x\"", "\"\"", "\"1e-900\"", "\"\\u00\"", "\"\\ud83d\"", "\"\\udc00\\ud83d\"", "\"a\\u0000b\"",
    "\"\\\\ud800\"", "\"a\nb\"", "\"\\x\"", "[]", "{}", "[1,]", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1,\"b\":2}}",
    "{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"y\":1,\"x\":\"\\u00e9\\\"\"}]}", "{\"\\u0061\":1,\"a\":2}",
    "{\"é\":1,\"z\":2,\"\uFF5E\":3,\"\uD83D\uDE00\":4}", "[[[[[[1]]]]]]", "\"2024-12-31T23:59:60\"",
    "\"2024-12-31T24:00:00\"", "\"10000-01-01\"", "\"-001-01-01\"", "\"2024-06-30T12:00:00.1234567\"",
    "\"2024-06-30T12:00:00.\"", "\"2024-06-30T12:00:00Z\"", "\"2024-06-30t12:00:00z\"", "1 ", " 2", "100.0", "0.0",
    "-0.00", "1.10000", "00", "{\"type\":\"PK\"}", "[1,{\"type\":\"PK\",\"value\":\"k\"}]",
    "[{\"type\":\"PK\",\"value\":7},{\"type\":\"PK\",\"value\":[1]}]"
  };
  private static final byte[][] TOKENS =
      tokens(
          "\"", "\\", "{", "}", "[", "]", ",", ":", " ", "0", "1", "-", ".", "e", "null", "true", "\\u0041",
          "\\ud83d\\ude00", "\\udc00", "é", "\n", "\"x\":1,", "\"x\":{\"a\":1,\"a\":2},", "\"id\":1,", "\u0000",
          "\\/", "\\x", "\"y\":{\"b\":1.50,\"a\":[1,2.0,\"s\",null,true]},", "\uFEFF");

  private final Random random;
  private final List<String> names = VALUES.keySet().stream().sorted().toList();

  RandomRecords(long seed) {
    random = new Random(seed);
  }

  byte[] next() {
    StringBuilder record = new StringBuilder("{");
    for (String name : ordered()) {
      if (random.nextInt(12) == 0) {
        continue;
      }
      if (record.length() > 1) {
        record.append(blank()).append(',');
      }
      record.append(blank()).append('"').append(name).append('"').append(blank()).append(':').append(blank());
      record.append(random.nextInt(60) == 0 ? choose(ODD) : choose(VALUES.get(name)));
    }
    if (random.nextInt(3) == 0) {
      record.append(record.length() > 1 ? ",\"x\":" : "\"x\":").append(choose(ODD));
    }
    byte[] bytes = record.append('}').append(blank()).toString().getBytes(StandardCharsets.UTF_8);
    return random.nextInt(3) == 0 ? mutate(bytes) : bytes;
  }

  private List<String> ordered() {
    if (random.nextInt(4) > 0) {
      return names;
    }
    List<String> shuffled = Arrays.asList(names.toArray(String[]::new));
    java.util.Collections.shuffle(shuffled, random);
    return shuffled;
  }

  private byte[] mutate(byte[] record) {
    int at = random.nextInt(record.length);
    ByteArrayOutputStream changed = new ByteArrayOutputStream();
    changed.write(record, 0, at);
    int removed = random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(3);
    if (random.nextInt(3) > 0) {
      changed.writeBytes(TOKENS[random.nextInt(TOKENS.length)]);
    } else if (random.nextInt(4) == 0) {
      changed.write(random.nextInt(256));
    }
    int rest = Math.min(record.length, at + removed);
    changed.write(record, rest, record.length - rest);
    return changed.toByteArray();
  }

  private String blank() {
    return random.nextInt(20) == 0 ? " \t" : "";
  }

  private String choose(String[] values) {
    return values[random.nextInt(values.length)];
  }

  private static String[] array(String... values) {
    return values;
  }

  private static byte[][] tokens(String... texts) {
    return Arrays.stream(texts).map(t -> t.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
  }
}
