package headgate.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/** Runs the public methods of the case classes; needs nothing but the JVM and Spark's jars. */
public final class Cases {
  private static final List<Class<?>> CLASSES =
      List.of(ArgumentCases.class, KeyPathCases.class, ReaderCases.class, RuleVerdictCases.class);

  private Cases() {}

  public static void main(String[] none) {
    int failed = 0;
    for (Method method : all()) {
      try {
        run(method);
        System.out.println("ok " + name(method));
      } catch (Throwable error) {
        failed++;
        System.out.println("FAILED " + name(method) + ": " + error);
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
          .filter(method -> Modifier.isPublic(method.getModifiers()))
          .forEach(methods::add);
    }
    return methods;
  }

  static String name(Method method) {
    return method.getDeclaringClass().getSimpleName() + "." + method.getName();
  }

  static void run(Method method) throws Throwable {
    try {
      method.invoke(method.getDeclaringClass().getConstructor().newInstance());
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  static void assertEqual(Object expected, Object actual) {
    if (!Objects.equals(expected, actual)) {
      throw new AssertionError("expected " + expected + ", got " + actual);
    }
  }

  static void assertContains(String part, String text) {
    if (!text.contains(part)) {
      throw new AssertionError("expected " + part + " in: " + text);
    }
  }
}
