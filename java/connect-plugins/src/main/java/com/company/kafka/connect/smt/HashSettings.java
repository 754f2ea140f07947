package com.company.kafka.connect.smt;

import headgate.connect.hash.HashContract;
import headgate.connect.hash.RowHash;
import headgate.connect.letters.DeadLetters;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;

/** The settings of {@link HashRowSMT}; what Connect validates before a connector starts. */
final class HashSettings {
  static final ConfigDef DEFINITION = definition();
  private static final String THREAD = "task-thread-";

  private final AbstractConfig config;

  HashSettings(Map<String, ?> given) {
    config = new AbstractConfig(DEFINITION, given, false);
  }

  private static ConfigDef definition() {
    return new ConfigDef()
        .define("hash.fields", Type.LIST, List.of(), Importance.HIGH, "fields to hash; others do not count")
        .define("hash.algorithm", Type.STRING, "SHA-256", ValidString.in(RowHash.ALGORITHMS.toArray(String[]::new)), Importance.HIGH, "digest of the row's text")
        .define("hash.version", Type.INT, 1, Range.between(1, 2), Importance.HIGH, "version of the hash contract")
        .define("hash.contract", Type.STRING, "", HashSettings::checkContract, Importance.HIGH, "fields with types: one line, JSON, or the path of a file with either")
        .define("output.field", Type.STRING, "hash_cloud", new ConfigDef.NonEmptyString(), Importance.MEDIUM, "field that gets the hash")
        .define("version.field", Type.STRING, "", Importance.MEDIUM, "field that gets the hash version; empty: none")
        .define("dlq.topic", Type.STRING, DeadLetters.TOPIC, Importance.MEDIUM, "topic of dead letters")
        .define("dlq.bootstrap.servers", Type.LIST, List.of(), Importance.MEDIUM, "brokers of that topic; without them a bad record is an exception")
        .define("dlq.timeout.ms", Type.LONG, 600_000L, Range.between(1_000, 600_000), Importance.LOW, "limit for one dead letter")
        .define("connector.name", Type.STRING, "", Importance.LOW, "the connector's name in counters and dead letters");
  }

  private static void checkContract(String name, Object value) {
    try {
      if (!String.valueOf(value).isBlank()) {
        HashContract.read((String) value);
      }
    } catch (IllegalArgumentException error) {
      throw new ConfigException(name, value, error.getMessage());
    }
  }

  RowHash hash() {
    String contract = config.getString("hash.contract");
    RowHash hash = contract.isBlank() ? untyped() : typed(HashContract.read(contract));
    List<String> fields = config.getList("hash.fields");
    if (!fields.isEmpty() && !new HashSet<>(fields).equals(new HashSet<>(hash.names()))) {
      throw new ConfigException("hash.fields", fields, "hash.contract names " + hash.names());
    }
    return hash;
  }

  private RowHash untyped() {
    if (config.getInt("hash.version") != 1) {
      throw new ConfigException("hash.contract", "", "version 2 needs the fields' types");
    }
    if (config.getList("hash.fields").isEmpty()) {
      throw new ConfigException("hash.fields", List.of(), "name the fields to hash");
    }
    return RowHash.untyped(config.getList("hash.fields"), config.getString("hash.algorithm"));
  }

  private RowHash typed(HashContract contract) {
    String algorithm = config.getString("hash.algorithm");
    if (config.getInt("hash.version") == 1) {
      return RowHash.version1(contract, algorithm);
    }
    if (!algorithm.equals("SHA-256")) {
      throw new ConfigException("hash.algorithm", algorithm, "version 2 is SHA-256");
    }
    return RowHash.version2(contract);
  }

  String outputField() {
    return config.getString("output.field");
  }

  String versionField() {
    return config.getString("version.field");
  }

  /** Connect does not tell a transformation whose it is; its task's thread does. */
  String connector() {
    String named = config.getString("connector.name");
    String thread = Thread.currentThread().getName();
    if (!named.isEmpty() || !thread.startsWith(THREAD)) {
      return named.isEmpty() ? "unnamed" : named;
    }
    return thread.substring(THREAD.length()).replaceFirst("-\\d+$", "");
  }

  /** The writer of dead letters, or null when no brokers are named. */
  DeadLetters deadLetters(String connector) {
    List<String> brokers = config.getList("dlq.bootstrap.servers");
    if (brokers.isEmpty()) {
      return null;
    }
    return DeadLetters.to(
        config.getString("dlq.topic"),
        connector,
        String.join(",", brokers),
        config.getLong("dlq.timeout.ms"),
        config.originalsWithPrefix("dlq.producer."));
  }
}
