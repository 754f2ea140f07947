package headgate.connect.cassandra;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The rows that were emitted and will be read again, since scans overlap by {@code lag.ms}.
 *
 * <p>It holds the keys of that span only. After a restart it is empty, and they are emitted once
 * more: at least once, never not at all.
 */
final class RecentRows {
  private static final int LEAST_LIMIT = 10_000;

  private final Map<List<Object>, Long> versions = new HashMap<>();
  private int limit = LEAST_LIMIT;

  boolean has(List<Object> key, long version) {
    Long seen = versions.get(key);
    return seen != null && seen == version;
  }

  /** Remembers a row; what is older than {@code floor} is forgotten now and then. */
  void add(List<Object> key, long version, long floor) {
    versions.put(key, version);
    if (versions.size() > limit) {
      forgetBefore(floor);
      limit = Math.max(LEAST_LIMIT, 2 * versions.size());
    }
  }

  void forgetBefore(long floor) {
    versions.values().removeIf(version -> version < floor);
  }

  int size() {
    return versions.size();
  }
}
