package headgate.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Lets Maven run the cases; pytest runs them without JUnit. */
class AllCasesTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return Cases.all().stream()
        .map(method -> DynamicTest.dynamicTest(Cases.name(method), () -> Cases.run(method)));
  }

  @Test
  void sharedRecords() throws Exception {
    assertEquals(List.of(), RecordCaseFile.check(Path.of("cases/records.jsonl")));
  }

  @Test
  void fuzz() {
    assertEquals(0, ScanFuzz.compare(7, 5_000, "keep"));
  }
}
