package com.company.kafka.connect.smt;

import java.util.List;
import org.apache.kafka.connect.errors.DataException;

/** A record lacks fields that are to be hashed. */
final class MissingFieldsException extends DataException {
  private static final long serialVersionUID = 1L;

  MissingFieldsException(List<String> missing) {
    super("the record has no field " + String.join(", ", missing));
  }
}
