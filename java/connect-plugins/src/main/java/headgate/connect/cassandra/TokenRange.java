package headgate.connect.cassandra;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A piece of the Murmur3 ring: after {@code from}, up to and with {@code to}. */
public record TokenRange(long from, long to) {
  private static final BigInteger LEAST = BigInteger.valueOf(Long.MIN_VALUE);
  private static final BigInteger SPAN = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);

  /** The ring in {@code n} equal pieces. No row has the least token, so none is left out. */
  public static List<TokenRange> cut(int n) {
    List<TokenRange> ranges = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      ranges.add(new TokenRange(bound(i, n), bound(i + 1, n)));
    }
    return ranges;
  }

  private static long bound(int i, int n) {
    BigInteger part = SPAN.multiply(BigInteger.valueOf(i)).divide(BigInteger.valueOf(n));
    return LEAST.add(part).longValueExact();
  }

  /** Ranges as one setting, read back by {@link #parse}. */
  public static String text(List<TokenRange> ranges) {
    return ranges.stream().map(r -> r.from + ":" + r.to).collect(Collectors.joining(","));
  }

  public static List<TokenRange> parse(String text) {
    return Stream.of(text.split(",")).map(TokenRange::one).collect(Collectors.toList());
  }

  private static TokenRange one(String text) {
    String[] bounds = text.split(":");
    return new TokenRange(Long.parseLong(bounds[0]), Long.parseLong(bounds[1]));
  }

  /** What Connect files this range's offset under. */
  public Map<String, String> sourcePartition(String table) {
    return Map.of("table", table, "from", Long.toString(from), "to", Long.toString(to));
  }
}
