package headgate.connect.cassandra;

import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import headgate.connect.plugin.Counters;
import headgate.connect.letters.DeadLetters;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A task's rounds over its token ranges: one after the other, then a pause until the next is due. */
public final class Polling implements AutoCloseable {
  public static final List<String> COUNTERS =
      List.of("rows", "scans", "retries", "timeouts", "dead_letters", "schema_drift", "column_removed");
  private static final Logger LOG = LoggerFactory.getLogger(Polling.class);
  /** Connect asks a task to stop between polls, so none sleeps longer than this. */
  private static final long LONGEST_SLEEP_MS = 500;

  private final PollSettings settings;
  private final List<Split> splits;
  private final TableReader reader;
  private final Counters counters;
  private final Outage outage;
  private TableShape told;
  private int current;
  private long roundAt;
  private long waitUntil;

  public Polling(
      PollSettings settings,
      List<TokenRange> ranges,
      Map<Map<String, String>, Map<String, Object>> offsets,
      DeadLetters letters) {
    this.settings = settings;
    splits =
        ranges.stream()
            .map(r -> new Split(r, settings, offsets.get(r.sourcePartition(settings.tableName()))))
            .collect(Collectors.toList());
    reader = new TableReader(settings, remembered(offsets));
    counters = Counters.of("CassandraPoll", settings.connector(), COUNTERS);
    outage = new Outage(settings, counters, letters);
  }

  private static Set<String> remembered(Map<Map<String, String>, Map<String, Object>> offsets) {
    Set<String> columns = new TreeSet<>();
    for (Map<String, Object> offset : offsets.values()) {
      if (offset != null && offset.get("columns") instanceof String names && !names.isEmpty()) {
        columns.addAll(List.of(names.split(",")));
      }
    }
    return columns;
  }

  /**
   * Refuses a table that can never be read as asked, before the task says that it runs. One that
   * only cannot be reached now is looked at again by the first scan.
   */
  public void look() {
    try {
      reader.look();
    } catch (DriverException away) {
      LOG.warn("{}: Cassandra is not there yet: {}", settings.connector(), away.getMessage());
    }
  }

  /** The next records, or null when there are none now. */
  public List<SourceRecord> next() throws InterruptedException {
    if (!due()) {
      return null;
    }
    Split split = splits.get(current);
    if (current == 0 && !split.scanning()) {
      roundAt = System.currentTimeMillis();
    }
    try {
      List<SourceRecord> records = split.next(reader, System.currentTimeMillis());
      tellChanges();
      went(split, records.size());
      return records.isEmpty() ? null : records;
    } catch (InvalidQueryException error) {
      misfit(split, error);
    } catch (DriverException error) {
      wait(split, error);
    }
    return null;
  }

  private boolean due() throws InterruptedException {
    long left = waitUntil - System.currentTimeMillis();
    if (left > 0) {
      Thread.sleep(Math.min(left, LONGEST_SLEEP_MS));
    }
    return left <= LONGEST_SLEEP_MS;
  }

  private void went(Split split, int rows) {
    outage.over();
    counters.add("rows", rows);
    if (split.scanning()) {
      return;
    }
    counters.add("scans");
    current = (current + 1) % splits.size();
    if (current == 0) {
      waitUntil = roundAt + settings.pollMs();
    }
  }

  /** The table has changed under a prepared statement, or it never fitted. */
  private void misfit(Split split, InvalidQueryException error) {
    if (outage.exhausted()) {
      throw new ConnectException("Cassandra refuses the scan of " + settings.tableName(), error);
    }
    wait(split, error);
    try {
      reader.lookAgain();
    } catch (DriverException away) {
      LOG.warn("{}: the schema could not be read: {}", settings.connector(), away.getMessage());
    }
  }

  private void wait(Split split, DriverException error) {
    split.abandon();
    waitUntil = System.currentTimeMillis() + outage.failed(split, error);
  }

  private void tellChanges() {
    TableShape shape = reader.taken();
    if (shape == told) {
      return;
    }
    told = shape;
    shape.added().forEach(column -> changed("schema_drift", "a new column", column));
    shape.removed().forEach(column -> changed("column_removed", "no longer a column", column));
  }

  private void changed(String counter, String what, String column) {
    counters.addOnce(counter, column);
    LOG.warn("{}: {} has {} {}", settings.connector(), settings.tableName(), what, column);
  }

  @Override
  public void close() {
    reader.close();
  }
}
