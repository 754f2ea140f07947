package headgate.connect.plugin;

/** The version that Connect shows beside our plugins. */
public final class Build {
  public static final String VERSION = "0.1.0";

  private Build() {}
}
