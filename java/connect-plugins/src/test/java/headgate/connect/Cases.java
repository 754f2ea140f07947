package headgate.connect;

import com.company.kafka.connect.smt.HashRowCases;
import com.company.kafka.connect.smt.HashSettingsCases;
import com.company.kafka.connect.smt.RefusedRecordCases;
import headgate.connect.cassandra.SourceCases;
import headgate.connect.cassandra.SplitCases;
import headgate.connect.cassandra.TableFitCases;
import headgate.connect.hash.ContractCases;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/** Runs the public methods of the case classes; needs nothing but the JVM. */
public final class Cases {
  private static final List<Class<?>> CLASSES =
      List.of(
          ContractCases.class,
          HashRowCases.class,
          HashSettingsCases.class,
          RefusedRecordCases.class,
          SourceCases.class,
          SplitCases.class,
          TableFitCases.class);

  private Cases() {}

  /** A piece of a test that may throw anything. */
  public interface Body {
    void run() throws Exception;
  }

  public static void main(String[] none) {
    int failed = 0;
    for (Method method : all()) {
      String name = name(method);
      try {
        run(method);
        System.out.println("ok " + name);
      } catch (Throwable error) {
        failed++;
        System.out.println("FAILED " + name + ": " + error);
        error.printStackTrace();
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }

  static List<Method> all() {
    List<Method> methods = new ArrayList<>();
    for (Class<?> type : CLASSES) {
      Method[] declared = type.getDeclaredMethods();
      Arrays.sort(declared, Comparator.comparing(Method::getName));
      Arrays.stream(declared)
          .filter(m -> Modifier.isPublic(m.getModifiers()) && m.getParameterCount() == 0)
          .forEach(methods::add);
    }
    return methods;
  }

  static String name(Method method) {
    return method.getDeclaringClass().getSimpleName() + "." + method.getName();
  }

  static void run(Method method) throws Throwable {
    try {
      method.invoke(newInstance(method.getDeclaringClass()));
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  private static Object newInstance(Class<?> type) {
    try {
      return type.getConstructor().newInstance();
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  public static void equal(Object wanted, Object found) {
    if (!Objects.equals(wanted, found)) {
      throw new AssertionError("found " + found + " instead of " + wanted);
    }
  }

  public static void holds(boolean truth, String what) {
    if (!truth) {
      throw new AssertionError(what);
    }
  }

  /** The error that this must end with. */
  public static <E extends Throwable> E fails(Class<E> type, Body body) {
    try {
      body.run();
    } catch (Throwable error) {
      if (type.isInstance(error)) {
        return type.cast(error);
      }
      throw new AssertionError("ended with " + error, error);
    }
    throw new AssertionError("did not end with " + type.getSimpleName());
  }
}
