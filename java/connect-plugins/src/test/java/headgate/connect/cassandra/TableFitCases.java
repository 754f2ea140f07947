package headgate.connect.cassandra;

import static headgate.connect.Cases.equal;
import static headgate.connect.Cases.fails;
import static headgate.connect.Cases.holds;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.ColumnMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.internal.core.metadata.schema.DefaultColumnMetadata;
import com.datastax.oss.driver.internal.core.metadata.schema.DefaultTableMetadata;
import headgate.connect.hash.HashField;
import headgate.connect.hash.LogicalType;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.errors.ConnectException;

/** Which tables are refused before a row is read, and with which words. */
public final class TableFitCases {
  private static final String CHAIN = "transforms.H.";
  private static final List<String> LOGICAL =
      List.of(
          "string", "uuid", "boolean", "integer", "decimal", "double", "date", "timestamp(ms)",
          "binary", "list<string>", "set<string>", "map<string,integer>");

  private static Map<String, String> given(String contract) {
    Map<String, String> given = new HashMap<>();
    given.put("contact.points", "a");
    given.put("load.balancing.local.dc", "d");
    given.put("keyspace", "k");
    given.put("table", "t");
    given.put("timestamp.column.name", "changed");
    given.put("transforms", "H");
    given.put(CHAIN + "type", "com.company.kafka.connect.smt.HashRowSMT");
    given.put(CHAIN + "hash.contract", contract);
    return given;
  }

  private static Map<String, DataType> columns(DataType pk, DataType col2) {
    Map<String, DataType> columns = new LinkedHashMap<>();
    columns.put("pk", pk);
    columns.put("col2", col2);
    columns.put("changed", DataTypes.TIMESTAMP);
    return columns;
  }

  private static TableMetadata table(Map<String, DataType> types, List<String> key) {
    CqlIdentifier keyspace = CqlIdentifier.fromInternal("k");
    CqlIdentifier name = CqlIdentifier.fromInternal("t");
    Map<CqlIdentifier, ColumnMetadata> columns = new LinkedHashMap<>();
    types.forEach(
        (column, type) -> {
          CqlIdentifier id = CqlIdentifier.fromInternal(column);
          columns.put(id, new DefaultColumnMetadata(keyspace, name, id, type, false));
        });
    List<ColumnMetadata> keys =
        key.stream().map(CqlIdentifier::fromInternal).map(columns::get).toList();
    Map<ColumnMetadata, ClusteringOrder> clustering = new LinkedHashMap<>();
    keys.subList(1, keys.size()).forEach(column -> clustering.put(column, ClusteringOrder.ASC));
    return new DefaultTableMetadata(
        keyspace, name, UUID.randomUUID(), false, false, keys.subList(0, 1), clustering, columns,
        Map.of(), Map.of());
  }

  /** The words of the refusal, or nothing. */
  private static String words(TableMetadata table, Map<String, String> given, String... remembered) {
    try {
      new TableShape(table, PollSettings.of(given), Set.of(remembered));
      return "";
    } catch (ConnectException refused) {
      return refused.getMessage();
    }
  }

  private static String words(DataType pk, DataType col2, String contract) {
    return words(table(columns(pk, col2), List.of("pk")), given(contract));
  }

  public void onlyKeysWhoseTextIsTheSameForEveryReaderAreTaken() {
    for (DataType type :
        List.of(
            DataTypes.TEXT, DataTypes.ASCII, DataTypes.INT, DataTypes.BIGINT, DataTypes.SMALLINT,
            DataTypes.TINYINT, DataTypes.VARINT, DataTypes.UUID, DataTypes.TIMEUUID,
            DataTypes.BOOLEAN)) {
      equal("", words(type, DataTypes.TEXT, "col2:string"));
    }
    for (DataType type :
        List.of(
            DataTypes.BLOB, DataTypes.TIMESTAMP, DataTypes.DOUBLE, DataTypes.FLOAT, DataTypes.DECIMAL,
            DataTypes.DATE, DataTypes.TIME, DataTypes.INET, DataTypes.DURATION,
            DataTypes.frozenListOf(DataTypes.TEXT))) {
      String words = words(type, DataTypes.TEXT, "col2:string");
      holds(words.contains("its key pk is " + type.asCql(true, true)), words);
    }
  }

  public void aKeyOfSeveralColumnsIsRefused() {
    Map<String, DataType> columns = columns(DataTypes.TEXT, DataTypes.TEXT);
    String words = words(table(columns, List.of("pk", "col2")), given("col2:string"));
    holds(words.contains("primary key is (pk, col2) and not pk alone"), words);
    Map<String, String> other = given("col2:string");
    other.put("pk.column", "col2");
    words = words(table(columns, List.of("pk")), other);
    holds(words.contains("primary key is (pk) and not col2 alone"), words);
  }

  public void aTimeColumnThatHoldsNoTimesIsRefused() {
    Map<String, DataType> columns = columns(DataTypes.TEXT, DataTypes.TEXT);
    columns.put("changed", DataTypes.BIGINT);
    String words = words(table(columns, List.of("pk")), given("col2:string"));
    holds(words.contains("its column changed is bigint and no timestamp"), words);
  }

  public void aColumnThatNeverWasIsRefusedWithTheNearestName() {
    Map<String, DataType> columns = columns(DataTypes.TEXT, DataTypes.TEXT);
    TableMetadata table = table(columns, List.of("pk"));
    String words = words(table, given("colum2:string"));
    holds(words.startsWith("k.t cannot be polled: it has no column colum2; is col2 meant?"), words);
    Map<String, String> listed = given("col2:string");
    listed.put("columns", "COL2");
    holds(words(table, listed).contains("no column COL2; is col2 meant?"), words(table, listed));
    holds(!words(table, given("amount:string")).contains("meant"), "nothing is near");
  }

  public void aColumnThatOnceWasCountsAsDropped() {
    TableMetadata table = table(columns(DataTypes.TEXT, DataTypes.TEXT), List.of("pk"));
    Map<String, String> given = given("col2:string,col3:decimal(2)");
    given.put("columns", "col2,col3");
    holds(words(table, given, "pk", "col2").contains("no column col3"), "it was not there before");
    TableShape shape = new TableShape(table, PollSettings.of(given), Set.of("pk", "col2", "col3"));
    equal(Set.of("col3"), shape.removed());
  }

  /** The table of docs/hash_contract.md, line by line. */
  public void eachColumnTypeIsHashedAsWhatEveryReaderCanGive() {
    equal("string uuid", allowed(DataTypes.TEXT));
    equal("string uuid", allowed(DataTypes.ASCII));
    equal("boolean", allowed(DataTypes.BOOLEAN));
    for (DataType whole :
        List.of(
            DataTypes.TINYINT, DataTypes.SMALLINT, DataTypes.INT, DataTypes.BIGINT,
            DataTypes.VARINT, DataTypes.COUNTER)) {
      equal("decimal double integer", allowed(whole));
    }
    equal("decimal", allowed(DataTypes.DECIMAL));
    equal("double", allowed(DataTypes.FLOAT));
    equal("double", allowed(DataTypes.DOUBLE));
    equal("timestamp(ms)", allowed(DataTypes.TIMESTAMP));
    equal("date", allowed(DataTypes.DATE));
    equal("uuid", allowed(DataTypes.UUID));
    equal("uuid", allowed(DataTypes.TIMEUUID));
    equal("binary", allowed(DataTypes.BLOB));
    equal("list<string> set<string>", allowed(DataTypes.listOf(DataTypes.TEXT)));
    equal("set<string>", allowed(DataTypes.frozenSetOf(DataTypes.TEXT)));
    equal("map<string,integer>", allowed(DataTypes.mapOf(DataTypes.TEXT, DataTypes.INT)));
    for (DataType none :
        List.of(
            DataTypes.INET, DataTypes.TIME, DataTypes.DURATION, DataTypes.tupleOf(DataTypes.TEXT),
            DataTypes.vectorOf(DataTypes.FLOAT, 3), DataTypes.listOf(DataTypes.INET))) {
      equal("", allowed(none));
    }
  }

  private static String allowed(DataType type) {
    Set<String> taken = new TreeSet<>();
    for (String logical : LOGICAL) {
      if (words(DataTypes.TEXT, type, "col2:" + logical).isEmpty()) {
        taken.add(logical);
      }
    }
    return String.join(" ", taken);
  }

  public void theWordsSayTypeAndWayOut() {
    equal(
        "k.t cannot be polled: its column col2 is uuid and cannot be hashed as string:"
            + " it may be hashed as uuid",
        words(DataTypes.TEXT, DataTypes.UUID, "col2:string"));
    holds(
        words(DataTypes.TEXT, DataTypes.INET, "col2:string").endsWith("it cannot be hashed at all"),
        "an address has no one text");
    holds(
        words(DataTypes.INT, DataTypes.TEXT, "pk:integer").contains("the key is text in the record"),
        "the key's text is no integer to the transformation");
    equal("", words(DataTypes.UUID, DataTypes.TEXT, "pk:uuid"));
  }

  public void whatAnotherTransformationChangesBeforeIsNotJudged() {
    Map<String, String> given = given("col9:string");
    given.put("transforms", "K, R, H");
    given.put("transforms.K.type", "org.apache.kafka.connect.transforms.ExtractField$Key");
    given.put("transforms.R.type", "org.apache.kafka.connect.transforms.ReplaceField$Value");
    equal(List.of(), PollSettings.of(given).hashed());
    given.put("transforms.R.type", "org.apache.kafka.connect.transforms.ValueToKey");
    equal(
        List.of(new HashField("col9", LogicalType.parse("string"))),
        PollSettings.of(given).hashed());
    fails(ConfigException.class, () -> PollSettings.of(given("col2:money")));
  }
}
