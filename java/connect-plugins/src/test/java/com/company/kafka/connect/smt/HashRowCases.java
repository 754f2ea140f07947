package com.company.kafka.connect.smt;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.holds;

import headgate.connect.hash.RowHash;
import headgate.connect.plugin.SchemaFacts;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.management.ObjectName;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/** What the transformation does to records that it can hash. */
public final class HashRowCases {
  /** SHA-256 of {@code a|b}. */
  private static final String A_BAR_B = RowHash.untyped(List.of("x"), "SHA-256").of(name -> "a|b");

  public void listedFieldsAreSortedByNameAndJoinedByABar() {
    SourceRecord done = Records.plain("h1").apply(Records.struct(Records.row("1", "a", "b")));
    equal(A_BAR_B, ((Struct) done.value()).getString("hash_cloud"));
  }

  public void otherFieldsDoNotCount() {
    Struct row = Records.row("other", "a", "b").put("extra", 99L);
    SourceRecord done = Records.plain("h2").apply(Records.struct(row));
    equal(A_BAR_B, ((Struct) done.value()).getString("hash_cloud"));
  }

  public void aMapIsHashedLikeAStruct() {
    SourceRecord done = Records.plain("h3").apply(Records.map(Map.of("col1", "a", "col2", "b")));
    equal(A_BAR_B, ((Map<?, ?>) done.value()).get("hash_cloud"));
  }

  public void nothingElseOfTheRecordChanges() {
    SourceRecord record = Records.struct(Records.row("1", "a", "b"));
    SourceRecord done = Records.plain("h4").apply(record);
    equal(record.topic(), done.topic());
    equal(record.kafkaPartition(), done.kafkaPartition());
    equal(record.keySchema(), done.keySchema());
    equal(record.key(), done.key());
    equal(record.timestamp(), done.timestamp());
    equal(record.headers(), done.headers());
    equal(record.sourceOffset(), done.sourceOffset());
    equal("1", ((Struct) done.value()).getString("pk"));
    equal("ks.t", done.valueSchema().name());
  }

  public void theOriginalValueStaysAsItIs() {
    Map<String, Object> map = new HashMap<>(Map.of("col1", "a", "col2", "b"));
    Records.plain("h5").apply(Records.map(map));
    equal(Set.of("col1", "col2"), map.keySet());
  }

  public void aTombstonePassesUntouched() {
    SourceRecord tombstone = Records.of(null, null);
    holds(Records.plain("h6").apply(tombstone) == tombstone, "the same record comes out");
  }

  public void aNullIsEmptyInVersionOne() {
    SourceRecord done = Records.plain("h7").apply(Records.struct(Records.row("1", null, "b")));
    String wanted = RowHash.untyped(List.of("x"), "SHA-256").of(name -> "|b");
    equal(wanted, ((Struct) done.value()).getString("hash_cloud"));
  }

  public void versionTwoTellsNullFromEmptyAndSaysItsVersion() {
    HashRowSMT<SourceRecord> smt =
        Records.smt(
            Map.of(
                "hash.version", "2", "hash.contract", "col1:string,col2:decimal(2)",
                "version.field", "hash_version", "connector.name", "h8"));
    Struct none = value(smt.apply(Records.struct(Records.row("1", null, "12.5"))));
    Struct empty = value(smt.apply(Records.struct(Records.row("1", "", "12.50"))));
    equal(2, none.getInt32("hash_version"));
    holds(!none.getString("hash_cloud").equals(empty.getString("hash_cloud")), "they differ");
  }

  public void aHashThatIsThereAlreadyIsReplaced() {
    Schema schema =
        SchemaBuilder.struct()
            .field("col1", Schema.STRING_SCHEMA)
            .field("col2", Schema.STRING_SCHEMA)
            .field("hash_cloud", Schema.INT64_SCHEMA)
            .build();
    Struct row = new Struct(schema).put("col1", "a").put("col2", "b").put("hash_cloud", 5L);
    equal(A_BAR_B, value(Records.plain("h9").apply(Records.struct(row))).getString("hash_cloud"));
  }

  public void aDroppedColumnHashesAsNullAndIsCountedOnce() throws Exception {
    SchemaBuilder builder =
        SchemaBuilder.struct().name("ks.t").field("col1", Schema.STRING_SCHEMA);
    SchemaFacts.tell(builder, SchemaFacts.REMOVED, Set.of("col2"));
    SchemaFacts.tell(builder, SchemaFacts.ADDED, Set.of("col9"));
    Struct row = new Struct(builder.build()).put("col1", "a");
    SourceRecord first = Records.plain("h10").apply(Records.struct(row));
    Records.plain("h10").apply(Records.struct(row));
    String wanted = RowHash.untyped(List.of("x"), "SHA-256").of(name -> "a|");
    equal(wanted, value(first).getString("hash_cloud"));
    equal(1L, counter("h10", "column_removed"));
    equal(1L, counter("h10", "schema_drift"));
    equal(2L, counter("h10", "hashed"));
  }

  public void withoutANameTheTasksThreadTellsTheConnector() throws Exception {
    HashRowSMT<SourceRecord> smt = Records.smt(Map.of("hash.fields", "col1"));
    Runnable task = () -> smt.apply(Records.map(Map.of("col1", "a")));
    Thread thread = new Thread(task, "task-thread-my-source-12");
    thread.start();
    thread.join();
    equal(1L, counter("my-source", "hashed"));
  }

  private static Struct value(SourceRecord record) {
    return (Struct) record.value();
  }

  static Object counter(String connector, String name) throws Exception {
    ObjectName bean = new ObjectName("headgate.connect:type=HashRow,connector=" + connector);
    return ManagementFactory.getPlatformMBeanServer().getAttribute(bean, name);
  }
}
