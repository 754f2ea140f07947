package headgate.connect.cassandra;

import java.util.Iterator;
import java.util.Set;

/** A table that can be read range by range. */
public interface Scannable {
  /** The rows of a range whose time is not before {@code floor}, in the ring's order. */
  Iterator<FoundRow> rows(TokenRange range, long floor);

  /** Every column that was ever seen. */
  Set<String> known();
}
