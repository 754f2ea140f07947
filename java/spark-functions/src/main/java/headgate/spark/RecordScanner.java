package headgate.spark;

import org.apache.spark.unsafe.types.UTF8String;

/**
 * The fast way to read a record: one pass over its bytes. It accepts only what it is sure of; at any doubt it
 * gives up, and RecordDiagnosis reads the record again with Jackson. So it can make no record look worse than
 * it is, and what it accepts has to be right: a fuzz test compares both.
 */
final class RecordScanner {
  // Jackson refuses a text of more than 20 million characters.
  private static final int MAX_RECORD_BYTES = 16_000_000;

  private final StrictJson reader;
  private final Column[] columns;
  private final JsonCursor cursor;
  private final ValueScanner values;
  private final RecordRow row;
  /** One bit for each column whose field was read. */
  private final long[] seen;

  private int seenCount;
  /** The unknown fields as the text of an object, without its closing brace; null while there are none. */
  private JsonTextScanner extra;

  private NameSet extraNames;
  private boolean hasReadKey;

  RecordScanner(StrictJson reader, byte[] bytes, int start) {
    this.reader = reader;
    columns = reader.columns;
    cursor = new JsonCursor(bytes, start);
    values = new ValueScanner(cursor, reader.times());
    row = new RecordRow(reader.width());
    seen = new long[(columns.length >> 6) + 1];
  }

  /** The record's row; null at any doubt. */
  RecordRow read() {
    boolean isAccepted =
        cursor.end - cursor.position <= MAX_RECORD_BYTES
            && cursor.isUtf8()
            && readFields()
            && setMissing();
    if (!isAccepted) {
      return null;
    }
    if (extra != null) {
      extra.append('}');
      row.setObject(reader.extraOrdinal, extra.text());
    }
    return row;
  }

  private boolean readFields() {
    cursor.skipBlanks();
    if (!cursor.skip('{')) {
      return false;
    }
    cursor.skipBlanks();
    byte separator = cursor.peek() == '}' ? cursor.skipSeparator('}') : (byte) ',';
    int expected = 0;
    while (separator == ',') {
      if (!cursor.skip('"')) {
        return false;
      }
      int start = cursor.position;
      int column;
      // Records mostly have their fields in the declared order, so that the next name is only compared.
      if (expected < columns.length && cursor.isNext(columns[expected].nameBytes)) {
        column = expected;
        cursor.position += columns[column].nameBytes.length + 1;
      } else {
        if (!cursor.skipName()) {
          return false;
        }
        column = reader.columnIndex(cursor.bytes, start, cursor.position - 1);
      }
      int end = cursor.position - 1;
      if (!cursor.skipColon() || !readField(column, start, end)) {
        return false;
      }
      expected = column < 0 ? expected : column + 1;
      separator = cursor.skipSeparator('}');
    }
    cursor.skipBlanks();
    return separator != 0 && cursor.isAtEnd();
  }

  private boolean readField(int column, int nameStart, int nameEnd) {
    if (reader.isKeyRoot(cursor.bytes, nameStart, nameEnd)) {
      int start = cursor.position;
      if (!readKey()) {
        return false;
      }
      if (column < 0) {
        return true;
      }
      cursor.position = start;
    }
    return column < 0 ? readExtra(nameStart, nameEnd) : readColumn(column);
  }

  private boolean readColumn(int index) {
    long bit = 1L << index;
    if ((seen[index >> 6] & bit) != 0) {
      return false;
    }
    seen[index >> 6] |= bit;
    seenCount++;
    Column column = columns[index];
    if (column.castType == null) {
      return values.read(column.type, row, index);
    }
    RecordRow cell = new RecordRow(1);
    if (!values.read(column.type, cell, 0)) {
      return false;
    }
    if (cell.isNullAt(0)) {
      return true;
    }
    Object value = column.cast(cell.getBoxed(0, column.type), reader.zone);
    row.setBoxed(index, value);
    return value != null;
  }

  private boolean readKey() {
    if (hasReadKey) {
      return false;
    }
    hasReadKey = true;
    JsonTree value = new TreeScanner(cursor).read();
    if (value == null) {
      return false;
    }
    row.setObject(reader.keyOrdinal, reader.options.key.keyIn(value));
    return true;
  }

  private boolean readExtra(int nameStart, int nameEnd) {
    if (!reader.options.keepsDrift) {
      return false;
    }
    if (extra == null) {
      extra = new JsonTextScanner(cursor);
      extraNames = new NameSet(cursor.bytes);
    }
    if (!extraNames.add(nameStart, nameEnd)) {
      return false;
    }
    extra.append(extra.isEmpty() ? '{' : ',');
    extra.append(nameStart - 1, nameEnd + 1);
    extra.append(':');
    return extra.copyValue();
  }

  private boolean setMissing() {
    if (seenCount == columns.length) {
      return true;
    }
    StringBuilder names = new StringBuilder();
    for (int index = 0; index < columns.length; index++) {
      if ((seen[index >> 6] & 1L << index) == 0 && columns[index].isRequired) {
        names.append(names.isEmpty() ? '[' : ',');
        JsonText.appendQuoted(columns[index].name, names);
      }
    }
    if (names.isEmpty()) {
      return true;
    }
    row.setObject(reader.missingOrdinal, UTF8String.fromString(names.append(']').toString()));
    return reader.options.keepsDrift;
  }
}
