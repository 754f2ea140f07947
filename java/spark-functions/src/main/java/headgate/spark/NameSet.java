package headgate.spark;

import java.util.Arrays;

/** The names of one object, as places in the record's bytes. Few are expected, so that each is compared. */
final class NameSet {
  private static final int CAPACITY = 32;
  private final byte[] bytes;
  private final int[] starts = new int[CAPACITY];
  private final int[] ends = new int[CAPACITY];
  private int size;

  NameSet(byte[] bytes) {
    this.bytes = bytes;
  }

  /** False where the name is there already, or there are too many to compare. */
  boolean add(int start, int end) {
    if (size == CAPACITY) {
      return false;
    }
    for (int at = 0; at < size; at++) {
      if (Arrays.equals(bytes, starts[at], ends[at], bytes, start, end)) {
        return false;
      }
    }
    starts[size] = start;
    ends[size++] = end;
    return true;
  }
}
