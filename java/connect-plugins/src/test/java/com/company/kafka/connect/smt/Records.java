package com.company.kafka.connect.smt;

import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.source.SourceRecord;

/** Records as a source hands them to transformations. */
final class Records {
  static final Schema ROW =
      SchemaBuilder.struct()
          .name("ks.t")
          .field("pk", Schema.STRING_SCHEMA)
          .field("col1", Schema.OPTIONAL_STRING_SCHEMA)
          .field("col2", Schema.OPTIONAL_STRING_SCHEMA)
          .field("extra", Schema.OPTIONAL_INT64_SCHEMA)
          .build();

  private Records() {}

  static Struct row(String pk, String col1, String col2) {
    return new Struct(ROW).put("pk", pk).put("col1", col1).put("col2", col2);
  }

  static SourceRecord of(Schema schema, Object value) {
    ConnectHeaders headers = new ConnectHeaders();
    headers.addString("from", "here");
    return new SourceRecord(
        Map.of("table", "ks.t"), Map.of("mark", 7L), "raw-cloud-t", 3,
        Schema.STRING_SCHEMA, "k1", schema, value, 1234L, headers);
  }

  static SourceRecord struct(Struct value) {
    return of(value.schema(), value);
  }

  static SourceRecord map(Map<String, ?> value) {
    return of(null, value);
  }

  static HashRowSMT<SourceRecord> smt(Map<String, String> settings) {
    HashRowSMT<SourceRecord> made = new HashRowSMT<>();
    made.configure(settings);
    return made;
  }

  static HashRowSMT<SourceRecord> plain(String connector) {
    return smt(Map.of("hash.fields", "col2,col1", "connector.name", connector));
  }
}
