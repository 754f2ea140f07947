package com.company.kafka.connect.smt;

import headgate.connect.plugin.SchemaFacts;
import headgate.connect.hash.RowHash;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/** What one value schema means for the hash: worked out once, used for every record that has it. */
final class StructPlan {
  private final Schema source;
  private final Schema target;
  private final List<String> missing;
  private final Set<String> removed;
  private final Set<String> added;

  /** {@code outputs} are the fields that the transformation puts in. */
  StructPlan(Schema source, RowHash hash, Map<String, Schema> outputs) {
    this.source = source;
    removed = new TreeSet<>(SchemaFacts.told(source, SchemaFacts.REMOVED));
    removed.retainAll(hash.names());
    added = SchemaFacts.told(source, SchemaFacts.ADDED);
    missing =
        hash.names().stream()
            .filter(name -> source.field(name) == null && !removed.contains(name))
            .toList();
    target = target(outputs);
  }

  private Schema target(Map<String, Schema> outputs) {
    SchemaBuilder builder =
        SchemaBuilder.struct().name(source.name()).version(source.version()).doc(source.doc());
    if (source.parameters() != null) {
      builder.parameters(source.parameters());
    }
    for (Field field : source.fields()) {
      if (!outputs.containsKey(field.name())) {
        builder.field(field.name(), field.schema());
      }
    }
    outputs.forEach(builder::field);
    return builder.build();
  }

  List<String> missing() {
    return missing;
  }

  /** Hashed columns that the table has lost; they hash as null. */
  Set<String> removed() {
    return removed;
  }

  Set<String> added() {
    return added;
  }

  Object field(Struct value, String name) {
    Field field = source.field(name);
    return field == null ? null : value.getWithoutDefault(name);
  }

  /** A copy with the new fields; the original stays as it is, for it may become a dead letter. */
  Struct with(Struct value, Map<String, Object> outputs) {
    Struct copy = new Struct(target);
    for (Field field : target.fields()) {
      String name = field.name();
      copy.put(field, outputs.containsKey(name) ? outputs.get(name) : value.getWithoutDefault(name));
    }
    return copy;
  }

  Schema target() {
    return target;
  }
}
