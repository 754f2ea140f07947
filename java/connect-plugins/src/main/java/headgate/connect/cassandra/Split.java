package headgate.connect.cassandra;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * One token range and how far it has been read.
 *
 * <p>The mark is a time: every row changed before it was emitted. It moves only with the last record
 * of a whole scan, and never past the scan's start, because a row that is written behind the scan
 * meanwhile may be older than one that the scan still finds. So a kill repeats a scan and loses
 * nothing, and one row from the future does not hide those of the present.
 */
public final class Split {
  /** Below every time that Cassandra can hold. */
  static final long BEGINNING = Long.MIN_VALUE;

  private final TokenRange range;
  private final PollSettings settings;
  private final Map<String, String> partition;
  private final RecentRows recent = new RecentRows();
  private long mark;
  private long fullAt = BEGINNING;
  private Scan scan;

  public Split(TokenRange range, PollSettings settings, Map<String, Object> offset) {
    this.range = range;
    this.settings = settings;
    partition = range.sourcePartition(settings.tableName());
    mark = offset != null && offset.get("mark") instanceof Number n ? n.longValue() : BEGINNING;
  }

  /** A scan under way; {@code held} is its last row so far, which may turn out to be the last. */
  private static final class Scan {
    final long startedAt;
    final boolean full;
    final Iterator<FoundRow> rows;
    final String columns;
    long newest = BEGINNING;
    FoundRow held;

    Scan(long startedAt, boolean full, Iterator<FoundRow> rows, Set<String> known) {
      this.startedAt = startedAt;
      this.full = full;
      this.rows = rows;
      columns = String.join(",", known);
    }
  }

  public TokenRange range() {
    return range;
  }

  /** The time from which the next scan reads. */
  public long floor() {
    return mark < BEGINNING + settings.lagMs() ? BEGINNING : mark - settings.lagMs();
  }

  public boolean scanning() {
    return scan != null;
  }

  /** Forgets a scan that failed; the next begins where it began. */
  public void abandon() {
    scan = null;
  }

  /** The next records of this range; {@link #scanning} says whether there may be more. */
  public List<SourceRecord> next(Scannable table, long now) {
    if (scan == null) {
      boolean full = isFullDue(now);
      Iterator<FoundRow> rows = table.rows(range, full ? BEGINNING : floor());
      scan = new Scan(now, full, rows, table.known());
    }
    List<FoundRow> found = read();
    boolean whole = !scan.rows.hasNext();
    // Cassandra is not asked any more below: what is marked as emitted will be.
    if (scan.held != null) {
      found.add(0, scan.held);
    }
    scan.held = whole || found.isEmpty() ? null : found.remove(found.size() - 1);
    return whole ? finish(found) : records(found, mark);
  }

  /** A row that was written with an old time is below every other scan's floor. */
  private boolean isFullDue(long now) {
    if (mark == BEGINNING) {
      return true;
    }
    fullAt = fullAt == BEGINNING ? now : fullAt;
    return settings.fullScanMs() > 0 && now - fullAt >= settings.fullScanMs();
  }

  private List<FoundRow> read() {
    List<FoundRow> found = new ArrayList<>();
    for (int n = 0; n < settings.batchSize() && scan.rows.hasNext(); n++) {
      FoundRow row = scan.rows.next();
      scan.newest = Math.max(scan.newest, row.version());
      if (!recent.has(row.key(), row.version())) {
        found.add(row);
      }
    }
    return found;
  }

  private List<SourceRecord> finish(List<FoundRow> found) {
    long reached = Math.max(mark, Math.min(scan.newest, scan.startedAt));
    List<SourceRecord> records = records(found.subList(0, Math.max(0, found.size() - 1)), mark);
    if (!found.isEmpty()) {
      records.addAll(records(found.subList(found.size() - 1, found.size()), reached));
    }
    mark = reached;
    fullAt = scan.full ? scan.startedAt : fullAt;
    recent.forgetBefore(floor());
    scan = null;
    return records;
  }

  private List<SourceRecord> records(List<FoundRow> found, long reached) {
    List<SourceRecord> records = new ArrayList<>();
    for (FoundRow row : found) {
      recent.add(row.key(), row.version(), keptFrom());
      records.add(record(row.value().get(), reached));
    }
    return records;
  }

  /** Rows before this are below the next scan's floor at the least. */
  private long keptFrom() {
    long reached = Math.min(scan.newest, scan.startedAt);
    return reached < BEGINNING + settings.lagMs() ? BEGINNING : reached - settings.lagMs();
  }

  private SourceRecord record(Struct value, long reached) {
    Map<String, Object> offset =
        Map.of("mark", reached, "columns", scan.columns);
    String key = value.getString(settings.pkColumn());
    return new SourceRecord(
        partition, offset, settings.topic(), null, Schema.STRING_SCHEMA, key, value.schema(), value);
  }
}
