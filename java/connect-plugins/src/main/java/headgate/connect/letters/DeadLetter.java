package headgate.connect.letters;

import java.util.Map;

/**
 * One record that could not go on: its bytes, where it failed, why, and where it came from.
 *
 * @param origin facts about where it came from, written as {@code headgate.<name>} headers
 */
public record DeadLetter(
    byte[] key,
    byte[] value,
    Stage stage,
    String reasonCode,
    Throwable error,
    Map<String, String> origin) {}
