package gapless;

import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.utils.Time;

/**
 * One node of Kafka in KRaft mode: formats its storage if that is new, starts, prints its address as a line of JSON, and ends with its standard
 * input. Formatting and starting in one process saves the start of a second one.
 */
public final class Broker {
    private static final String USAGE = "usage: broker [--host HOST] [--port PORT] [--controller-port PORT] [--internal-port PORT] --data DIRECTORY"
            + " [--metadata DIRECTORY] [--message-max-bytes BYTES] [--sasl USER:PASSWORD]... [--tls DIRECTORY] [--acl]"
            + " [--allow USER:OPERATION:TOPIC_PREFIX]... [--set NAME=VALUE]... [--node ID --voters ID@HOST:PORT,...] [--once]";

    private String host = "127.0.0.1";
    private int port;
    private int controllerPort;
    private int internalPort;
    private Path data;
    private Path metadata;
    private final List<String[]> users = new ArrayList<>();
    private final List<String[]> allowed = new ArrayList<>();
    private final Properties extra = new Properties();
    private Path certificates;
    private boolean hasAcl;
    private boolean once;
    private String node = "1";
    private String voters;

    private Broker(String[] arguments) {
        for (int at = 0; at < arguments.length; at++) {
            String name = arguments[at];
            if (name.equals("--acl")) {
                hasAcl = true;
                continue;
            }
            if (name.equals("--once")) {
                once = true;
                continue;
            }
            if (at + 1 == arguments.length) {
                throw new IllegalArgumentException(name + " needs a value; " + USAGE);
            }
            String value = arguments[++at];
            switch (name) {
                case "--host" -> host = value;
                case "--port" -> port = Integer.parseInt(value);
                case "--controller-port" -> controllerPort = Integer.parseInt(value);
                case "--internal-port" -> internalPort = Integer.parseInt(value);
                case "--data" -> data = Path.of(value);
                case "--metadata" -> metadata = Path.of(value);
                case "--message-max-bytes" -> extra.setProperty("message.max.bytes", value);
                case "--sasl" -> users.add(parts(name, value, 2));
                case "--tls" -> certificates = Path.of(value);
                case "--allow" -> allowed.add(parts(name, value, 3));
                case "--node" -> node = value;
                case "--voters" -> voters = value;
                case "--set" -> {
                    String[] pair = value.split("=", 2);
                    extra.setProperty(pair[0], pair[1]);
                }
                default -> throw new IllegalArgumentException(name + " is unknown; " + USAGE);
            }
        }
        if (data == null) {
            throw new IllegalArgumentException("--data is missing; " + USAGE);
        }
        if (voters != null && controllerPort == 0) {
            throw new IllegalArgumentException("--voters needs --controller-port: other nodes know it");
        }
        if (hasAcl && users.isEmpty()) {
            throw new IllegalArgumentException("--acl needs --sasl: its first user may do everything");
        }
        if (metadata == null) {
            metadata = data;
        }
    }

    static String[] parts(String name, String value, int count) {
        String[] parts = value.split(":", count);
        if (parts.length != count) {
            throw new IllegalArgumentException(name + " " + value + ": expected " + count + " parts; " + USAGE);
        }
        return parts;
    }

    private int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(host))) {
            return socket.getLocalPort();
        }
    }

    private Properties properties() {
        Properties properties = new Properties();
        String security = users.isEmpty() ? certificates == null ? "PLAINTEXT" : "SSL"
                : certificates == null ? "SASL_PLAINTEXT" : "SASL_SSL";
        properties.setProperty("process.roles", "broker,controller");
        String quorum = voters == null ? node + "@" + host + ":" + controllerPort : voters;
        int nodes = quorum.split(",").length;
        properties.setProperty("node.id", node);
        properties.setProperty("controller.quorum.voters", quorum);
        // Kafka would not start with an expired certificate on the listener for brokers.
        properties.setProperty("listeners", "CLIENT://" + host + ":" + port + ",INTERNAL://" + host + ":" + internalPort
                + ",CONTROLLER://" + host + ":" + controllerPort);
        properties.setProperty("listener.security.protocol.map",
                "CLIENT:" + security + ",INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT");
        properties.setProperty("controller.listener.names", "CONTROLLER");
        properties.setProperty("inter.broker.listener.name", "INTERNAL");
        properties.setProperty("log.dirs", data.toString());
        properties.setProperty("metadata.log.dir", metadata.toString());
        properties.setProperty("auto.create.topics.enable", "false");
        // Of three copies two are needed for an acknowledgement, so none of them alone has a record that is acknowledged.
        String copies = Integer.toString(Math.min(nodes, 3));
        properties.setProperty("default.replication.factor", copies);
        properties.setProperty("min.insync.replicas", nodes > 2 ? "2" : "1");
        properties.setProperty("offsets.topic.replication.factor", copies);
        properties.setProperty("offsets.topic.num.partitions", "1");
        properties.setProperty("transaction.state.log.replication.factor", copies);
        properties.setProperty("transaction.state.log.num.partitions", "1");
        properties.setProperty("transaction.state.log.min.isr", "1");
        properties.setProperty("share.coordinator.state.topic.replication.factor", copies);
        properties.setProperty("share.coordinator.state.topic.min.isr", "1");
        properties.setProperty("group.initial.rebalance.delay.ms", "0");
        properties.setProperty("log.cleaner.dedupe.buffer.size", "2097152");
        properties.setProperty("num.network.threads", "2");
        properties.setProperty("num.io.threads", "4");
        properties.setProperty("controlled.shutdown.enable", "false");
        // A broker that was killed is taken for gone that long; one of several is busy with the others on the same machine.
        properties.setProperty("broker.session.timeout.ms", nodes == 1 ? "2000" : "6000");
        properties.setProperty("broker.heartbeat.interval.ms", "500");
        if (nodes == 1) {
            // The election of its only voter.
            properties.setProperty("controller.quorum.election.timeout.ms", "200");
            properties.setProperty("controller.quorum.fetch.timeout.ms", "1000");
        }
        if (!users.isEmpty()) {
            sasl(properties);
        }
        if (certificates != null) {
            properties.setProperty("ssl.keystore.type", "PEM");
            properties.setProperty("ssl.keystore.location", certificates.resolve("broker.pem").toString());
            properties.setProperty("ssl.truststore.type", "PEM");
            properties.setProperty("ssl.truststore.location", certificates.resolve("ca.pem").toString());
        }
        if (hasAcl) {
            properties.setProperty("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
            // The two listeners without a password, for this process, have an anonymous user.
            properties.setProperty("super.users", "User:ANONYMOUS;User:" + users.get(0)[0]);
        }
        properties.putAll(extra);
        return properties;
    }

    private void sasl(Properties properties) {
        properties.setProperty("sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512");
        StringBuilder plain = new StringBuilder("org.apache.kafka.common.security.plain.PlainLoginModule required");
        plain.append(" username=\"" + users.get(0)[0] + "\" password=\"" + users.get(0)[1] + "\"");
        for (String[] user : users) {
            plain.append(" user_" + user[0] + "=\"" + user[1] + "\"");
        }
        String scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
        properties.setProperty("listener.name.client.plain.sasl.jaas.config", plain + ";");
        properties.setProperty("listener.name.client.scram-sha-256.sasl.jaas.config", scram);
        properties.setProperty("listener.name.client.scram-sha-512.sasl.jaas.config", scram);
    }

    private void format(Properties properties) throws IOException {
        Files.createDirectories(data);
        Files.createDirectories(metadata);
        Path file = Files.createTempFile("gapless-broker", ".properties");
        try {
            try (var out = Files.newOutputStream(file)) {
                properties.store(out, null);
            }
            List<String> arguments = new ArrayList<>(List.of("format", "--ignore-formatted", "--config", file.toString(),
                    "--cluster-id", "Z2FwbGVzcy1icm9rZXIuLg"));
            for (String[] user : users) {
                for (String mechanism : List.of("SCRAM-SHA-256", "SCRAM-SHA-512")) {
                    arguments.add("--add-scram");
                    arguments.add(mechanism + "=[name=" + user[0] + ",password=" + user[1] + "]");
                }
            }
            PrintStream silent = new PrintStream(PrintStream.nullOutputStream());
            int code = StorageTool.execute(arguments.toArray(String[]::new), silent);
            if (code != 0) {
                throw new IllegalStateException("the storage in " + data + " cannot be formatted: code " + code);
            }
        } finally {
            Files.delete(file);
        }
    }

    /** Lets users use topics; without rules nobody but the first user may do anything. */
    static void allow(String brokers, List<String[]> allowed) throws Exception {
        if (allowed.isEmpty()) {
            return;
        }
        Properties client = new Properties();
        client.setProperty("bootstrap.servers", brokers);
        List<AclBinding> rules = new ArrayList<>();
        for (String[] rule : allowed) {
            var topic = new ResourcePattern(ResourceType.TOPIC, rule[2], PatternType.PREFIXED);
            var operation = AclOperation.fromString(rule[1]);
            rules.add(new AclBinding(topic,
                    new AccessControlEntry("User:" + rule[0], "*", operation, AclPermissionType.ALLOW)));
        }
        try (Admin admin = Admin.create(client)) {
            admin.createAcls(rules).all().get();
        }
    }

    private void run(PrintStream out) throws Exception {
        port = port == 0 ? freePort() : port;
        controllerPort = controllerPort == 0 ? freePort() : controllerPort;
        internalPort = internalPort == 0 ? freePort() : internalPort;
        Properties properties = properties();
        format(properties);
        var server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
        server.startup();
        allow(host + ":" + internalPort, allowed);
        out.println("{\"address\":\"" + host + ":" + port + "\",\"pid\":" + ProcessHandle.current().pid() + "}");
        if (once) {
            server.shutdown();
            return;
        }
        Thread ended = new Thread(() -> {
            try {
                System.in.transferTo(java.io.OutputStream.nullOutputStream());
            } catch (IOException gone) {
                // It has ended, too.
            }
            Runtime.getRuntime().halt(0);
        });
        ended.setDaemon(true);
        ended.start();
        server.awaitShutdown();
    }

    public static void main(String[] arguments) {
        // The line of JSON alone goes to standard output.
        PrintStream out = System.out;
        System.setOut(System.err);
        try {
            new Broker(arguments).run(out);
            System.exit(0);
        } catch (Throwable error) {
            System.err.println("broker: " + error);
            if (!(error instanceof IllegalArgumentException)) {
                error.printStackTrace();
            }
            System.exit(1);
        }
    }
}
