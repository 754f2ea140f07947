package headgate.connect.plugin;

import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import javax.management.Attribute;
import javax.management.AttributeList;
import javax.management.AttributeNotFoundException;
import javax.management.DynamicMBean;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.ObjectName;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What one connector has counted, seen through JMX as {@code headgate.connect:type=…,connector=…}.
 *
 * <p>The tasks of a connector on one worker share an instance. It lives as long as the worker, so
 * that a restarted task does not set its counters back.
 */
public final class Counters implements DynamicMBean {
  private static final Logger LOG = LoggerFactory.getLogger(Counters.class);
  private static final Map<ObjectName, Counters> KNOWN = new ConcurrentHashMap<>();

  private final Map<String, LongAdder> counts = new LinkedHashMap<>();
  private final Set<String> once = ConcurrentHashMap.newKeySet();

  private Counters(List<String> names) {
    names.forEach(name -> counts.put(name, new LongAdder()));
  }

  /** The counters of this connector, registered on first use. */
  public static Counters of(String type, String connector, List<String> names) {
    return KNOWN.computeIfAbsent(objectName(type, connector), name -> register(name, names));
  }

  private static Counters register(ObjectName name, List<String> names) {
    Counters made = new Counters(names);
    try {
      ManagementFactory.getPlatformMBeanServer().registerMBean(made, name);
    } catch (JMException error) {
      // A second copy of the plugin on this worker: the records matter more than their counters.
      LOG.warn("counters {} are not visible in JMX", name, error);
    }
    return made;
  }

  private static ObjectName objectName(String type, String connector) {
    boolean plain = !connector.isEmpty() && connector.chars().noneMatch(c -> ",=:\"*?\n".indexOf(c) >= 0);
    String value = plain ? connector : ObjectName.quote(connector);
    try {
      return new ObjectName("headgate.connect:type=" + type + ",connector=" + value);
    } catch (JMException error) {
      throw new IllegalArgumentException("no JMX name for connector " + connector, error);
    }
  }

  public void add(String name) {
    add(name, 1);
  }

  public void add(String name, long n) {
    counts.get(name).add(n);
  }

  /** Counts a fact the first time that any task of this connector tells it. */
  public void addOnce(String name, String fact) {
    if (once.add(name + " " + fact)) {
      add(name);
    }
  }

  public long get(String name) {
    return counts.get(name).sum();
  }

  @Override
  public Object getAttribute(String name) throws AttributeNotFoundException {
    if (!counts.containsKey(name)) {
      throw new AttributeNotFoundException(name);
    }
    return get(name);
  }

  @Override
  public AttributeList getAttributes(String[] names) {
    AttributeList found = new AttributeList();
    for (String name : names) {
      if (counts.containsKey(name)) {
        found.add(new Attribute(name, get(name)));
      }
    }
    return found;
  }

  @Override
  public void setAttribute(Attribute attribute) throws AttributeNotFoundException {
    throw new AttributeNotFoundException("counters are read only");
  }

  @Override
  public AttributeList setAttributes(AttributeList attributes) {
    return new AttributeList();
  }

  @Override
  public Object invoke(String action, Object[] values, String[] signature) {
    throw new UnsupportedOperationException(action);
  }

  @Override
  public MBeanInfo getMBeanInfo() {
    MBeanAttributeInfo[] attributes =
        counts.keySet().stream()
            .map(name -> new MBeanAttributeInfo(name, "long", name, true, false, false))
            .toArray(MBeanAttributeInfo[]::new);
    return new MBeanInfo(Counters.class.getName(), "counters", attributes, null, null, null);
  }
}
