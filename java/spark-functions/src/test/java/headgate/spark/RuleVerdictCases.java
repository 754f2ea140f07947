package headgate.spark;

import static headgate.spark.Cases.assertContains;
import static headgate.spark.Cases.assertEqual;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Verdicts from masks of different widths. */
public final class RuleVerdictCases {

  private static RuleVerdict verdict(int rules, int bits) {
    RuleVerdict.Rule[] table = new RuleVerdict.Rule[rules];
    for (int at = 0; at < rules; at++) {
      table[at] = new RuleVerdict.Rule(text("rule_" + at), text("S" + at), text("WARN"), text("r" + at));
    }
    return new RuleVerdict(table, bits);
  }

  private static UTF8String text(String text) {
    return UTF8String.fromString(text);
  }

  private static String show(RuleVerdict verdict, long... masks) {
    InternalRow row = verdict.verdict(new GenericArrayData(masks));
    return row == null ? null : ScanFuzz.show(row, RuleVerdict.RESULT).replace(":UTF8String", "");
  }

  public void theFirstRuleDecidesAndAllAreNamed() {
    RuleVerdict verdict = verdict(40, 16);
    assertEqual(
        "{status=S3, reason=r3, severity=WARN, rules=[rule_3, rule_15, rule_16, rule_39]}",
        show(verdict, 1L << 3 | 1L << 15, 1L, 1L << 7));
    assertEqual("{status=S16, reason=r16, severity=WARN, rules=[rule_16]}", show(verdict, 0, 1L, 0));
    assertEqual(
        "{status=S62, reason=r62, severity=WARN, rules=[rule_62, rule_63]}",
        show(verdict(64, 63), 1L << 62, 1L));
  }

  public void withoutABitThereIsNoVerdict() {
    assertEqual(null, show(verdict(40, 16), 0, 0, 0));
  }

  public void aBitWithoutARuleIsAnError() {
    for (long[] masks : new long[][] {{1L << 16, 0, 0}, {0, 0, 1L << 8}, {0, 0, 0, 1}}) {
      try {
        show(verdict(40, 16), masks);
        throw new AssertionError("accepted");
      } catch (IllegalArgumentException invalid) {
        assertContains("stands for no rule; there are 40 rules, 16 a mask", invalid.getMessage());
      }
    }
  }

  public void verdictsOfTheSameRulesAreEqualAndShowNoIdentity() {
    assertEqual(verdict(3, 16), verdict(3, 16));
    assertEqual(verdict(3, 16).hashCode(), verdict(3, 16).hashCode());
    assertEqual("3 rules, 16 a mask", verdict(3, 16).toString());
    assertEqual(false, verdict(3, 16).equals(verdict(3, 31)));
    assertEqual(false, verdict(3, 16).equals(verdict(4, 16)));
  }
}
