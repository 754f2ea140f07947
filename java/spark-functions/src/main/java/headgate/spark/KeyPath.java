package headgate.spark;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/** The place of a key inside a record, such as partitionColumns[type='PK'].value or ids[0]. */
final class KeyPath implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final Pattern STEP =
      Pattern.compile("([A-Za-z_]\\w*)(?:\\[(?:(\\d{1,6})|([A-Za-z_]\\w*)='([^'\\[\\]]*)')\\])?(?:\\.|\\z)");

  /**
   * A field; of a list the item at an index, or those items whose field has a text.
   *
   * @param index -1 where no item is chosen by index
   * @param filterField null where no item is chosen by a field
   */
  private record Step(String name, int index, String filterField, String filterText)
      implements Serializable {
    boolean isFilter() {
      return filterField != null;
    }
  }

  private final List<Step> steps;
  /** A filter may choose several items, so that there may be several keys. */
  private final boolean hasFilter;

  /** The record's field in which the key stands. */
  final String root;

  final byte[] rootBytes;

  private KeyPath(List<Step> steps) {
    this.steps = List.copyOf(steps);
    hasFilter = steps.stream().anyMatch(Step::isFilter);
    root = steps.get(0).name();
    rootBytes = root.getBytes(StandardCharsets.UTF_8);
  }

  static KeyPath parse(String path) {
    List<Step> steps = new ArrayList<>();
    Matcher step = STEP.matcher(path);
    int end = 0;
    while (end < path.length() && step.find() && step.start() == end) {
      int index = step.group(2) == null ? -1 : Integer.parseInt(step.group(2));
      steps.add(new Step(step.group(1), index, step.group(3), step.group(4)));
      end = step.end();
    }
    if (steps.isEmpty() || end < path.length() || path.endsWith(".")) {
      throw new ArgumentException(
          "options",
          String.format(
              "the option key is '%s', which is no path such as partitionColumns[type='PK'].value, ids[0] or"
                  + " order.id",
              path));
    }
    return new KeyPath(steps);
  }

  /**
   * The key in the value of the root field, as text; null where there is none. A number or boolean gives its
   * text as written, a list or object its JSON without blanks. Several items that a filter chose give the JSON list of their keys.
   */
  UTF8String keyIn(JsonTree rootValue) {
    List<String> keys = new ArrayList<>(1);
    collect(rootValue, 0, keys);
    if (keys.isEmpty() || keys.size() == 1 && keys.get(0) == null) {
      return null;
    }
    if (!hasFilter || keys.size() == 1) {
      return UTF8String.fromString(keys.get(0));
    }
    StringBuilder list = new StringBuilder("[");
    for (String key : keys) {
      list.append(list.length() > 1 ? "," : "");
      if (key == null) {
        list.append("null");
      } else {
        JsonText.appendQuoted(key, list);
      }
    }
    return UTF8String.fromString(list.append(']').toString());
  }

  /** Add one key for each place that the path reaches; null where nothing stands. */
  private void collect(JsonTree value, int at, List<String> keys) {
    Step step = steps.get(at);
    if (step.isFilter()) {
      collectMatching(value, step, at, keys);
    } else if (step.index() < 0) {
      collectNext(value, at, keys);
    } else {
      boolean exists = isList(value) && step.index() < value.items().size();
      collectNext(exists ? value.items().get(step.index()) : null, at, keys);
    }
  }

  private void collectMatching(JsonTree value, Step step, int at, List<String> keys) {
    // A list with an item that is no object is not the list that the path describes: it has no key.
    if (!isList(value) || !value.items().stream().allMatch(KeyPath::isObjectOrNull)) {
      return;
    }
    for (JsonTree item : value.items()) {
      JsonTree chosen = fieldOf(item, step.filterField());
      if (chosen != null && step.filterText().equals(textOf(chosen))) {
        collectNext(item, at, keys);
      }
    }
  }

  private void collectNext(JsonTree value, int at, List<String> keys) {
    if (at + 1 == steps.size()) {
      keys.add(textOf(value));
    } else {
      collect(fieldOf(value, steps.get(at + 1).name()), at + 1, keys);
    }
  }

  private static boolean isList(JsonTree value) {
    return value != null && value.kind() == JsonTree.Kind.LIST;
  }

  private static boolean isObjectOrNull(JsonTree item) {
    return item.kind() == JsonTree.Kind.OBJECT || item.kind() == JsonTree.Kind.NULL;
  }

  private static JsonTree fieldOf(JsonTree value, String name) {
    return value == null || value.fields() == null ? null : value.fields().get(name);
  }

  private static String textOf(JsonTree value) {
    if (value == null || value.kind() == JsonTree.Kind.NULL) {
      return null;
    }
    if (value.text() != null) {
      return value.text();
    }
    StringBuilder text = new StringBuilder();
    value.appendCompact(text);
    return text.toString();
  }
}
