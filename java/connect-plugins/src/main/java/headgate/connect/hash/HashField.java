package headgate.connect.hash;

/** One field of a contract: its name in the row, case and all, and its type. */
public record HashField(String name, LogicalType type) {}
