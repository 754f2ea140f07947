package headgate.connect.cassandra;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.fails;
import static headgate.connect.Cases.holds;

import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.DataTypes;
import headgate.connect.CassandraPollSource;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigException;

/** The parts of the source that need no Cassandra. */
public final class SourceCases {
  private static Map<String, String> settings() {
    return new HashMap<>(
        Map.of(
            "contact.points", "a, b:9999", "port", "9042", "load.balancing.local.dc", "dc1",
            "keyspace", "ks", "table", "t", "topic.prefix", "raw-cloud-",
            "timestamp.column.name", "last_updated"));
  }

  public void theRangesCoverTheRingWithoutOverlap() {
    for (int n : new int[] {1, 2, 3, 7, 1024}) {
      List<TokenRange> ranges = TokenRange.cut(n);
      equal(n, ranges.size());
      equal(Long.MIN_VALUE, ranges.get(0).from());
      equal(Long.MAX_VALUE, ranges.get(n - 1).to());
      for (int i = 1; i < n; i++) {
        equal(ranges.get(i - 1).to(), ranges.get(i).from());
        holds(ranges.get(i).from() < ranges.get(i).to(), "no range is empty");
      }
    }
  }

  public void tasksShareTheSameRangesHoweverManyThereAre() {
    CassandraPollSource source = new CassandraPollSource();
    source.start(settings());
    for (int most : new int[] {1, 3, 4, 9}) {
      List<Map<String, String>> tasks = source.taskConfigs(most);
      equal(Math.min(most, 4), tasks.size());
      List<TokenRange> all = new ArrayList<>();
      tasks.forEach(task -> all.addAll(TokenRange.parse(task.get(PollSettings.TASK_RANGES))));
      equal(TokenRange.cut(4), all);
    }
  }

  public void hostsMayBringTheirPort() {
    PollSettings read = PollSettings.of(settings());
    equal(9042, read.contactPoints().get(0).getPort());
    equal(9999, read.contactPoints().get(1).getPort());
    equal("raw-cloud-t", read.topic());
  }

  public void anotherModeIsRefused() {
    Map<String, String> wrong = settings();
    wrong.put("mode", "bulk");
    fails(ConfigException.class, () -> PollSettings.of(wrong));
  }

  public void onlyRowsOfTheOverlapAreRemembered() {
    RecentRows recent = new RecentRows();
    for (long i = 0; i < 100_000; i++) {
      recent.add(List.of(i), i, i - 50);
    }
    holds(recent.size() <= 10_001, "old rows are forgotten on the way");
    recent.forgetBefore(99_990);
    equal(10, recent.size());
    holds(recent.has(List.of(99_995L), 99_995L), "the row is known");
    holds(!recent.has(List.of(99_995L), 99_996L), "a new version of it is not");
  }

  public void everyTypeKeepsItsValue() throws Exception {
    equal(new BigDecimal("12345678901234567890"), of(DataTypes.VARINT, new BigInteger("12345678901234567890")));
    equal("1.50", of(DataTypes.DECIMAL, new BigDecimal("1.50")));
    equal("127.0.0.1", of(DataTypes.INET, InetAddress.getByName("127.0.0.1")));
    equal("2024-02-29", of(DataTypes.DATE, LocalDate.of(2024, 2, 29)));
    equal(List.of("0.1"), of(DataTypes.setOf(DataTypes.DECIMAL), Set.of(new BigDecimal("0.1"))));
    equal(Map.of("a", 1), of(DataTypes.mapOf(DataTypes.TEXT, DataTypes.INT), Map.of("a", 1)));
    equal("5", Cells.key(DataTypes.BIGINT).of(5L));
    equal(null, of(DataTypes.INT, null));
  }

  private static Object of(DataType type, Object value) {
    return Cells.of(type).of(value);
  }

  public void timesHaveMillisecondsAlways() {
    equal("2024-01-31T12:30:00.000Z", Cells.time(Instant.parse("2024-01-31T12:30:00Z")));
    equal("1969-12-31T23:59:59.999Z", Cells.time(Instant.ofEpochMilli(-1)));
  }
}
