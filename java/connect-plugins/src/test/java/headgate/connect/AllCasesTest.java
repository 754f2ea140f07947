package headgate.connect;

import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Lets Maven run the cases; pytest runs them without JUnit. */
class AllCasesTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return Cases.all().stream()
        .map(method -> DynamicTest.dynamicTest(Cases.name(method), () -> Cases.run(method)));
  }
}
