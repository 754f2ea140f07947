package headgate.spark;

import static headgate.spark.Cases.assertContains;
import static headgate.spark.Cases.assertEqual;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Arguments that cannot be used are named, and readers made of the same arguments are equal. */
public final class ArgumentCases {

  private static String refusal(String columns, Map<String, String> options) {
    try {
      new StrictJson(columns, options, "UTC");
    } catch (ArgumentException invalid) {
      return invalid.toAnalysisException("strict_json").getMessage();
    }
    throw new AssertionError("accepted " + columns + " " + options);
  }

  private static String refusal(String option, String value) {
    return refusal("a STRING, b INT", Map.of(option, value));
  }

  public void anUnknownOptionIsNamedWithTheAllowedOnes() {
    String message = refusal("drfit", "keep");
    assertContains("no option 'drfit'", message);
    assertContains("casts, dateFormat, drift, evolved, framed, json, key, masked, scalars", message);
  }

  public void aValueThatAnOptionDoesNotHaveIsNamedWithTheAllowedOnes() {
    assertContains("drift is 'drop'; allowed are 'keep' and 'refuse'", refusal("drift", "drop"));
    assertContains("framed is 'yes'; allowed are 'false' and 'true'", refusal("framed", "yes"));
  }

  public void aNameThatIsNoColumnIsNamed() {
    for (String option : new String[] {"json", "scalars", "evolved", "masked"}) {
      assertContains("the option " + option + " names 'c'", refusal(option, "a, c"));
    }
    assertContains("the option casts names 'c'", refusal("casts", "c INT"));
  }

  public void optionsOfTextsNeedTextColumns() {
    assertContains("the option json, so its type must be STRING, not INT", refusal("json", "b"));
    assertContains("the option scalars, so its type must be STRING", refusal("scalars", "b"));
    assertContains("json and scalars", refusal("a STRING", Map.of("json", "a", "scalars", "a")));
  }

  public void columnsThatAreNotDdlAreRefused() {
    assertContains("columns in strict_json is invalid: they are not DDL", refusal("a BIGIN", Map.of()));
    assertContains("the option casts is not DDL", refusal("casts", "a"));
    assertContains("the column a is there twice", refusal("a INT, a STRING", Map.of()));
    assertContains("the type BINARY cannot be read", refusal("a BINARY", Map.of()));
    assertContains("the type MAP<INT, STRING> cannot be read", refusal("a MAP<INT, STRING>", Map.of()));
    assertContains("a column _extra is added", refusal("_extra STRING", Map.of()));
    assertContains("a column _key is added", refusal("_key STRING", Map.of("key", "a.b")));
  }

  public void aCastThatSparkDoesNotHaveIsRefused() {
    assertContains("the column b, and Spark has no cast from INT to ARRAY<INT>", refusal("casts", "b ARRAY<INT>"));
  }

  public void aPatternOfTimesThatIsNotValidIsRefused() {
    assertContains("a pattern of times is not valid", refusal("timestampFormat", "qqqqq{"));
  }

  public void aPathThatIsNoneIsRefused() {
    for (String path : new String[] {"", "a..b", "a.", "a[b]", "a[x='1]", "1a", "a b"}) {
      assertContains("which is no path such as", refusal("key", path));
    }
  }

  public void namesOfColumnsMayHaveAnySignInBackticks() {
    StrictJson reader =
        new StrictJson("`a,b` STRING, `c``d` STRING", Map.of("json", "`a,b`, `c``d`"), "UTC");
    assertEqual(JsonType.Kind.JSON, reader.columns[0].type.kind);
    assertEqual(JsonType.Kind.JSON, reader.columns[1].type.kind);
  }

  public void readersOfTheSameArgumentsAreEqualAndShowNoIdentity() {
    StrictJson first = new StrictJson("a INT", Map.of("drift", "keep"), "UTC");
    StrictJson second = new StrictJson("a INT", Map.of("drift", "keep"), "UTC");
    assertEqual(first, second);
    assertEqual(first.hashCode(), second.hashCode());
    assertEqual(first.toString(), second.toString());
    assertEqual(false, first.equals(new StrictJson("a INT", Map.of(), "UTC")));
    assertEqual(false, first.equals(new StrictJson("a INT", Map.of("drift", "keep"), "Asia/Tokyo")));
    assertEqual(false, first.equals(new StrictJson("b INT", Map.of("drift", "keep"), "UTC")));
  }

  public void aReaderWorksAfterItWasSent() throws Exception {
    StrictJson reader =
        new StrictJson(RandomRecords.COLUMNS, RandomRecords.OPTIONS, "UTC");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream stream = new ObjectOutputStream(bytes)) {
      stream.writeObject(reader);
    }
    try (ObjectInputStream stream = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      StrictJson received = (StrictJson) stream.readObject();
      byte[] record = "{\"day\":\"2024-01-01\",\"code\":\"1.5\"}".getBytes(StandardCharsets.UTF_8);
      assertEqual(reader, received);
      assertEqual(
          ScanFuzz.show(reader.read(record), reader.resultType()),
          ScanFuzz.show(received.read(record), received.resultType()));
    }
  }
}
