package headgate.connect.letters;

/** Where on its way a record failed. */
public enum Stage {
  CASSANDRA("Cassandra"),
  SMT("SMT"),
  KAFKA("Kafka");

  private final String word;

  Stage(String word) {
    this.word = word;
  }

  /** As the documents spell it. */
  public String word() {
    return word;
  }
}
