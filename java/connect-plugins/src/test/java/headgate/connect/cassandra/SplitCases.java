package headgate.connect.cassandra;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.fails;
import static headgate.connect.Cases.holds;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/** How far a range has been read: over a table in memory, with a clock that the test turns. */
public final class SplitCases {
  private static final long LAG = 1_000;
  private static final TokenRange RANGE = TokenRange.cut(1).get(0);
  private static final Schema ROW =
      SchemaBuilder.struct()
          .field("pk", Schema.STRING_SCHEMA)
          .field("version", Schema.INT64_SCHEMA)
          .build();

  private final World world = new World();

  /** A table whose rows can change while a scan walks over them. */
  private static final class World implements Scannable {
    final TreeMap<String, Long> rows = new TreeMap<>();
    long now = 1_000_000;
    int failAfter = Integer.MAX_VALUE;
    Runnable eachRow = () -> {};

    @Override
    public Iterator<FoundRow> rows(TokenRange range, long floor) {
      return new Iterator<>() {
        String at = "";

        @Override
        public boolean hasNext() {
          if (failAfter-- <= 0) {
            throw new IllegalStateException("Cassandra is away");
          }
          return following() != null;
        }

        private String following() {
          for (String key : rows.tailMap(at, false).keySet()) {
            if (rows.get(key) >= floor) {
              return key;
            }
          }
          return null;
        }

        @Override
        public FoundRow next() {
          at = following();
          String key = at;
          long version = rows.get(key);
          eachRow.run();
          return new FoundRow(List.of(key), version, () -> value(key, version));
        }
      };
    }

    @Override
    public Set<String> known() {
      return Set.of("pk");
    }
  }

  private static Struct value(String key, long version) {
    return new Struct(ROW).put("pk", key).put("version", version);
  }

  private static Split split(int batch, Map<String, Object> offset) {
    return split(batch, offset, 0);
  }

  private static Split split(int batch, Map<String, Object> offset, long fullScanMs) {
    Map<String, String> settings = new HashMap<>();
    settings.put("contact.points", "a");
    settings.put("load.balancing.local.dc", "d");
    settings.put("keyspace", "k");
    settings.put("table", "t");
    settings.put("timestamp.column.name", "version");
    settings.put("lag.ms", Long.toString(LAG));
    settings.put("batch.size", Integer.toString(batch));
    settings.put("full.scan.interval.ms", Long.toString(fullScanMs));
    return new Split(RANGE, PollSettings.of(settings), offset);
  }

  /** One whole scan. */
  private List<SourceRecord> scan(Split split) {
    List<SourceRecord> records = new ArrayList<>();
    do {
      records.addAll(split.next(world, world.now));
    } while (split.scanning());
    return records;
  }

  private static List<Object> keys(List<SourceRecord> records) {
    return new ArrayList<>(records.stream().map(SourceRecord::key).toList());
  }

  private static Object mark(SourceRecord record) {
    return record.sourceOffset().get("mark");
  }

  public void everyRowComesOnceWhateverTheBatch() {
    for (int batch = 1; batch <= 7; batch++) {
      for (int n = 0; n <= 6; n++) {
        world.rows.clear();
        for (int i = 0; i < n; i++) {
          world.rows.put("k" + i, world.now - i);
        }
        Split split = split(batch, null);
        equal(new ArrayList<>(world.rows.keySet()), keys(scan(split)));
        equal(List.of(), keys(scan(split)));
      }
    }
  }

  public void theMarkMovesWithTheLastRecordOfAScanOnly() {
    for (int i = 0; i < 5; i++) {
      world.rows.put("k" + i, world.now - i);
    }
    List<SourceRecord> records = scan(split(2, null));
    records.subList(0, 4).forEach(record -> equal(Split.BEGINNING, mark(record)));
    equal(world.now, mark(records.get(4)));
  }

  public void aRowFromTheFutureDoesNotHideThePresent() {
    world.rows.put("a", world.now + 1_000_000_000);
    Split split = split(10, null);
    equal(List.of("a"), keys(scan(split)));
    world.now += 60_000;
    world.rows.put("b", world.now);
    equal(List.of("b"), keys(scan(split)));
    world.now += 60_000;
    equal(List.of(), keys(scan(split)));
  }

  public void aRowWrittenWithAnOldTimeIsFoundByTheNextFullScan() {
    world.rows.put("a", world.now);
    Split usual = split(10, null);
    Split thorough = split(10, null, 60_000);
    scan(usual);
    scan(thorough);
    world.rows.put("late", world.now - 500_000);
    world.now += 10_000;
    equal(List.of(), keys(scan(usual)));
    equal(List.of(), keys(scan(thorough)));
    world.now += 50_000;
    equal(List.of(), keys(scan(usual)));
    world.failAfter = 2;
    fails(IllegalStateException.class, () -> scan(thorough));
    thorough.abandon();
    world.failAfter = Integer.MAX_VALUE;
    equal(List.of("late"), keys(scan(thorough)));
    world.now += 10_000;
    equal(List.of(), keys(scan(thorough)));
  }

  public void aWorkerWhoseClockIsFastHidesNothing() {
    Split split = split(10, null);
    for (int i = 0; i < 3; i++) {
      world.rows.put("k" + i, world.now + i);
      equal(List.of("k" + i), keys(split.next(world, world.now + 3_600_000)));
    }
  }

  public void aRowWrittenBehindTheScanIsFoundByTheNext() {
    world.rows.put("m", world.now);
    world.rows.put("z", world.now);
    Split split = split(10, null);
    world.eachRow =
        () -> {
          world.now += 5_000;
          world.rows.putIfAbsent("a", world.now);
          world.rows.put("z", world.now + 5_000);
        };
    scan(split);
    world.eachRow = () -> {};
    world.now += 20_000;
    holds(keys(scan(split)).contains("a"), "the row is not lost");
  }

  public void aFailedScanBeginsAgainAndRepeatsNothingThatWasSent() {
    for (int i = 0; i < 6; i++) {
      world.rows.put("k" + i, world.now - i);
    }
    Split split = split(2, null);
    List<Object> sent = keys(split.next(world, world.now));
    world.failAfter = 1;
    fails(IllegalStateException.class, () -> split.next(world, world.now));
    split.abandon();
    world.failAfter = Integer.MAX_VALUE;
    sent.addAll(keys(scan(split)));
    equal(new ArrayList<>(world.rows.keySet()), sent);
  }

  public void afterARestartTheOverlapIsReadAgainAndNothingBefore() {
    world.rows.put("old", world.now - 10 * LAG);
    world.rows.put("new", world.now);
    List<SourceRecord> records = scan(split(10, null));
    Map<String, Object> stored = new HashMap<>(records.get(records.size() - 1).sourceOffset());
    equal(List.of("new"), keys(scan(split(10, stored))));
  }

  public void noOrderOfWritesFailuresAndKillsLosesARow() {
    for (int seed = 0; seed < 2_000; seed++) {
      new Play(new Random(seed)).run(seed);
    }
  }

  /** Rows are written by clocks that differ by less than the lag; Connect is killed at any time. */
  private static final class Play {
    private final Random random;
    private final World world = new World();
    private final List<SourceRecord> sent = new ArrayList<>();
    private Map<String, Object> stored;
    private Split split;

    Play(Random random) {
      this.random = random;
      split = split(1 + random.nextInt(4), null);
      world.eachRow = this::maybeWrite;
    }

    void run(int seed) {
      for (int step = 0; step < 60; step++) {
        world.failAfter = random.nextInt(5) == 0 ? random.nextInt(6) : Integer.MAX_VALUE;
        maybeWrite();
        if (random.nextInt(8) == 0) {
          kill();
        }
        poll();
      }
      settle();
      Map<Object, Object> newest = new HashMap<>();
      sent.forEach(r -> newest.merge(r.key(), ((Struct) r.value()).get("version"), Play::later));
      equal("seed " + seed + new TreeMap<>(world.rows), "seed " + seed + new TreeMap<>(newest));
    }

    private static Object later(Object a, Object b) {
      return Math.max((Long) a, (Long) b);
    }

    private void maybeWrite() {
      world.now += random.nextInt(700);
      if (random.nextInt(3) > 0) {
        String key = "k" + random.nextInt(8);
        long version = world.now - random.nextInt((int) LAG) + random.nextInt(400);
        world.rows.merge(key, version, Math::max);
      }
    }

    private void poll() {
      try {
        sent.addAll(split.next(world, world.now));
      } catch (IllegalStateException away) {
        split.abandon();
      }
    }

    /** Connect stores offsets in order: some prefix of what was sent, never less than before. */
    private void kill() {
      if (!sent.isEmpty() && random.nextBoolean()) {
        stored = new HashMap<>(sent.get(sent.size() - 1).sourceOffset());
      }
      split = split(1 + random.nextInt(4), stored);
    }

    private void settle() {
      world.eachRow = () -> {};
      world.failAfter = Integer.MAX_VALUE;
      world.now += 10 * LAG;
      int scans = 0;
      while (scans < 3) {
        sent.addAll(split.next(world, world.now));
        scans += split.scanning() ? 0 : 1;
      }
    }
  }
}
