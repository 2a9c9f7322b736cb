package gapless;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Scanner;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Calls over two topics by plain Java clients, as ReplyingKafkaTemplate of Spring does it: a request has the headers kafka_correlationId and
 * kafka_replyTopic, a thread reads the topic of replies and completes the future of the correlation. Server and client are two processes.
 */
public final class Peer {
    static final String CORRELATION = "kafka_correlationId";
    static final String REPLY_TOPIC = "kafka_replyTopic";
    static final String REQUESTS = System.getProperty("topics", "peer") + ".requests";
    static final String REPLIES = System.getProperty("topics", "peer") + ".replies";
    /** Reply to a request that came whole, and to another one. */
    static final byte[] WHOLE = {1};
    private static final byte[] PART = {0};

    private static volatile boolean echoes = true;

    private Peer() {
    }

    private static Properties connection(String brokers) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", brokers);
        return properties;
    }

    static KafkaProducer<byte[], byte[]> producer(String brokers) {
        Properties properties = connection(brokers);
        properties.setProperty("linger.ms", System.getProperty("linger", "0"));
        properties.setProperty("acks", System.getProperty("acks", "all"));
        properties.setProperty("batch.size", System.getProperty("batch", "1000000"));
        properties.setProperty("max.request.size", "2000000");
        properties.setProperty("buffer.memory", "268435456");
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Reads partition 0 from its end. */
    static KafkaConsumer<byte[], byte[]> consumer(String brokers, String topic) {
        Properties properties = connection(brokers);
        properties.setProperty("enable.auto.commit", "false");
        properties.setProperty("max.poll.records", "10000");
        properties.setProperty("fetch.max.bytes", "52428800");
        properties.setProperty("max.partition.fetch.bytes", "52428800");
        var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        TopicPartition partition = new TopicPartition(topic, 0);
        consumer.assign(List.of(partition));
        consumer.seekToEnd(List.of(partition));
        // Asks for the end now.
        consumer.position(partition);
        return consumer;
    }

    private static void makeTopics(String brokers) throws Exception {
        try (Admin admin = Admin.create(connection(brokers))) {
            for (String topic : Set.of(REQUESTS, REPLIES)) {
                try {
                    // As many copies as the broker makes by default.
                    var made = new NewTopic(topic, Optional.of(1), Optional.empty()).configs(Map.of("message.timestamp.type", "LogAppendTime"));
                    admin.createTopics(List.of(made)).all().get();
                } catch (java.util.concurrent.ExecutionException error) {
                    if (!(error.getCause() instanceof TopicExistsException)) {
                        throw error;
                    }
                }
            }
        }
    }

    /**
     * Answers each request that names a topic for replies, until its standard input ends: with the request itself, or, after the line `whole`,
     * with one byte that says whether it came whole. Each line there, `echo` or `whole`, is answered by the CPU time of this process, ns.
     */
    private static void serve(String brokers) throws Exception {
        makeTopics(brokers);
        try (var producer = producer(brokers); var consumer = consumer(brokers, REQUESTS)) {
            System.out.println("{\"serves\":true}");
            listen();
            while (true) {
                for (ConsumerRecord<byte[], byte[]> request : consumer.poll(Duration.ofSeconds(1))) {
                    var topic = request.headers().lastHeader(REPLY_TOPIC);
                    if (topic != null) {
                        byte[] reply = echoes ? request.value() : Calls.isWhole(request.value()) ? WHOLE : PART;
                        var answer = new ProducerRecord<byte[], byte[]>(new String(topic.value(), StandardCharsets.UTF_8), 0, null, reply);
                        answer.headers().add(CORRELATION, request.headers().lastHeader(CORRELATION).value());
                        producer.send(answer);
                    }
                }
            }
        }
    }

    /** Sends one record, as any program could. */
    private static void send(String brokers, String topic, String compression, String text, String[] headers) throws Exception {
        Properties properties = connection(brokers);
        properties.setProperty("compression.type", compression);
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            var sent = new ProducerRecord<byte[], byte[]>(topic, 0, null, text.getBytes(StandardCharsets.UTF_8));
            for (String header : headers) {
                String[] pair = header.split("=", 2);
                sent.headers().add(pair[0], pair[1].getBytes(StandardCharsets.UTF_8));
            }
            System.out.println(producer.send(sent).get().offset());
        }
    }

    /** Prints records from the first one on: headers, then a line with the payload. */
    private static void read(String brokers, String topic, int count) {
        try (var consumer = consumer(brokers, topic)) {
            consumer.seekToBeginning(consumer.assignment());
            int printed = 0;
            while (printed < count) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    for (var header : record.headers()) {
                        System.out.println(header.key() + "=" + new String(header.value(), StandardCharsets.UTF_8));
                    }
                    System.out.println(record.offset() + ": " + new String(record.value(), StandardCharsets.UTF_8));
                    printed++;
                }
            }
        }
    }

    private static void listen() {
        Thread listener = new Thread(() -> {
            try (Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
                while (lines.hasNextLine()) {
                    echoes = lines.nextLine().contains("echo");
                    System.out.println(Calls.cpuTime());
                }
            }
            Runtime.getRuntime().halt(0);
        });
        listener.setDaemon(true);
        listener.start();
    }

    public static void main(String[] arguments) {
        try {
            if (arguments.length == 2 && arguments[0].equals("server")) {
                serve(arguments[1]);
            } else if (arguments.length == 2 && arguments[0].equals("client")) {
                Calls.obey(arguments[1]);
            } else if (arguments.length >= 5 && arguments[0].equals("send")) {
                String[] headers = Arrays.copyOfRange(arguments, 5, arguments.length);
                send(arguments[1], arguments[2], arguments[3], arguments[4], headers);
            } else if (arguments.length == 4 && arguments[0].equals("read")) {
                read(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
            } else {
                throw new IllegalArgumentException("usage: send BROKERS TOPIC COMPRESSION TEXT [HEADER=VALUE]..."
                        + " | read BROKERS TOPIC COUNT | server BROKERS | client BROKERS");
            }
        } catch (Exception error) {
            System.err.println("peer: " + error);
            System.exit(1);
        }
    }
}
