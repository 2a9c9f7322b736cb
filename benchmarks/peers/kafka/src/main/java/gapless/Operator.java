package gapless;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

import org.apache.kafka.clients.admin.Admin;

/** Questions and orders of an operator to a broker that runs. */
public final class Operator {
    private static final String USAGE = "usage: leader BROKERS TOPIC | allow BROKERS USER:OPERATION:TOPIC_PREFIX...";

    private Operator() {
    }

    /** Prints the node that leads partition 0 of a topic. */
    private static void printLeader(String brokers, String topic) throws Exception {
        Properties client = new Properties();
        client.setProperty("bootstrap.servers", brokers);
        try (Admin admin = Admin.create(client)) {
            var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            System.out.println(described.partitions().get(0).leader().id());
        }
    }

    public static void main(String[] arguments) {
        try {
            if (arguments.length == 3 && arguments[0].equals("leader")) {
                printLeader(arguments[1], arguments[2]);
            } else if (arguments.length >= 3 && arguments[0].equals("allow")) {
                List<String[]> rules = new ArrayList<>();
                for (String rule : Arrays.copyOfRange(arguments, 2, arguments.length)) {
                    rules.add(Broker.parts("allow", rule, 3));
                }
                Broker.allow(arguments[1], rules);
            } else {
                throw new IllegalArgumentException(USAGE);
            }
        } catch (Exception error) {
            System.err.println("operator: " + error);
            System.exit(1);
        }
    }
}
