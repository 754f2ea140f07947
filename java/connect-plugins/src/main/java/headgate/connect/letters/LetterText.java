package headgate.connect.letters;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/** Connect's values as the bytes of a dead letter. */
public final class LetterText {
  private final JsonConverter json = new JsonConverter();

  public LetterText() {
    json.configure(Map.of("schemas.enable", "false", "decimal.format", "NUMERIC"), false);
  }

  /** JSON without schemas; text that is a key stays bare. */
  public byte[] bytes(String topic, Schema schema, Object value) {
    if (value == null) {
      return null;
    }
    if (value instanceof byte[] raw) {
      return raw;
    }
    if (value instanceof String text) {
      return text.getBytes(StandardCharsets.UTF_8);
    }
    try {
      return json.fromConnectData(topic, schema, value);
    } catch (DataException error) {
      // Nothing that JSON can say: the letter must still carry what was there.
      return String.valueOf(value).getBytes(StandardCharsets.UTF_8);
    }
  }

  /** Where a record came from, as facts for the letter's headers. */
  public Map<String, String> origin(ConnectRecord<?> record) {
    String topic = String.valueOf(record.topic());
    if (record instanceof SourceRecord source) {
      return Map.of(
          "topic", topic,
          "source_partition", text(topic, source.sourcePartition()),
          "source_offset", text(topic, source.sourceOffset()));
    }
    if (record instanceof SinkRecord sink) {
      return Map.of(
          "topic", topic,
          "partition", String.valueOf(sink.kafkaPartition()),
          "offset", String.valueOf(sink.kafkaOffset()));
    }
    return Map.of("topic", topic);
  }

  private String text(String topic, Map<String, ?> facts) {
    byte[] bytes = facts == null ? null : bytes(topic, null, facts);
    return bytes == null ? "" : new String(bytes, StandardCharsets.UTF_8);
  }
}
