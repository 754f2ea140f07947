package com.company.kafka.connect.smt;

import headgate.connect.plugin.Build;
import headgate.connect.plugin.Counters;
import headgate.connect.hash.RowHash;
import headgate.connect.letters.DeadLetter;
import headgate.connect.letters.DeadLetters;
import headgate.connect.letters.LetterText;
import headgate.connect.letters.Stage;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Puts the hash of the listed fields into a record's value.
 *
 * <p>Topic, partition, key, timestamp and headers stay as they are, and a tombstone is passed on. A
 * record that cannot be hashed becomes a dead letter, and is dropped only when the broker has it.
 */
public final class HashRowSMT<R extends ConnectRecord<R>> implements Transformation<R>, Versioned {
  static final List<String> COUNTERS =
      List.of("hashed", "missing_fields", "errors", "dead_letters", "column_removed", "schema_drift");
  /** Schemas come from tables; more than this many in a task means that they are made per record. */
  private static final int MOST_PLANS = 100;

  private final Map<Schema, StructPlan> plans = new IdentityHashMap<>();
  private final LetterText text = new LetterText();
  private HashSettings settings;
  private RowHash hash;
  private Counters counters;
  private DeadLetters letters;

  @Override
  public void configure(Map<String, ?> given) {
    settings = new HashSettings(given);
    hash = settings.hash();
  }

  /** On the first record, for only then does the task's thread tell the connector's name. */
  private void open() {
    if (counters == null) {
      String connector = settings.connector();
      letters = letters == null ? settings.deadLetters(connector) : letters;
      counters = Counters.of("HashRow", connector, COUNTERS);
    }
  }

  /** For tests: letters go here. */
  void writeTo(DeadLetters writer) {
    letters = writer;
  }

  @Override
  public R apply(R record) {
    open();
    if (record.value() == null) {
      return record;
    }
    try {
      R done = hashed(record);
      counters.add("hashed");
      return done;
    } catch (MissingFieldsException error) {
      counters.add("missing_fields");
      return refused(record, "dq_smt_missing_fields", error);
    } catch (RuntimeException error) {
      return refused(record, "dq_smt_errors", error);
    }
  }

  private R hashed(R record) {
    if (record.value() instanceof Struct struct) {
      return ofStruct(record, struct);
    }
    if (record.value() instanceof Map<?, ?> map) {
      return ofMap(record, map);
    }
    throw new DataException(
        "the value is a " + record.value().getClass().getSimpleName() + ", not a struct or a map");
  }

  private R ofStruct(R record, Struct value) {
    StructPlan plan = plan(value.schema());
    refuseWithout(plan.missing());
    Struct copy = plan.with(value, outputs(hash.of(name -> plan.field(value, name))));
    return copy(record, plan.target(), copy);
  }

  private R ofMap(R record, Map<?, ?> value) {
    refuseWithout(hash.names().stream().filter(name -> !value.containsKey(name)).toList());
    Map<Object, Object> copy = new LinkedHashMap<>(value);
    copy.putAll(outputs(hash.of(value::get)));
    return copy(record, record.valueSchema(), copy);
  }

  private static void refuseWithout(List<String> missing) {
    if (!missing.isEmpty()) {
      throw new MissingFieldsException(missing);
    }
  }

  private Map<String, Object> outputs(String hex) {
    Map<String, Object> outputs = new LinkedHashMap<>();
    outputs.put(settings.outputField(), hex);
    if (!settings.versionField().isEmpty()) {
      outputs.put(settings.versionField(), hash.version());
    }
    return outputs;
  }

  private StructPlan plan(Schema schema) {
    StructPlan known = plans.get(schema);
    if (known != null) {
      return known;
    }
    if (plans.size() >= MOST_PLANS) {
      plans.clear();
    }
    StructPlan made = new StructPlan(schema, hash, outputSchemas());
    made.removed().forEach(column -> counters.addOnce("column_removed", schema.name() + "." + column));
    made.added().forEach(column -> counters.addOnce("schema_drift", schema.name() + "." + column));
    plans.put(schema, made);
    return made;
  }

  private Map<String, Schema> outputSchemas() {
    Map<String, Schema> outputs = new LinkedHashMap<>();
    outputs.put(settings.outputField(), Schema.OPTIONAL_STRING_SCHEMA);
    if (!settings.versionField().isEmpty()) {
      outputs.put(settings.versionField(), Schema.INT32_SCHEMA);
    }
    return outputs;
  }

  private R copy(R record, Schema schema, Object value) {
    return record.newRecord(
        record.topic(),
        record.kafkaPartition(),
        record.keySchema(),
        record.key(),
        schema,
        value,
        record.timestamp(),
        record.headers());
  }

  /** Null, which tells Connect to drop the record, once the dead letter is written. */
  private R refused(R record, String reasonCode, RuntimeException error) {
    counters.add("errors");
    if (letters == null) {
      throw error;
    }
    byte[] key = text.bytes(record.topic(), record.keySchema(), record.key());
    byte[] value = text.bytes(record.topic(), record.valueSchema(), record.value());
    letters.write(
        new DeadLetter(key, value, Stage.SMT, reasonCode, error, text.origin(record)));
    counters.add("dead_letters");
    return null;
  }

  @Override
  public ConfigDef config() {
    return HashSettings.DEFINITION;
  }

  @Override
  public void close() {
    if (letters != null) {
      letters.close();
    }
  }

  @Override
  public String version() {
    return Build.VERSION;
  }
}
