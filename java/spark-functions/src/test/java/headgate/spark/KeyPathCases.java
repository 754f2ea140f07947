package headgate.spark;

import static headgate.spark.Cases.assertEqual;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;

/** Keys inside records, by the fast and by the slow way. */
public final class KeyPathCases {

  private static String key(String path, String record) {
    StrictJson reader = new StrictJson("a INT", Map.of("key", path), "UTC");
    byte[] bytes = record.getBytes(StandardCharsets.UTF_8);
    InternalRow row = reader.read(bytes);
    assertEqual(null, row.isNullAt(reader.reasonCodeOrdinal) ? null : row.getUTF8String(reader.reasonOrdinal));
    assertEqual(
        ScanFuzz.show(row, reader.resultType()),
        ScanFuzz.show(reader.diagnose(bytes, 0), reader.resultType()));
    assertEqual(true, row.isNullAt(reader.extraOrdinal));
    return row.isNullAt(reader.keyOrdinal) ? null : row.getUTF8String(reader.keyOrdinal).toString();
  }

  private static String onPrem(String list) {
    return key("partitionColumns[type='PK'].value", "{\"a\":1,\"partitionColumns\":" + list + "}");
  }

  public void theItemThatTheFilterChoosesHasTheKey() {
    assertEqual("k", onPrem("[{\"type\":\"PK\",\"value\":\"k\"}]"));
    assertEqual("k", onPrem("[{\"value\":\"k\",\"type\":\"PK\"},{\"type\":\"CK\",\"value\":\"x\"}]"));
    assertEqual("k", onPrem("[ null , { \"type\" : \"PK\" , \"value\" : \"k\" } ]"));
  }

  public void aNumberOrBooleanIsItsText() {
    assertEqual("5", onPrem("[{\"type\":\"PK\",\"value\":5}]"));
    assertEqual("1.50", onPrem("[{\"type\":\"PK\",\"value\":1.50}]"));
    assertEqual("true", onPrem("[{\"type\":\"PK\",\"value\":true}]"));
    assertEqual("{\"x\":1}", onPrem("[{\"type\":\"PK\",\"value\":{\"x\": 1}}]"));
  }

  public void withoutAValueThereIsNoKey() {
    assertEqual(null, onPrem("[{\"type\":\"PK\",\"value\":null}]"));
    assertEqual(null, onPrem("[{\"type\":\"PK\"}]"));
    assertEqual(null, onPrem("[{\"type\":\"CK\",\"value\":\"k\"}]"));
    assertEqual(null, onPrem("[]"));
    assertEqual(null, onPrem("null"));
    assertEqual(null, onPrem("{\"type\":\"PK\",\"value\":\"k\"}"));
    assertEqual(null, onPrem("[1,{\"type\":\"PK\",\"value\":\"k\"}]"));
    assertEqual(null, key("p.q", "{\"a\":1}"));
  }

  public void severalItemsGiveTheListOfTheirKeys() {
    assertEqual(
        "[\"a\",\"b\\\"c\",null]",
        onPrem("[{\"type\":\"PK\",\"value\":\"a\"},{\"type\":\"PK\",\"value\":\"b\\\"c\"},{\"type\":\"PK\"}]"));
  }

  public void fieldsAndIndexes() {
    assertEqual("7", key("order.id", "{\"order\":{\"x\":1,\"id\":7}}"));
    assertEqual("b", key("ids[1]", "{\"ids\":[\"a\",\"b\"]}"));
    assertEqual(null, key("ids[2]", "{\"ids\":[\"a\",\"b\"]}"));
    assertEqual("z", key("a1[0].b[t='x'].c", "{\"a1\":[{\"b\":[{\"t\":\"x\",\"c\":\"z\"}]}]}"));
    assertEqual("1", key("a", "{\"a\":1}"));
  }
}
