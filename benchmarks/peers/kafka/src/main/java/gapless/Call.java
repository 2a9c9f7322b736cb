package gapless;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Calls a route of a bridge by the protocol of docs/protocols/kafka.md, in JSON, with Kafka's own client and nothing of Gapless. Prints one
 * line: `reply JSON`, `refused CODE TEXT` or `ended JSON`.
 */
public final class Call {
    private static final String USAGE = "usage: gapless.Call BROKERS PREFIX.inbox.BRIDGE REPLY_TOPIC ROUTE JSON";
    private static final long TIME_MS = 60_000;

    private Call() {
    }

    private static Properties connection(String brokers) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", brokers);
        properties.setProperty("enable.auto.commit", "false");
        properties.setProperty("linger.ms", "0");
        return properties;
    }

    private static String text(ConsumerRecord<byte[], byte[]> record, String name) {
        Header header = record.headers().lastHeader(name);
        return header == null || header.value() == null ? "" : new String(header.value(), UTF_8);
    }

    /** Makes the topic; false if it was there before. */
    private static boolean makeTopic(String brokers, String topic) throws InterruptedException, ExecutionException {
        try (Admin admin = Admin.create(connection(brokers))) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.empty()))).all().get();
            return true;
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof TopicExistsException)) {
                throw error;
            }
            return false;
        }
    }

    private static void removeTopic(String brokers, String topic) throws InterruptedException, ExecutionException {
        try (Admin admin = Admin.create(connection(brokers))) {
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private static ProducerRecord<byte[], byte[]> request(String[] arguments, String correlation) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(arguments[1], 0, null, arguments[4].getBytes(UTF_8));
        Map<String, String> headers = Map.of(
                "gapless-kind", "request",
                "gapless-route", arguments[3],
                "gapless-correlation", correlation,
                "gapless-reply-topic", arguments[2],
                "gapless-time-left-ms", Long.toString(TIME_MS),
                "gapless-encoding", "json");
        headers.forEach((name, value) -> record.headers().add(name, value.getBytes(UTF_8)));
        return record;
    }

    private static String words(ConsumerRecord<byte[], byte[]> reply) {
        String payload = reply.value() == null ? "" : new String(reply.value(), UTF_8);
        String status = text(reply, "gapless-status");
        if (status.equals("refused")) {
            return "refused " + text(reply, "gapless-refusal-code") + " " + text(reply, "gapless-refusal-text");
        }
        return status + " " + payload;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 5) {
            System.err.println(USAGE);
            System.exit(2);
        }
        boolean isMade = makeTopic(arguments[0], arguments[2]);
        String words = call(arguments);
        if (isMade) {
            removeTopic(arguments[0], arguments[2]);
        }
        if (words == null) {
            System.err.println("no reply within " + TIME_MS + " ms");
            System.exit(1);
        }
        System.out.println(words);
    }

    /** The words of the reply; null if none comes. */
    private static String call(String[] arguments) throws InterruptedException, ExecutionException {
        Properties connection = connection(arguments[0]);
        try (KafkaConsumer<byte[], byte[]> replies = new KafkaConsumer<>(connection, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                KafkaProducer<byte[], byte[]> requests = new KafkaProducer<>(connection, new ByteArraySerializer(), new ByteArraySerializer())) {
            TopicPartition partition = new TopicPartition(arguments[2], 0);
            replies.assign(List.of(partition));
            replies.seekToEnd(List.of(partition));
            // Asks for the end now, before the request.
            replies.position(partition);
            String correlation = UUID.randomUUID().toString();
            requests.send(request(arguments, correlation)).get();
            long until = System.currentTimeMillis() + TIME_MS;
            while (System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> reply : replies.poll(Duration.ofMillis(100))) {
                    if (text(reply, "gapless-correlation").equals(correlation)) {
                        return words(reply);
                    }
                }
            }
        }
        return null;
    }
}
