package headgate.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType;
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
  private static final int RULE_ARGUMENTS = 5;
  private static final String RULE_VERDICT =
      "rule_verdict('name', 'status', 'severity', 'reason', condition, …)";

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
    FunctionIdentifier identifier = new FunctionIdentifier(name);
    ExpressionInfo info =
        new ExpressionInfo(
            HeadgateExtensions.class.getName(), null, name, usage, "", "", "", "", "", "", "");
    AbstractFunction1<Seq<Expression>, Expression> builder =
        new AbstractFunction1<>() {
          @Override
          public Expression apply(Seq<Expression> arguments) {
            try {
              return build.apply(CollectionConverters.asJava(arguments));
            } catch (ArgumentException invalid) {
              HeadgateExtensions.<RuntimeException>raise(invalid.toAnalysisException(name));
              throw invalid; // not reached
            }
          }
        };
    extensions.injectFunction(new Tuple3<>(identifier, info, builder));
    // Spark takes an injected function for a temporary one, and refuses those in permanent views: so the
    // function is among the built-in ones as well, where views look it up.
    if (!FunctionRegistry.builtin().functionExists(identifier)) {
      FunctionRegistry.builtin().registerFunction(identifier, info, builder);
    }
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
    if (arguments.size() % RULE_ARGUMENTS != 0) {
      throw new ArgumentException(
          "arguments", "a rule takes five of them, and there are " + arguments.size() + ": " + RULE_VERDICT);
    }
    List<RuleVerdict.Rule> rules = new ArrayList<>();
    List<Expression> conditions = new ArrayList<>();
    Set<UTF8String> names = new HashSet<>();
    for (int at = 0; at < arguments.size(); at += RULE_ARGUMENTS) {
      RuleVerdict.Rule rule = rule(arguments.subList(at, at + 4), rules.size() + 1);
      if (!names.add(rule.name())) {
        throw new ArgumentException("name", "there are two rules " + rule.name());
      }
      rules.add(rule);
      conditions.add(condition(arguments.get(at + 4), rule.name()));
    }
    return rules.isEmpty()
        ? Literal.create(null, RuleVerdict.RESULT)
        : new RuleVerdict(rules).expression(conditions);
  }

  private static RuleVerdict.Rule rule(List<Expression> texts, int number) {
    UTF8String name = text(texts.get(0), "name", number);
    if (name == null) {
      throw new ArgumentException("name", "that of rule " + number + " must not be NULL");
    }
    return new RuleVerdict.Rule(
        name,
        text(texts.get(1), "status", number),
        text(texts.get(2), "severity", number),
        text(texts.get(3), "reason", number));
  }

  private static UTF8String text(Expression argument, String parameter, int number) {
    boolean isText = argument.dataType() instanceof StringType || argument.dataType() instanceof NullType;
    if (!isText || !argument.foldable()) {
      throw new ArgumentException(
          parameter, "that of rule " + number + " must be a text literal, not " + argument.sql());
    }
    return (UTF8String) argument.eval(null);
  }

  private static Expression condition(Expression condition, UTF8String rule) {
    DataType type = condition.dataType();
    if (!(type instanceof BooleanType || type instanceof NullType)) {
      throw new ArgumentException(
          "condition", "that of the rule " + rule + " must be BOOLEAN, not " + type.sql());
    }
    // The expression contains it several times, and each could come to another result.
    if (!condition.deterministic()) {
      throw new ArgumentException(
          "condition", "that of the rule " + rule + " is not deterministic: " + condition.sql());
    }
    return condition;
  }

  /** The value of an argument that is the same for every row. */
  private static <T> T literal(Expression argument, String parameter, Class<T> type) {
    Object value = argument.resolved() && argument.foldable() ? argument.eval(null) : null;
    if (!type.isInstance(value)) {
      throw new ArgumentException(parameter, "it must be a literal, not " + argument.sql());
    }
    return type.cast(value);
  }

  static Expression invoke(
      Object target, String method, DataType result, Expression argument, AbstractDataType argumentType) {
    return new Invoke(
        Literal.create(target, new ObjectType(target.getClass())),
        method,
        result,
        seq(List.of(argument)),
        seq(List.of(argumentType)),
        true, // NULL for a NULL argument: a tombstone is no record
        true, // and so the result may be NULL
        // Not deterministic, although it is: else the optimizer copies the call into the filter on its
        // result and into every use of a field, and each record is read several times.
        false);
  }

  static <T> Seq<T> seq(List<T> items) {
    return List$.MODULE$.from(CollectionConverters.asScala(items));
  }
}
