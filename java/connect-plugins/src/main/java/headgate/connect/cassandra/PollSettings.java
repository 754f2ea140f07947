package headgate.connect.cassandra;

import headgate.connect.hash.HashField;
import headgate.connect.letters.DeadLetters;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.ValidString;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;

/** The settings of the polling source; the names are those of the connector file it stands in for. */
public final class PollSettings {
  public static final String TASK_RANGES = "task.ranges";
  public static final ConfigDef DEFINITION = definition();

  private final AbstractConfig config;
  private final String connector;
  private final List<HashField> hashed;

  private PollSettings(Map<String, String> given) {
    config = new AbstractConfig(DEFINITION, given, false);
    connector = given.getOrDefault("name", "cassandra-poll");
    hashed = HashedColumns.of(given);
    if (columns().contains("")) {
      throw new ConfigException("columns", config.getList("columns"), "has an empty name in it");
    }
  }

  public static PollSettings of(Map<String, String> given) {
    return new PollSettings(given);
  }

  private static ConfigDef definition() {
    return new ConfigDef()
        .define("contact.points", Type.LIST, Importance.HIGH, "hosts of the cluster, or host:port")
        .define("port", Type.INT, 9042, Range.between(1, 65535), Importance.MEDIUM, "port of hosts named without one")
        .define("load.balancing.local.dc", Type.STRING, Importance.HIGH, "the data centre to read in")
        .define("keyspace", Type.STRING, Importance.HIGH, "keyspace of the table")
        .define("table", Type.STRING, Importance.HIGH, "the table to read")
        .define("topic.prefix", Type.STRING, "", Importance.MEDIUM, "rows go to this prefix and the table's name")
        .define("poll.interval.ms", Type.LONG, 5_000L, Range.atLeast(1), Importance.MEDIUM, "time from one scan's start to the next")
        .define("mode", Type.STRING, "timestamp", ValidString.in("timestamp"), Importance.LOW, "timestamp is the one mode there is")
        .define("timestamp.column.name", Type.STRING, Importance.HIGH, "column with the time of a row's last change")
        .define("pk.column", Type.STRING, "pk", Importance.HIGH, "the key's column; its value is emitted as text")
        .define("columns", Type.LIST, List.of(), Importance.MEDIUM, "columns to read besides key and time; empty: all")
        .define("lag.ms", Type.LONG, 300_000L, Range.atLeast(0), Importance.MEDIUM, "how far behind the newest row a scan reads again")
        .define("full.scan.interval.ms", Type.LONG, 0L, Range.atLeast(0), Importance.LOW, "how often all rows are sent again; 0: never")
        .define("page.size", Type.INT, 1_000, Range.between(1, 100_000), Importance.LOW, "rows that Cassandra sends at a time")
        .define("batch.size", Type.INT, 1_000, Range.between(1, 100_000), Importance.LOW, "rows that one poll hands to Connect")
        .define("splits", Type.INT, 4, Range.between(1, 1_024), Importance.LOW, "pieces of the token ring; tasks share them")
        .define("request.timeout.ms", Type.LONG, 5_000L, Range.atLeast(1), Importance.LOW, "limit of one request")
        .define("retries", Type.INT, 3, Range.between(0, 100), Importance.MEDIUM, "further tries before a dead letter")
        .define("retry.backoff.ms", Type.LONG, 200L, Range.atLeast(1), Importance.LOW, "wait before the first further try; it doubles")
        .define("consistency.level", Type.STRING, "LOCAL_QUORUM", Importance.LOW, "consistency of reads")
        .define("username", Type.STRING, "", Importance.MEDIUM, "user, when the cluster asks for one")
        .define("password", Type.PASSWORD, "", Importance.MEDIUM, "that user's password")
        .define("ssl", Type.BOOLEAN, false, Importance.MEDIUM, "use TLS with the JVM's trust store")
        .define("dlq.topic", Type.STRING, DeadLetters.TOPIC, Importance.MEDIUM, "topic of dead letters")
        .define("dlq.bootstrap.servers", Type.LIST, List.of(), Importance.MEDIUM, "brokers of that topic; without them there are none")
        .define("dlq.timeout.ms", Type.LONG, 600_000L, Range.between(1_000, 600_000), Importance.LOW, "limit for one dead letter");
  }

  public String connector() {
    return connector;
  }

  public List<InetSocketAddress> contactPoints() {
    List<InetSocketAddress> points = new ArrayList<>();
    for (String point : config.getList("contact.points")) {
      int colon = point.lastIndexOf(':');
      boolean withPort = colon > 0 && point.indexOf(':') == colon;
      points.add(
          withPort
              ? new InetSocketAddress(point.substring(0, colon), portOf(point, colon))
              : new InetSocketAddress(point, config.getInt("port")));
    }
    return points;
  }

  private static int portOf(String point, int colon) {
    try {
      return Integer.parseInt(point.substring(colon + 1));
    } catch (NumberFormatException error) {
      throw new ConfigException("contact.points", point, "has no number after the colon");
    }
  }

  public String localDc() {
    return config.getString("load.balancing.local.dc");
  }

  public String keyspace() {
    return config.getString("keyspace");
  }

  public String table() {
    return config.getString("table");
  }

  public String tableName() {
    return keyspace() + "." + table();
  }

  public String topic() {
    return config.getString("topic.prefix") + table();
  }

  public String pkColumn() {
    return config.getString("pk.column");
  }

  public String timeColumn() {
    return config.getString("timestamp.column.name");
  }

  public List<String> columns() {
    return config.getList("columns");
  }

  /** Columns that the connector will hash, with their types; empty when that cannot be told. */
  public List<HashField> hashed() {
    return hashed;
  }

  public long pollMs() {
    return config.getLong("poll.interval.ms");
  }

  public long lagMs() {
    return config.getLong("lag.ms");
  }

  public long fullScanMs() {
    return config.getLong("full.scan.interval.ms");
  }

  public int pageSize() {
    return config.getInt("page.size");
  }

  public int batchSize() {
    return config.getInt("batch.size");
  }

  public int splits() {
    return config.getInt("splits");
  }

  public long requestTimeoutMs() {
    return config.getLong("request.timeout.ms");
  }

  public int retries() {
    return config.getInt("retries");
  }

  public long backoffMs() {
    return config.getLong("retry.backoff.ms");
  }

  public String consistency() {
    return config.getString("consistency.level");
  }

  public String username() {
    return config.getString("username");
  }

  public Password password() {
    return config.getPassword("password");
  }

  public boolean ssl() {
    return config.getBoolean("ssl");
  }

  /** The writer of dead letters, or null when no brokers are named. */
  public DeadLetters deadLetters() {
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
