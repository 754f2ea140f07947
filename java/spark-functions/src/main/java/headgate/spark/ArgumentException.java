package headgate.spark;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.collection.immutable.Map$;

/** An argument of a function that cannot be used; Spark reports it as an error of the query's analysis. */
final class ArgumentException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ArgumentException(String message) {
    super(message);
  }

  /** The same error as Spark's clients know it. */
  AnalysisException toAnalysisException() {
    return new AnalysisException(
        getMessage(),
        Option.empty(),
        Option.empty(),
        Option.empty(),
        Option.empty(),
        Map$.MODULE$.empty(),
        new QueryContext[0]);
  }
}
