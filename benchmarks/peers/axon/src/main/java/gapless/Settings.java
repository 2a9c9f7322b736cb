package gapless;

import java.util.Arrays;

/** Switches of the harness, each a system property: the first value is the one with which Axon is fastest. */
final class Settings {
    static final String IDENTIFIERS = chosen("identifiers", "position", "time-ordered", "random-by-thread", "random");
    /** The last event of each aggregate, as Axon's own benchmark of its disruptor keeps; or all of them, in Axon's store. */
    static final boolean KEEPS_ALL_EVENTS = !chosen("store", "last", "all").equals("last");
    /** Each result is awaited and checked; or nothing is told, as in that benchmark, and the store counts. */
    static final boolean AWAITS_ANSWERS = chosen("answers", "awaited", "none").equals("awaited");
    static final boolean HAS_METADATA = chosen("metadata", "two", "none").equals("two");
    static final boolean HAS_ANNOTATED_HANDLER = !chosen("handler", "plain", "annotated").equals("plain");
    static final boolean HAS_ANNOTATED_TARGET = !chosen("target", "plain", "annotated").equals("plain");
    static final String WAIT = chosen("wait", "yielding", "blocking", "sleeping", "spinning");
    /** Results are told by the thread of the bus that has them; or by a pool, as is Axon's default. */
    static final boolean HAS_POOL = !chosen("executor", "own", "pool").equals("own");
    static final boolean HAS_MANY_PRODUCERS = !chosen("producers", "single", "multi").equals("single");

    static {
        if (KEEPS_ALL_EVENTS && !AWAITS_ANSWERS) {
            refuse("-Danswers=none: only -Dstore=last counts");
        }
    }

    private Settings() {}

    private static String chosen(String property, String... values) {
        String chosen = System.getProperty(property, values[0]);
        if (!Arrays.asList(values).contains(chosen)) {
            refuse("-D" + property + "=" + chosen + ": expected one of " + String.join(", ", values));
        }
        return chosen;
    }

    private static void refuse(String reason) {
        System.err.println(reason);
        System.exit(2);
    }
}
