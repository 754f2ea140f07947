package headgate.connect.cassandra;

import java.util.Collection;
import java.util.Locale;

/** The name that was probably meant. */
final class Nearest {
  private static final int MOST_EDITS = 3;

  private Nearest() {}

  /** The nearest of the names by edits, whatever their case; null when none is near. */
  static String to(String name, Collection<String> names) {
    String nearest = null;
    int least = Math.min(MOST_EDITS, Math.max(1, name.length() / 2)) + 1;
    for (String other : names) {
      int edits = edits(name.toLowerCase(Locale.ROOT), other.toLowerCase(Locale.ROOT));
      if (edits < least) {
        least = edits;
        nearest = other;
      }
    }
    return nearest;
  }

  /** How many signs must be put in, taken out or changed. */
  private static int edits(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int corner = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int changed = corner + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        corner = row[j];
        row[j] = Math.min(changed, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }
}
