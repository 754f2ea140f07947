package headgate.spark;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes the bit masks of the rules that matched a row: status, reason and severity of the first rule, and
 * the names of all of them. Bit b of mask m stands for the rule with the index m * bitsPerMask + b.
 */
public final class RuleVerdict implements Serializable {
  private static final long serialVersionUID = 1L;

  static final StructType RESULT =
      new StructType()
          .add("status", DataTypes.StringType, true)
          .add("reason", DataTypes.StringType, true)
          .add("severity", DataTypes.StringType, true)
          .add("rules", DataTypes.createArrayType(DataTypes.StringType, false), false);

  /** One rule; only its name must not be null. */
  record Rule(UTF8String name, UTF8String status, UTF8String severity, UTF8String reason)
      implements Serializable {}

  private final Rule[] rules;
  private final int bitsPerMask;

  RuleVerdict(Rule[] rules, int bitsPerMask) {
    this.rules = rules;
    this.bitsPerMask = bitsPerMask;
  }

  /** The verdict on a row, called by generated code; null where no bit is set. */
  public InternalRow verdict(ArrayData masks) {
    int matched = 0;
    for (int mask = 0; mask < masks.numElements(); mask++) {
      matched += Long.bitCount(masks.getLong(mask));
    }
    if (matched == 0) {
      return null;
    }
    Object[] names = new Object[matched];
    Rule first = null;
    int count = 0;
    for (int mask = 0; mask < masks.numElements(); mask++) {
      for (long rest = masks.getLong(mask); rest != 0; rest &= rest - 1) {
        Rule rule = rule(mask, Long.numberOfTrailingZeros(rest));
        first = first == null ? rule : first;
        names[count++] = rule.name();
      }
    }
    return new GenericInternalRow(
        new Object[] {first.status(), first.reason(), first.severity(), new GenericArrayData(names)});
  }

  private Rule rule(int mask, int bit) {
    int index = mask * bitsPerMask + bit;
    if (bit >= bitsPerMask || index >= rules.length) {
      throw new IllegalArgumentException(
          String.format(
              "rule_verdict: bit %d of mask %d stands for no rule; there are %d rules, %d a mask",
              bit, mask, rules.length, bitsPerMask));
    }
    return rules[index];
  }

  // Plans with the same call must be equal, or Spark reuses neither exchanges nor cached results.
  @Override
  public boolean equals(Object other) {
    return other instanceof RuleVerdict that
        && bitsPerMask == that.bitsPerMask
        && Arrays.equals(rules, that.rules);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(rules) + bitsPerMask;
  }

  @Override
  public String toString() {
    return rules.length + " rules, " + bitsPerMask + " a mask";
  }
}
