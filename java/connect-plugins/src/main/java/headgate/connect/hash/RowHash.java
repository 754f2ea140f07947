package headgate.connect.hash;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Date;
import java.util.HexFormat;
import java.util.List;
import java.util.function.BiFunction;

/**
 * The hash of a row by version 1 or 2 of the contract; docs/hash_contract.md is the specification.
 *
 * <p>Rows come in as a function from field name to value, since Connect has two kinds of them.
 */
public final class RowHash {
  /** What version 1 knows; version 2 is SHA-256 only. */
  public static final List<String> ALGORITHMS = List.of("SHA-256", "SHA-512", "MD5");

  /** A row: the value of a field by its name. */
  public interface Row extends java.util.function.Function<String, Object> {}

  private final int version;
  private final String algorithm;
  private final List<HashField> fields;
  private final BiFunction<LogicalType, Object, byte[]> text;
  private final byte[] between;

  private RowHash(
      int version,
      String algorithm,
      List<HashField> fields,
      BiFunction<LogicalType, Object, byte[]> text,
      String between) {
    this.version = version;
    this.algorithm = algorithm;
    this.fields = fields;
    this.text = text;
    this.between = between.getBytes(StandardCharsets.US_ASCII);
    digest();
  }

  public static RowHash version2(HashContract contract) {
    return new RowHash(2, "SHA-256", contract.fields(), ValueText::of, "");
  }

  public static RowHash version1(HashContract contract, String algorithm) {
    return new RowHash(1, algorithm, byName(contract.fields()), PlainText::of, "|");
  }

  /**
   * Version 1 of a connector file that gives no types: every value is what its toString says.
   *
   * <p>But a Date is written in UTC, for its toString tells the machine's zone; and bytes are
   * refused, for theirs tells an address.
   */
  public static RowHash untyped(List<String> names, String algorithm) {
    List<HashField> fields = names.stream().distinct().map(n -> new HashField(n, null)).toList();
    return new RowHash(1, algorithm, byName(fields), RowHash::asItPrints, "|");
  }

  private static List<HashField> byName(List<HashField> fields) {
    Comparator<HashField> order =
        (a, b) -> Arrays.compareUnsigned(Bodies.utf8(a.name()), Bodies.utf8(b.name()));
    return fields.stream().sorted(order).toList();
  }

  private static byte[] asItPrints(LogicalType none, Object value) {
    if (value == null) {
      return new byte[0];
    }
    if (value instanceof byte[] || value instanceof ByteBuffer) {
      throw new IllegalArgumentException("bytes have no text without a contract");
    }
    return Bodies.utf8(value instanceof Date date ? date.toInstant().toString() : value.toString());
  }

  public int version() {
    return version;
  }

  /** The fields that a row must have. */
  public List<String> names() {
    return fields.stream().map(HashField::name).toList();
  }

  public String of(Row row) {
    return HexFormat.of().formatHex(digest().digest(text(row)));
  }

  /** The bytes that are hashed. */
  public byte[] text(Row row) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (HashField field : fields) {
      if (field != fields.get(0)) {
        all.writeBytes(between);
      }
      all.writeBytes(textOf(field, row.apply(field.name())));
    }
    return all.toByteArray();
  }

  private byte[] textOf(HashField field, Object value) {
    try {
      return text.apply(field.type(), value);
    } catch (IllegalArgumentException | ArithmeticException error) {
      throw new IllegalArgumentException(field.name() + ": " + error.getMessage(), error);
    }
  }

  private MessageDigest digest() {
    try {
      return MessageDigest.getInstance(algorithm);
    } catch (NoSuchAlgorithmException error) {
      throw new IllegalArgumentException("there is no algorithm " + algorithm, error);
    }
  }
}
