package headgate.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Tuple3;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Adds Headgate's SQL functions to every session: spark.sql.extensions=headgate.spark.HeadgateExtensions.
 *
 * <p>A call is compiled when Spark analyses the query: its literal arguments become one object, and the
 * expression is Spark's own Invoke of a method of that object. So the call is part of whole-stage code.
 */
public final class HeadgateExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  private static final String STRICT_JSON = "strict_json(value, 'columns'[, map('option', 'value', …)])";
  private static final String RULE_VERDICT =
      "rule_verdict(array(named_struct('name', …, 'status', …, 'severity', …, 'reason', …), …),"
          + " bits, array(mask, …))";

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    inject(extensions, "strict_json", STRICT_JSON, HeadgateExtensions::strictJson);
    inject(extensions, "rule_verdict", RULE_VERDICT, HeadgateExtensions::ruleVerdict);
    return BoxedUnit.UNIT;
  }

  private static void inject(
      SparkSessionExtensions extensions,
      String name,
      String usage,
      Function<List<Expression>, Expression> build) {
    extensions.injectFunction(
        new Tuple3<>(
            new FunctionIdentifier(name),
            new ExpressionInfo(
                HeadgateExtensions.class.getName(), null, name, usage, "", "", "", "", "", "", ""),
            new AbstractFunction1<Seq<Expression>, Expression>() {
              @Override
              public Expression apply(Seq<Expression> arguments) {
                try {
                  return build.apply(CollectionConverters.asJava(arguments));
                } catch (ArgumentException invalid) {
                  HeadgateExtensions.<RuntimeException>raise(invalid.toAnalysisException(name));
                  throw invalid; // not reached
                }
              }
            }));
  }

  /** Throw a checked exception where Scala's code declares none, as Scala itself does. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> void raise(Exception error) throws E {
    throw (E) error;
  }

  private static Expression strictJson(List<Expression> arguments) {
    if (arguments.size() < 2 || arguments.size() > 3) {
      throw new ArgumentException("arguments", "it takes two or three: " + STRICT_JSON);
    }
    String columns = literal(arguments.get(1), "columns", UTF8String.class).toString();
    Map<String, String> options = arguments.size() > 2 ? options(arguments.get(2)) : Map.of();
    StrictJson reader = new StrictJson(columns, options, SQLConf.get().sessionLocalTimeZone());
    return invoke(reader, "read", reader.resultType(), arguments.get(0), DataTypes.BinaryType);
  }

  private static Map<String, String> options(Expression argument) {
    MapData map = literal(argument, "options", MapData.class);
    if (!DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType, false)
        .sameType(argument.dataType())) {
      throw new ArgumentException("options", "they must be a map of texts such as map('drift', 'refuse')");
    }
    Map<String, String> options = new HashMap<>();
    for (int at = 0; at < map.numElements(); at++) {
      if (map.valueArray().isNullAt(at)) {
        throw new ArgumentException("options", map.keyArray().getUTF8String(at) + " must not be NULL");
      }
      options.put(map.keyArray().getUTF8String(at).toString(), map.valueArray().getUTF8String(at).toString());
    }
    return options;
  }

  private static Expression ruleVerdict(List<Expression> arguments) {
    if (arguments.size() != 3) {
      throw new ArgumentException("arguments", "it takes three: " + RULE_VERDICT);
    }
    ArrayData table = literal(arguments.get(0), "rules", ArrayData.class);
    int bits = literal(arguments.get(1), "bits", Number.class).intValue();
    if (bits < 1 || bits > 63) {
      throw new ArgumentException("bits", "a mask has 1 to 63 bits, not " + bits);
    }
    RuleVerdict verdict = new RuleVerdict(rules(table, arguments.get(0).dataType()), bits);
    DataType masks = DataTypes.createArrayType(DataTypes.LongType, false);
    return invoke(verdict, "verdict", RuleVerdict.RESULT, arguments.get(2), masks);
  }

  private static RuleVerdict.Rule[] rules(ArrayData table, DataType type) {
    StructType rule =
        type instanceof ArrayType array && array.elementType() instanceof StructType struct ? struct : null;
    RuleVerdict.Rule[] rules = new RuleVerdict.Rule[rule == null ? 0 : table.numElements()];
    for (int at = 0; at < rules.length; at++) {
      InternalRow row = table.getStruct(at, rule.size());
      rules[at] =
          new RuleVerdict.Rule(
              text(row, rule, "name"),
              text(row, rule, "status"),
              text(row, rule, "severity"),
              text(row, rule, "reason"));
    }
    if (rules.length == 0) {
      throw new ArgumentException("rules", "they are not a list of structs: " + RULE_VERDICT);
    }
    return rules;
  }

  private static UTF8String text(InternalRow rule, StructType type, String field) {
    int ordinal = List.of(type.fieldNames()).indexOf(field);
    if (ordinal < 0) {
      throw new ArgumentException("rules", "a rule has no field " + field + ": " + RULE_VERDICT);
    }
    return rule.isNullAt(ordinal) ? null : rule.getUTF8String(ordinal).clone();
  }

  /** The value of an argument that is the same for every row. */
  private static <T> T literal(Expression argument, String parameter, Class<T> type) {
    Object value = argument.resolved() && argument.foldable() ? argument.eval(null) : null;
    if (!type.isInstance(value)) {
      throw new ArgumentException(parameter, "it must be a literal, not " + argument.sql());
    }
    return type.cast(value);
  }

  private static Expression invoke(
      Object target, String method, DataType result, Expression argument, AbstractDataType argumentType) {
    return new Invoke(
        Literal.create(target, new ObjectType(target.getClass())),
        method,
        result,
        seq(argument),
        seq(argumentType),
        true, // NULL for a NULL argument: a tombstone is no record
        true, // and so the result may be NULL
        // Not deterministic, although it is: else the optimizer copies the call into the filter on its
        // result and into every use of a field, and each record is read several times.
        false);
  }

  private static <T> Seq<T> seq(T item) {
    return List$.MODULE$.from(CollectionConverters.asScala(List.of(item)));
  }
}
