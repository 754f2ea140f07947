package headgate.spark;

import static headgate.spark.Cases.assertEqual;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** Verdicts of rules whose conditions are constants. */
public final class RuleVerdictCases {

  private static RuleVerdict verdict(int rules) {
    List<RuleVerdict.Rule> table = new ArrayList<>();
    for (int at = 0; at < rules; at++) {
      table.add(new RuleVerdict.Rule(text("rule_" + at), text("S" + at), text("WARN"), text("r" + at)));
    }
    return new RuleVerdict(table);
  }

  private static UTF8String text(String text) {
    return UTF8String.fromString(text);
  }

  /** The verdict where the conditions of the given rules are true and those of the others are as given. */
  private static String show(int rules, Boolean others, Integer... matching) {
    List<Expression> conditions = new ArrayList<>();
    for (int at = 0; at < rules; at++) {
      Boolean value = Set.of(matching).contains(at) ? Boolean.TRUE : others;
      conditions.add(Literal.create(value, DataTypes.BooleanType));
    }
    InternalRow row = (InternalRow) verdict(rules).expression(conditions).eval(null);
    return row == null ? null : ScanFuzz.show(row, RuleVerdict.RESULT).replace(":UTF8String", "");
  }

  public void theFirstRuleDecidesAndAllAreNamed() {
    assertEqual(
        "{status=S3, reason=r3, severity=WARN, rules=[rule_3, rule_15, rule_16, rule_39]}",
        show(40, false, 39, 16, 15, 3));
    assertEqual("{status=S16, reason=r16, severity=WARN, rules=[rule_16]}", show(40, false, 16));
    assertEqual("{status=S0, reason=r0, severity=WARN, rules=[rule_0]}", show(1, false, 0));
  }

  public void aConditionThatIsNullDoesNotMatch() {
    assertEqual("{status=S17, reason=r17, severity=WARN, rules=[rule_17]}", show(40, null, 17));
    assertEqual(null, show(40, null));
  }

  public void withoutAMatchThereIsNoVerdict() {
    for (int rules : new int[] {1, 16, 17, 100}) {
      assertEqual(null, show(rules, false));
    }
  }

  public void verdictsOfTheSameRulesAreEqualAndShowNoIdentity() {
    assertEqual(verdict(3), verdict(3));
    assertEqual(verdict(3).hashCode(), verdict(3).hashCode());
    assertEqual("3 rules", verdict(3).toString());
    assertEqual(false, verdict(3).equals(verdict(4)));
  }
}
