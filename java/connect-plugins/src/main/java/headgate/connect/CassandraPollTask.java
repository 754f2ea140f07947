package headgate.connect;

import headgate.connect.cassandra.PollSettings;
import headgate.connect.cassandra.Polling;
import headgate.connect.cassandra.TokenRange;
import headgate.connect.letters.DeadLetters;
import headgate.connect.plugin.Build;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Connect's side of the polling source: offsets in, records out. */
public final class CassandraPollTask extends SourceTask {
  private Polling polling;
  private DeadLetters letters;

  @Override
  public void start(Map<String, String> given) {
    PollSettings settings = PollSettings.of(given);
    List<TokenRange> ranges = TokenRange.parse(given.get(PollSettings.TASK_RANGES));
    letters = settings.deadLetters();
    polling = new Polling(settings, ranges, offsets(settings, ranges), letters);
    polling.look();
  }

  /** Of all ranges: which columns the table once had, another task's rows may have told. */
  private Map<Map<String, String>, Map<String, Object>> offsets(
      PollSettings settings, List<TokenRange> ranges) {
    Collection<Map<String, String>> partitions =
        Stream.concat(ranges.stream(), TokenRange.cut(settings.splits()).stream())
            .distinct()
            .map(range -> range.sourcePartition(settings.tableName()))
            .collect(Collectors.toList());
    return context.offsetStorageReader().offsets(partitions);
  }

  @Override
  public List<SourceRecord> poll() throws InterruptedException {
    return polling.next();
  }

  @Override
  public void stop() {
    if (polling != null) {
      polling.close();
    }
    if (letters != null) {
      letters.close();
    }
  }

  @Override
  public String version() {
    return Build.VERSION;
  }
}
