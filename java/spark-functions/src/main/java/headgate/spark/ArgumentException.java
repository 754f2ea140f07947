package headgate.spark;

import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** An argument of a function that cannot be used. */
final class ArgumentException extends RuntimeException {
  private static final long serialVersionUID = 1L;
  // Clients build the message from a condition that Spark knows and its parameters.
  private static final String CONDITION = "INVALID_PARAMETER_VALUE.PATTERN";
  private final String parameter;

  ArgumentException(String parameter, String message) {
    super(message);
    this.parameter = parameter;
  }

  /** The same as an error of the query's analysis, as Spark's clients know it. */
  AnalysisException toAnalysisException(String function) {
    Map<String, String> parameters =
        Map.of("parameter", parameter, "functionName", function, "value", getMessage());
    return new AnalysisException(CONDITION, Map$.MODULE$.from(CollectionConverters.asScala(parameters)));
  }
}
