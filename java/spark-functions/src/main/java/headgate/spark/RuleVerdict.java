package headgate.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BitwiseAnd;
import org.apache.spark.sql.catalyst.expressions.BitwiseOr;
import org.apache.spark.sql.catalyst.expressions.CreateArray;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Rules, and the verdict on a row: status, reason and severity of the first rule that matches, and the names
 * of all rules that match.
 *
 * <p>Spark tests the conditions and packs the results into bit masks: bit b of mask m stands for the rule with
 * the index m * {@link #RULES_PER_MASK} + b. A method of this object decodes the masks of the rows on which a
 * bit is set.
 */
public final class RuleVerdict implements Serializable {
  private static final long serialVersionUID = 1L;

  static final StructType RESULT =
      new StructType()
          .add("status", DataTypes.StringType, true)
          .add("reason", DataTypes.StringType, true)
          .add("severity", DataTypes.StringType, true)
          .add("rules", DataTypes.createArrayType(DataTypes.StringType, false), false);

  /**
   * As many conditions as one generated method has. 16 are 2 to 3 kB of bytecode; beyond 8,000 bytes the JIT
   * does not compile a method and Spark gives up whole-stage code.
   */
  static final int RULES_PER_MASK = 16;

  private static final DataType MASKS = DataTypes.createArrayType(DataTypes.LongType, false);

  /** One rule; only its name must not be null. */
  record Rule(UTF8String name, UTF8String status, UTF8String severity, UTF8String reason)
      implements Serializable {}

  private final Rule[] rules;

  RuleVerdict(List<Rule> rules) {
    this.rules = rules.toArray(Rule[]::new);
  }

  /**
   * The verdict as an expression over the conditions of the rules, one for each rule. A row on which no rule
   * matches costs its conditions and one comparison.
   *
   * <p>Spark generates a method for each subexpression that a projection contains twice. It counts neither what
   * an If evaluates in one branch only, nor what is part of a larger subexpression that is itself there twice.
   * So the predicate contains each mask twice: in the union of the masks, and in their intersection, which adds
   * no bit to the union. A second union, however grouped, would be equal to the first one for Spark, which would
   * then generate a single method for all rules.
   */
  Expression expression(List<Expression> conditions) {
    List<Expression> masks = masks(conditions);
    Expression union = masks.stream().reduce(BitwiseOr::new).orElseThrow();
    Expression intersection = masks.stream().reduce(BitwiseAnd::new).orElseThrow();
    return new If(
        new EqualTo(new BitwiseOr(union, intersection), number(0)),
        Literal.create(null, RESULT),
        HeadgateExtensions.invoke(
            this, "verdict", RESULT, new CreateArray(HeadgateExtensions.seq(masks), false), MASKS));
  }

  private static List<Expression> masks(List<Expression> conditions) {
    List<Expression> masks = new ArrayList<>();
    for (int index = 0; index < conditions.size(); index++) {
      int bit = index % RULES_PER_MASK;
      // NULL chooses the second value, as false does.
      Expression matched = new If(conditions.get(index), number(1L << bit), number(0));
      if (bit == 0) {
        masks.add(matched);
      } else {
        int last = masks.size() - 1;
        masks.set(last, new BitwiseOr(masks.get(last), matched));
      }
    }
    return masks;
  }

  private static Literal number(long value) {
    return Literal.create(value, DataTypes.LongType);
  }

  /** Decode the masks of a row on which at least one bit is set; generated code calls it. */
  public InternalRow verdict(ArrayData masks) {
    int matched = 0;
    for (int mask = 0; mask < masks.numElements(); mask++) {
      matched += Long.bitCount(masks.getLong(mask));
    }
    Object[] names = new Object[matched];
    Rule first = null;
    int count = 0;
    for (int mask = 0; mask < masks.numElements(); mask++) {
      for (long rest = masks.getLong(mask); rest != 0; rest &= rest - 1) {
        Rule rule = rules[mask * RULES_PER_MASK + Long.numberOfTrailingZeros(rest)];
        first = first == null ? rule : first;
        names[count++] = rule.name();
      }
    }
    return new GenericInternalRow(
        new Object[] {first.status(), first.reason(), first.severity(), new GenericArrayData(names)});
  }

  // Plans with the same call must be equal, or Spark reuses neither exchanges nor cached results.
  @Override
  public boolean equals(Object other) {
    return other instanceof RuleVerdict that && Arrays.equals(rules, that.rules);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(rules);
  }

  @Override
  public String toString() {
    return rules.length + " rules";
  }
}
