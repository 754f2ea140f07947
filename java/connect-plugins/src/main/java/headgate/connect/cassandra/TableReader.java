package headgate.connect.cassandra;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.Iterator;
import java.util.Set;
import java.util.TreeSet;
import javax.net.ssl.SSLContext;
import org.apache.kafka.connect.errors.ConnectException;

/** Reads the table: opens the session when it is first needed and follows changes of the schema. */
public final class TableReader implements Scannable, AutoCloseable {
  private final PollSettings settings;
  private final Set<String> remembered;
  private CqlSession session;
  private TableShape shape;
  private PreparedStatement scan;

  public TableReader(PollSettings settings, Collection<String> remembered) {
    this.settings = settings;
    this.remembered = new TreeSet<>(remembered);
  }

  /** The shape last taken, without asking Cassandra; null before the first scan. */
  public TableShape taken() {
    return shape;
  }

  /** Takes the table's shape, so that a table which can never be read is refused at once. */
  public void look() {
    shape();
  }

  @Override
  public Set<String> known() {
    return shape.known();
  }

  @Override
  public Iterator<FoundRow> rows(TokenRange range, long floor) {
    TableShape now = shape();
    Iterator<Row> rows =
        session()
            .execute(scan.bind(range.from(), range.to(), Instant.ofEpochMilli(floor)))
            .iterator();
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public FoundRow next() {
        Row row = rows.next();
        return new FoundRow(now.primaryKey(row), now.version(row), () -> now.value(row));
      }
    };
  }

  /** The table's shape now; another object than last time when its columns have changed. */
  private TableShape shape() {
    TableMetadata now = table();
    if (shape == null || !shape.is(now)) {
      TableShape taken = new TableShape(now, settings, remembered);
      scan = session().prepare(taken.query());
      shape = taken;
      remembered.addAll(taken.known());
    }
    return shape;
  }

  private TableMetadata table() {
    return session()
        .getMetadata()
        .getKeyspace(CqlIdentifier.fromInternal(settings.keyspace()))
        .flatMap(keyspace -> keyspace.getTable(CqlIdentifier.fromInternal(settings.table())))
        .orElseThrow(
            () -> new ConnectException("Cassandra has no table " + settings.tableName()));
  }

  /** Asks Cassandra for its schema again: a statement it once prepared no longer fits. */
  public void lookAgain() {
    shape = null;
    if (session != null) {
      session.refreshSchema();
    }
  }

  private CqlSession session() {
    if (session == null) {
      session = builder().build();
    }
    return session;
  }

  private CqlSessionBuilder builder() {
    // The plugin's own loader: the driver finds its defaults there and nowhere else.
    ClassLoader loader = TableReader.class.getClassLoader();
    CqlSessionBuilder builder =
        CqlSession.builder()
            .withClassLoader(loader)
            .withConfigLoader(options(loader))
            .addContactPoints(settings.contactPoints())
            .withLocalDatacenter(settings.localDc());
    if (!settings.username().isEmpty()) {
      builder.withAuthCredentials(settings.username(), settings.password().value());
    }
    return settings.ssl() ? builder.withSslContext(tls()) : builder;
  }

  private DriverConfigLoader options(ClassLoader loader) {
    Duration limit = Duration.ofMillis(settings.requestTimeoutMs());
    return DriverConfigLoader.programmaticBuilder(loader)
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, limit)
        .withDuration(DefaultDriverOption.CONNECTION_CONNECT_TIMEOUT, limit)
        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, limit)
        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, limit)
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_REQUEST_TIMEOUT, limit)
        .withInt(DefaultDriverOption.REQUEST_PAGE_SIZE, settings.pageSize())
        .withString(DefaultDriverOption.REQUEST_CONSISTENCY, settings.consistency())
        .withDuration(DefaultDriverOption.RECONNECTION_BASE_DELAY, Duration.ofMillis(500))
        .withDuration(DefaultDriverOption.RECONNECTION_MAX_DELAY, Duration.ofSeconds(5))
        .withString(DefaultDriverOption.SESSION_NAME, settings.connector())
        .build();
  }

  private static SSLContext tls() {
    try {
      return SSLContext.getDefault();
    } catch (NoSuchAlgorithmException error) {
      throw new ConnectException("this Java has no TLS", error);
    }
  }

  @Override
  public void close() {
    if (session != null) {
      session.close();
      session = null;
    }
  }
}
