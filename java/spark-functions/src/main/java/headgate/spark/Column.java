package headgate.spark;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/** A declared column: the field's name, the type that its value is read as, and the type of the column. */
final class Column implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final String MINUTE =
      "\\A *[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?";

  // Spark casts more texts than these, but it computes 10 to the power of any exponent (1e-99999999 takes
  // minutes), takes today's date for a time of day, and drops a zone where the type has none.
  private static final Pattern DECIMAL =
      Pattern.compile("\\A *[-+]?(?:[0-9]+(?:[.][0-9]*)?|[.][0-9]+)(?:[Ee][-+]?[0-9]{1,3})? *\\z");
  private static final Pattern TIMESTAMP_NTZ = Pattern.compile(MINUTE + ")?)? *\\z");
  private static final Pattern TIMESTAMP =
      Pattern.compile(MINUTE + "(?:Z|[-+][0-9]{2}:[0-9]{2})?)?)? *\\z");

  final String name;
  final byte[] nameBytes;
  /** What the JSON value must be. */
  final JsonType type;
  /** The type of the column, where values are cast after they are read; else null. */
  final DataType castType;
  /** Named in _missing, or a reason to refuse, when the record lacks it. */
  final boolean isRequired;
  /** Its values are not quoted in reasons. */
  final boolean isMasked;

  private transient Cast cast;

  Column(String name, JsonType type, DataType castType, boolean isRequired, boolean isMasked) {
    this.name = name;
    nameBytes = name.getBytes(StandardCharsets.UTF_8);
    this.type = type;
    this.castType = castType;
    this.isRequired = isRequired;
    this.isMasked = isMasked;
    if (castType != null && !Cast.canTryCast(type.dataType, castType)) {
      throw new ArgumentException(
          "options",
          String.format(
              "the option casts has the column %s, and Spark has no cast from %s to %s",
              name, type.dataType.sql(), castType.sql()));
    }
  }

  DataType columnType() {
    return castType == null ? type.dataType : castType;
  }

  /** A value at the column's type, as try_cast gives it; null where it is lost. */
  Object cast(Object value, String zone) {
    if (value instanceof UTF8String text) {
      Pattern form = textForm(castType);
      if (form != null && !form.matcher(text.toString()).find()) {
        return null;
      }
    }
    if (cast == null) {
      cast =
          new Cast(
              new BoundReference(0, type.dataType, true),
              castType,
              Option.apply(zone),
              EvalMode$.MODULE$.TRY());
    }
    return cast.eval(new GenericInternalRow(new Object[] {value}));
  }

  /** How a text must be written to be cast to the type; null where Spark may try every text. */
  private static Pattern textForm(DataType type) {
    if (type instanceof DecimalType) {
      return DECIMAL;
    } else if (type instanceof TimestampNTZType) {
      return TIMESTAMP_NTZ;
    }
    return type instanceof TimestampType ? TIMESTAMP : null;
  }
}
