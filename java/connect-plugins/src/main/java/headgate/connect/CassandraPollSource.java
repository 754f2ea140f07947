package headgate.connect;

import headgate.connect.cassandra.PollSettings;
import headgate.connect.cassandra.TokenRange;
import headgate.connect.plugin.Build;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.util.ConnectorUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the changed rows of one Cassandra table every few seconds, by a column that holds the time
 * of the last change.
 *
 * <p>It scans token ranges and lets Cassandra filter, so every poll costs a read of the whole
 * table: it is for tables of thousands to a few million rows. Deletes leave no row and are not seen.
 */
public final class CassandraPollSource extends SourceConnector {
  private static final Logger LOG = LoggerFactory.getLogger(CassandraPollSource.class);

  private Map<String, String> settings = Map.of();

  @Override
  public void start(Map<String, String> given) {
    PollSettings read = PollSettings.of(given);
    settings = Map.copyOf(given);
    LOG.warn(
        "{}: a delete in {} is not seen by polling, so that a key deleted on both sides becomes a"
            + " ZOMBIE; let the lookup hasher run beside this connector",
        read.connector(),
        read.tableName());
  }

  @Override
  public Class<? extends Task> taskClass() {
    return CassandraPollTask.class;
  }

  /** The ring is always cut into the same ranges, so another tasks.max finds the same offsets. */
  @Override
  public List<Map<String, String>> taskConfigs(int maxTasks) {
    List<TokenRange> ranges = TokenRange.cut(PollSettings.of(settings).splits());
    return ConnectorUtils.groupPartitions(ranges, Math.min(maxTasks, ranges.size())).stream()
        .map(this::taskConfig)
        .collect(Collectors.toList());
  }

  private Map<String, String> taskConfig(List<TokenRange> ranges) {
    Map<String, String> config = new HashMap<>(settings);
    config.put(PollSettings.TASK_RANGES, TokenRange.text(ranges));
    return config;
  }

  @Override
  public void stop() {}

  @Override
  public ConfigDef config() {
    return PollSettings.DEFINITION;
  }

  @Override
  public String version() {
    return Build.VERSION;
  }
}
