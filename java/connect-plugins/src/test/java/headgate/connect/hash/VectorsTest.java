package headgate.connect.hash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import org.junit.jupiter.api.Test;

/** Lets Maven hash the shared vectors. */
class VectorsTest {
  @Test
  void everyVectorHasItsHash() throws Exception {
    Locale locale = Locale.getDefault();
    TimeZone zone = TimeZone.getDefault();
    try {
      List<Map<?, ?>> vectors = VectorCheck.read(Path.of("vectors/hash_vectors.jsonl"));
      assertTrue(vectors.size() >= 2_000);
      assertEquals(List.of(), VectorCheck.faults(vectors));
    } finally {
      Locale.setDefault(locale);
      TimeZone.setDefault(zone);
    }
  }
}
