package headgate.spark;

import static headgate.spark.Cases.assertContains;
import static headgate.spark.Cases.assertEqual;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;

/** What one record becomes; kinds that both Java and Python must read alike are in cases/records.jsonl. */
public final class ReaderCases {

  private static String read(String columns, Map<String, String> options, String record) {
    return read(columns, options, record.getBytes(StandardCharsets.UTF_8));
  }

  private static String read(String columns, Map<String, String> options, byte[] record) {
    StrictJson reader = new StrictJson(columns, options, "UTC");
    String shown = ScanFuzz.show(reader.read(record), reader.resultType());
    return shown.replaceAll(":[A-Z]\\w+", "").replaceAll(", _\\w+=null", "");
  }

  private static boolean isFast(String columns, Map<String, String> options, String record) {
    StrictJson reader = new StrictJson(columns, options, "UTC");
    return new RecordScanner(reader, record.getBytes(StandardCharsets.UTF_8), 0).read() != null;
  }

  public void usualRecordsAreReadTheFastWay() {
    assertEqual(true, isFast("a INT, t TIMESTAMP_NTZ", Map.of(), "{\"a\":1,\"t\":\"2024-01-01T10:00:00\"}"));
    assertEqual(true, isFast("a INT", Map.of(), "{\"b\":{\"y\":1,\"x\":[1e5,\"\\n\"]}, \"a\" : 2 }"));
    assertEqual(true, isFast("d STRING", Map.of("json", "d"), "{\"d\":{\"b\":\"\\u00e9\",\"a\":1.50}}"));
    assertEqual(
        true,
        isFast(
            "p ARRAY<STRUCT<type: STRING, value: STRING>>",
            Map.of("key", "p[type='PK'].value"),
            "{\"p\":[{\"type\":\"PK\",\"value\":\"k\",\"more\":null}]}"));
    assertEqual(true, isFast("c STRING", Map.of("casts", "c DECIMAL(10, 2)"), "{\"c\":\"1.5\"}"));
  }

  public void aFrameIsStripped() {
    byte[] framed = "\0\0\0\0\7{\"a\":1}".getBytes(StandardCharsets.UTF_8);
    assertEqual("{a=1}", read("a INT", Map.of("framed", "true"), framed));
    assertContains("_reason_code=not_json", read("a INT", Map.of(), framed));
    byte[] cut = "\0\0\0\0\7{\"a\":\"x\"".getBytes(StandardCharsets.UTF_8);
    assertContains("_reason_code=not_json", read("a INT", Map.of("framed", "true"), cut));
    for (String other : new String[] {"", "\0\0\0\0", "{\"a\":1}"}) {
      assertContains("_reason_code=not_framed", read("a INT", Map.of("framed", "true"), other));
    }
    assertContains("_reason_code=empty", read("a INT", Map.of("framed", "true"), "\0\0\0\0\1"));
  }

  public void aMaskedValueIsNotQuoted() {
    String refused = read("a INT, b INT", Map.of("masked", "a"), "{\"a\":\"secret\",\"b\":\"open\"}");
    assertContains("_reason=a field does not have its declared type; a = ***; b = open", refused);
  }

  public void aValueThatIsLostInTheCastHasTheWrongType() {
    Map<String, String> casts = Map.of("casts", "a INT");
    assertEqual("{a=12}", read("a STRING", casts, "{\"a\":\"12\"}"));
    assertEqual("{a=null}", read("a STRING", casts, "{\"a\":null}"));
    assertContains("_reason=a field does not have its declared type; a = x", read("a STRING", casts, "{\"a\":\"x\"}"));
    assertContains("_reason_code=wrong_type", read("a STRING", casts, "{\"a\":12}"));
    assertContains("_reason_code=wrong_type", read("a BIGINT", casts, "{\"a\":2147483648}"));
    assertEqual("{a=1.500}", read("a DOUBLE", Map.of("casts", "a DECIMAL(6, 3)"), "{\"a\":1.5}"));
    assertContains(
        "_reason_code=wrong_type", read("a STRING", Map.of("casts", "a DECIMAL(6, 3)"), "{\"a\":\"1e-9000000\"}"));
    assertContains("_reason_code=wrong_type", read("a STRING", Map.of("casts", "a TIMESTAMP"), "{\"a\":\"12:30\"}"));
    assertEqual("{a=1}", read("a BOOLEAN", casts, "{\"a\":true}"));
  }

  public void aRecordDeclaredToRefuseDriftNamesWhatDeviates() {
    Map<String, String> refuse = Map.of("drift", "refuse", "evolved", "c");
    assertEqual("{a=1, b=2, c=null}", read("a INT, b INT, c INT", refuse, "{\"a\":1,\"b\":2}"));
    String refused = read("a INT, b INT, c INT", refuse, "{\"a\":1,\"x\":2,\"y\":3}");
    assertContains("_reason_code=unknown_field, _reason=the record has a field that is not declared; +x; +y; -b", refused);
    assertContains("_drift=[+x, +y, -b]", refused);
    assertContains("_reason_code=missing_field, _reason=the record lacks a declared field; -b", read("a INT, b INT", Map.of("drift", "refuse"), "{\"a\":1}"));
  }

  public void aFloatBeyondTheLargestIsOutOfRange() {
    assertContains("_reason_code=out_of_range", read("a FLOAT", Map.of(), "{\"a\":1e39}"));
    assertEqual("{a=3.4028235E38}", read("a FLOAT", Map.of(), "{\"a\":3.4028235e38}"));
  }

  public void aNestedDecimalWithALongExponentIsOutOfRange() {
    assertContains("_reason_code=out_of_range", read("a ARRAY<DECIMAL(9, 2)>", Map.of(), "{\"a\":[1e-900000000]}"));
  }

  public void timesWithoutAZoneAreInTheSessionsZone() {
    StrictJson reader = new StrictJson("t TIMESTAMP", Map.of(), "Asia/Tokyo");
    InternalRow row = reader.read("{\"t\":\"1970-01-01T09:00:00\"}".getBytes(StandardCharsets.UTF_8));
    assertEqual(0L, row.getLong(0));
    row = reader.read("{\"t\":\"1970-01-01T00:00:00Z\"}".getBytes(StandardCharsets.UTF_8));
    assertEqual(0L, row.getLong(0));
  }

  public void everyPatternOfIsoTimesIsReadAsSparkReadsIt() {
    String[] patterns = {
      "yyyy-MM-dd'T'HH:mm:ss", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd' 'HH:mm:ss.SSS", "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
      "yyyy-MM-dd['T'][' ']HH:mm:ss.SXXX", "yyyy-MM-dd'T'HH:mm:ss[.SSSS]XXX", "yyyy-MM-dd'T'HH:mm:ssXXX"
    };
    String[] ends = {"", ".", ".1", ".12", ".123", ".1234", ".123456", ".1234567", "Z", ".5Z", ".123Z", "+02:00", "z"};
    for (String pattern : patterns) {
      Map<String, String> options = Map.of("timestampFormat", pattern, "timestampNTZFormat", pattern);
      StrictJson reader = new StrictJson("t TIMESTAMP, n TIMESTAMP_NTZ", options, "UTC");
      for (String separator : new String[] {"T", " ", "t", ""}) {
        for (String end : ends) {
          byte[] text = ("2024-02-29" + separator + "23:59:58" + end).getBytes(StandardCharsets.UTF_8);
          for (JsonType.Kind kind : new JsonType.Kind[] {JsonType.Kind.TIMESTAMP, JsonType.Kind.TIMESTAMP_NTZ}) {
            assertEqual(
                pattern + new String(text, StandardCharsets.UTF_8) + reader.times().parseByFormatter(kind, new String(text, StandardCharsets.UTF_8)),
                pattern + new String(text, StandardCharsets.UTF_8) + reader.times().parse(kind, text, 0, text.length));
          }
        }
      }
    }
  }
}
