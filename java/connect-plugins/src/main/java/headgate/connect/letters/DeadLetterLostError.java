package headgate.connect.letters;

/**
 * A dead letter could not be written, so its record must not count as done.
 *
 * <p>It is an Error on purpose: under {@code errors.tolerance=all} Connect swallows every Exception
 * of a transformation and drops the record; an Error ends the task, and the record is read again.
 */
public final class DeadLetterLostError extends Error {
  private static final long serialVersionUID = 1L;

  public DeadLetterLostError(String message, Throwable cause) {
    super(message, cause);
  }
}
