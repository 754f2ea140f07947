package headgate.connect.cassandra;

import headgate.connect.hash.HashContract;
import headgate.connect.hash.HashField;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigException;

/** What the connector's own chain of transformations is going to hash, as far as it can be told. */
final class HashedColumns {
  private static final String HASH = "com.company.kafka.connect.smt.HashRowSMT";
  private static final String SHIPPED = "org.apache.kafka.connect.transforms.";
  /** Beside those of keys; after any other a field need not be the column of that name. */
  private static final Set<String> LEAVE_VALUES =
      Set.of(SHIPPED + "ValueToKey", SHIPPED + "RegexRouter", SHIPPED + "TimestampRouter");

  private HashedColumns() {}

  /** The typed fields; none without a contract, or where a value is changed before it is hashed. */
  static List<HashField> of(Map<String, String> given) {
    for (String alias : given.getOrDefault("transforms", "").split(",")) {
      String prefix = "transforms." + alias.strip() + ".";
      String type = given.getOrDefault(prefix + "type", "");
      if (type.equals(HASH)) {
        return fields(prefix + "hash.contract", given);
      }
      if (!type.endsWith("$Key") && !LEAVE_VALUES.contains(type)) {
        return List.of();
      }
    }
    return List.of();
  }

  private static List<HashField> fields(String setting, Map<String, String> given) {
    String contract = given.getOrDefault(setting, "");
    try {
      return contract.isBlank() ? List.of() : HashContract.read(contract).fields();
    } catch (IllegalArgumentException error) {
      throw new ConfigException(setting, contract, error.getMessage());
    }
  }
}
