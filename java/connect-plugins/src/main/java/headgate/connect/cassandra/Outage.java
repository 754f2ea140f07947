package headgate.connect.cassandra;

import headgate.connect.plugin.Counters;
import headgate.connect.letters.DeadLetter;
import headgate.connect.letters.DeadLetterLostError;
import headgate.connect.letters.DeadLetters;
import headgate.connect.letters.LetterText;
import headgate.connect.letters.Stage;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What to do while Cassandra does not answer: a few tries with growing pauses, then one dead letter
 * that says which scan waits, then tries at the usual pace until it is back. The task lives on, and
 * the scan is repeated from where it began.
 */
final class Outage {
  private static final Logger LOG = LoggerFactory.getLogger(Outage.class);
  private static final long LONGEST_PAUSE_MS = 30_000;

  private final PollSettings settings;
  private final Counters counters;
  private final DeadLetters letters;
  private final LetterText text = new LetterText();
  private int failures;
  private boolean told;

  Outage(PollSettings settings, Counters counters, DeadLetters letters) {
    this.settings = settings;
    this.counters = counters;
    this.letters = letters;
  }

  /** Notes a failure; how long to wait before the next try. */
  long failed(Split split, RuntimeException error) {
    failures++;
    if (failures <= settings.retries()) {
      counters.add("retries");
      LOG.warn("{}: Cassandra: {}; try {} follows", settings.connector(), error.getMessage(), failures);
      return Math.min(LONGEST_PAUSE_MS, settings.backoffMs() << Math.min(failures - 1, 16));
    }
    failures = 0;
    counters.add("timeouts");
    if (told) {
      LOG.warn("{}: Cassandra is still away", settings.connector());
    } else {
      LOG.error("{}: Cassandra is away; the scan waits", settings.connector(), error);
      tell(split, error);
    }
    return settings.pollMs();
  }

  /** Whether the tries that belong together are used up. */
  boolean exhausted() {
    return failures >= settings.retries();
  }

  void over() {
    if (told) {
      LOG.info("{}: Cassandra answers again; nothing was skipped", settings.connector());
    }
    failures = 0;
    told = false;
  }

  private void tell(Split split, RuntimeException error) {
    if (letters == null) {
      told = true;
      return;
    }
    Map<String, Object> waiting = new LinkedHashMap<>();
    waiting.put("table", settings.tableName());
    waiting.put("token_from", split.range().from());
    waiting.put("token_to", split.range().to());
    waiting.put("since", since(split));
    byte[] value = text.bytes(settings.topic(), null, waiting);
    Map<String, String> origin = Map.of("topic", settings.topic());
    try {
      letters.write(
          new DeadLetter(null, value, Stage.CASSANDRA, "dq_cassandra_timeout", error, origin));
      counters.add("dead_letters");
      told = true;
    } catch (DeadLetterLostError lost) {
      // No row is lost by this, so the task need not end: the letter is tried again later.
      LOG.error("{}: {}", settings.connector(), lost.getMessage());
    }
  }

  private static String since(Split split) {
    long floor = split.floor();
    return floor == Split.BEGINNING ? "the beginning" : Cells.time(Instant.ofEpochMilli(floor));
  }
}
