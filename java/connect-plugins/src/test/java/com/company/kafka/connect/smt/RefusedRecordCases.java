package com.company.kafka.connect.smt;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.fails;
import static headgate.connect.Cases.holds;

import headgate.connect.letters.DeadLetterLostError;
import headgate.connect.letters.DeadLetters;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/** What becomes of records that cannot be hashed. */
public final class RefusedRecordCases {
  private final MockProducer<byte[], byte[]> broker =
      new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());

  private HashRowSMT<SourceRecord> smt(String connector) {
    HashRowSMT<SourceRecord> made = Records.plain(connector);
    made.writeTo(new DeadLetters(DeadLetters.TOPIC, connector, () -> broker));
    return made;
  }

  private ProducerRecord<byte[], byte[]> letter() {
    equal(1, broker.history().size());
    return broker.history().get(0);
  }

  private String header(String name) {
    Header header = letter().headers().lastHeader("headgate." + name);
    return header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
  }

  public void aMissingFieldMakesADeadLetterWithTheOriginalValue() throws Exception {
    holds(smt("r1").apply(Records.map(Map.of("col1", "a"))) == null, "the record is dropped");
    equal("dlq-cassandra-cloud", letter().topic());
    equal("k1", new String(letter().key(), StandardCharsets.UTF_8));
    equal("{\"col1\":\"a\"}", new String(letter().value(), StandardCharsets.UTF_8));
    equal("SMT", header("stage"));
    equal("dq_smt_missing_fields", header("reason_code"));
    equal("the record has no field col2", header("reason"));
    equal("r1", header("job"));
    equal("raw-cloud-t", header("topic"));
    equal("{\"table\":\"ks.t\"}", header("source_partition"));
    equal("{\"mark\":7}", header("source_offset"));
    holds(header("error_class").endsWith("MissingFieldsException"), "the class is named");
    holds(header("trace").contains("HashRowSMT"), "the trace is there");
    equal(1L, HashRowCases.counter("r1", "missing_fields"));
    equal(1L, HashRowCases.counter("r1", "errors"));
    equal(1L, HashRowCases.counter("r1", "dead_letters"));
    equal(0L, HashRowCases.counter("r1", "hashed"));
  }

  public void aValueThatIsNoRowIsADeadLetter() {
    equal(null, smt("r2").apply(Records.of(Schema.STRING_SCHEMA, "words")));
    equal("dq_smt_errors", header("reason_code"));
    equal("words", new String(letter().value(), StandardCharsets.UTF_8));
  }

  public void aValueOfAnotherTypeIsADeadLetter() {
    HashRowSMT<SourceRecord> smt =
        Records.smt(
            Map.of("hash.version", "2", "hash.contract", "col1:integer", "connector.name", "r3"));
    smt.writeTo(new DeadLetters("letters", "r3", () -> broker));
    equal(null, smt.apply(Records.map(Map.of("col1", "secret"))));
    equal("letters", letter().topic());
    equal("col1: integer is wanted, but there is a text that is none", header("reason"));
  }

  public void aValueTooLargeToSendIsAReference() {
    equal(null, smt("r6").apply(Records.map(Map.of("col1", "x".repeat(1_000_000)))));
    equal(null, letter().value());
    equal("1000011 bytes, not sent", header("reference"));
  }

  public void aSinksRecordIsNamedByItsOffset() {
    HashRowSMT<SinkRecord> smt = new HashRowSMT<>();
    smt.configure(Map.of("hash.fields", "col1", "connector.name", "r7"));
    smt.writeTo(new DeadLetters("letters", "r7", () -> broker));
    equal(null, smt.apply(new SinkRecord("t", 4, null, "k", null, Map.of(), 17)));
    equal("t", header("topic"));
    equal("4", header("partition"));
    equal("17", header("offset"));
    smt.close();
  }

  public void withoutBrokersForLettersItThrows() {
    HashRowSMT<SourceRecord> smt = Records.plain("r4");
    fails(DataException.class, () -> smt.apply(Records.map(Map.of("col1", "a"))));
  }

  public void aLetterThatIsNotWrittenEndsTheTask() throws Exception {
    HashRowSMT<SourceRecord> smt = smt("r5");
    broker.sendException = new TimeoutException("no broker");
    fails(DeadLetterLostError.class, () -> smt.apply(Records.map(Map.of("col1", "a"))));
    equal(0L, HashRowCases.counter("r5", "dead_letters"));
  }
}
