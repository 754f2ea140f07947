package headgate.connect.letters;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes dead letters with a producer of its own: Connect's dead letter queue serves sinks only.
 *
 * <p>{@link #write} comes back when the broker has the letter, never before.
 */
public final class DeadLetters implements AutoCloseable {
  public static final String TOPIC = "dlq-cassandra-cloud";
  /** Below the usual limit of 1 MiB for a message, with room for headers. */
  static final int VALUE_LIMIT = 900_000;
  static final int TRACE_LIMIT = 4_000;
  static final int MESSAGE_LIMIT = 1_000;

  private final String topic;
  private final String job;
  private final Supplier<Producer<byte[], byte[]>> open;
  private Producer<byte[], byte[]> producer;

  /** {@code job} is the connector's name, as the letters will say it. */
  public DeadLetters(String topic, String job, Supplier<Producer<byte[], byte[]>> open) {
    this.topic = topic;
    this.job = job;
    this.open = open;
  }

  /** A writer to these brokers; {@code extra} are further producer settings, such as security. */
  public static DeadLetters to(
      String topic, String job, String bootstrap, long timeoutMs, Map<String, Object> extra) {
    Map<String, Object> settings = new HashMap<>(extra);
    settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
    settings.put(ProducerConfig.ACKS_CONFIG, "all");
    settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
    settings.put(ProducerConfig.LINGER_MS_CONFIG, 0);
    settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, timeoutMs);
    settings.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, (int) Math.min(timeoutMs, 10_000));
    settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, (int) timeoutMs);
    settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    return new DeadLetters(topic, job, () -> connect(settings));
  }

  private static Producer<byte[], byte[]> connect(Map<String, Object> settings) {
    return new KafkaProducer<>(settings);
  }

  public void write(DeadLetter letter) {
    boolean tooLarge = letter.value() != null && letter.value().length > VALUE_LIMIT;
    ProducerRecord<byte[], byte[]> record =
        new ProducerRecord<>(topic, null, letter.key(), tooLarge ? null : letter.value());
    describe(letter, record.headers());
    if (tooLarge) {
      // The row is in its table still: its key and origin are reference enough.
      put(record.headers(), "reference", letter.value().length + " bytes, not sent");
    }
    try {
      producer().send(record).get();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw lost(error);
    } catch (ExecutionException error) {
      throw lost(error.getCause());
    } catch (KafkaException error) {
      throw lost(error);
    }
  }

  private Producer<byte[], byte[]> producer() {
    if (producer == null) {
      producer = open.get();
    }
    return producer;
  }

  private DeadLetterLostError lost(Throwable cause) {
    return new DeadLetterLostError(
        "a dead letter could not be written to " + topic + ": " + cause.getMessage(), cause);
  }

  private void describe(DeadLetter letter, Headers headers) {
    Throwable error = letter.error();
    letter.origin().forEach((name, value) -> put(headers, name, value));
    put(headers, "job", job);
    put(headers, "stage", letter.stage().word());
    put(headers, "reason_code", letter.reasonCode());
    put(headers, "reason", cut(String.valueOf(error.getMessage()), MESSAGE_LIMIT));
    put(headers, "error_class", error.getClass().getName());
    put(headers, "trace", cut(traceOf(error), TRACE_LIMIT));
  }

  private static void put(Headers headers, String name, String value) {
    headers.add("headgate." + name, value.getBytes(StandardCharsets.UTF_8));
  }

  private static String cut(String text, int limit) {
    return text.length() <= limit ? text : text.substring(0, limit) + "…";
  }

  private static String traceOf(Throwable error) {
    StringWriter text = new StringWriter();
    error.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  @Override
  public void close() {
    if (producer != null) {
      producer.close();
      producer = null;
    }
  }
}
