package gapless;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

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
    private static final String CORRELATION = "kafka_correlationId";
    private static final String REPLY_TOPIC = "kafka_replyTopic";
    private static final String REQUESTS = "peer.requests";
    private static final String REPLIES = "peer.replies";

    private Peer() {
    }

    private static Properties connection(String brokers) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", brokers);
        return properties;
    }

    private static KafkaProducer<byte[], byte[]> producer(String brokers) {
        Properties properties = connection(brokers);
        properties.setProperty("linger.ms", System.getProperty("linger", "0"));
        properties.setProperty("acks", System.getProperty("acks", "all"));
        properties.setProperty("batch.size", System.getProperty("batch", "1000000"));
        properties.setProperty("max.request.size", "2000000");
        properties.setProperty("buffer.memory", "268435456");
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Reads partition 0 from its end. */
    private static KafkaConsumer<byte[], byte[]> consumer(String brokers, String topic) {
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
                    var made = new NewTopic(topic, 1, (short) 1).configs(Map.of("message.timestamp.type", "LogAppendTime"));
                    admin.createTopics(List.of(made)).all().get();
                } catch (java.util.concurrent.ExecutionException error) {
                    if (!(error.getCause() instanceof TopicExistsException)) {
                        throw error;
                    }
                }
            }
        }
    }

    /** Answers each request that names a topic for replies, until its standard input ends. */
    private static void serve(String brokers, int replyBytes) throws Exception {
        makeTopics(brokers);
        byte[] reply = new byte[replyBytes];
        try (var producer = producer(brokers); var consumer = consumer(brokers, REQUESTS)) {
            System.out.println("{\"serves\":true}");
            endWithInput();
            while (true) {
                for (ConsumerRecord<byte[], byte[]> request : consumer.poll(Duration.ofSeconds(1))) {
                    var topic = request.headers().lastHeader(REPLY_TOPIC);
                    if (topic != null) {
                        var answer = new ProducerRecord<byte[], byte[]>(new String(topic.value()), 0, null, reply);
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

    private static void endWithInput() {
        Thread ended = new Thread(() -> {
            try {
                System.in.transferTo(java.io.OutputStream.nullOutputStream());
            } catch (java.io.IOException gone) {
                // It has ended, too.
            }
            Runtime.getRuntime().halt(0);
        });
        ended.setDaemon(true);
        ended.start();
    }

    /** The caller's side: requests on their way by their correlation. */
    private static final class Caller implements AutoCloseable {
        private final KafkaProducer<byte[], byte[]> producer;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Map<Long, CompletableFuture<byte[]>> waiting = new ConcurrentHashMap<>();
        private final AtomicLong last = new AtomicLong();
        private final Thread reader;
        private volatile boolean ended;

        Caller(String brokers) {
            producer = producer(brokers);
            consumer = consumer(brokers, REPLIES);
            reader = new Thread(this::read, "replies");
            reader.start();
        }

        private void read() {
            while (!ended) {
                for (ConsumerRecord<byte[], byte[]> reply : consumer.poll(Duration.ofMillis(100))) {
                    long correlation = ByteBuffer.wrap(reply.headers().lastHeader(CORRELATION).value()).getLong();
                    CompletableFuture<byte[]> future = waiting.remove(correlation);
                    if (future != null) {
                        future.complete(reply.value());
                    }
                }
            }
        }

        CompletableFuture<byte[]> call(byte[] payload) {
            long correlation = last.incrementAndGet();
            CompletableFuture<byte[]> future = new CompletableFuture<>();
            waiting.put(correlation, future);
            var request = new ProducerRecord<byte[], byte[]>(REQUESTS, 0, null, payload);
            request.headers().add(CORRELATION, ByteBuffer.allocate(8).putLong(correlation).array());
            request.headers().add(REPLY_TOPIC, REPLIES.getBytes());
            producer.send(request, (metadata, error) -> {
                if (error != null) {
                    future.completeExceptionally(error);
                }
            });
            return future;
        }

        void send(byte[] payload) {
            producer.send(new ProducerRecord<>(REQUESTS, 0, null, payload));
        }

        @Override
        public void close() throws Exception {
            ended = true;
            reader.join();
            consumer.close();
            producer.close();
        }
    }

    /** Calls one at a time, then many together, then sends without replies; prints a line of JSON. */
    private static void measure(String brokers, int requestBytes, int replyBytes, int inFlight, int seconds) throws Exception {
        byte[] payload = new byte[requestBytes];
        try (Caller caller = new Caller(brokers)) {
            long[] times = new long[1_000_000];
            int calls = 0;
            // The first half warms up.
            for (int half = 0; half < 2; half++) {
                calls = 0;
                long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
                while (System.nanoTime() < until && calls < times.length) {
                    long begun = System.nanoTime();
                    check(caller.call(payload).get(30, TimeUnit.SECONDS), replyBytes);
                    times[calls++] = System.nanoTime() - begun;
                }
            }
            Arrays.sort(times, 0, calls);
            double together = 0;
            double oneWay = 0;
            for (int half = 0; half < 2; half++) {
                together = together(caller, payload, replyBytes, inFlight, seconds);
                oneWay = oneWay(caller, payload, replyBytes, seconds);
            }
            System.out.printf("{\"request_bytes\":%d,\"reply_bytes\":%d,\"p50_ns\":%d,\"p99_ns\":%d,\"in_flight\":%d,"
                    + "\"calls_per_second\":%.0f,\"one_way_per_second\":%.0f,\"java\":\"%s\"}%n", requestBytes, replyBytes,
                    times[calls / 2], times[calls * 99 / 100], inFlight, together, oneWay, Runtime.version());
        }
    }

    private static void check(byte[] reply, int replyBytes) {
        if (reply.length != replyBytes) {
            throw new IllegalStateException("a reply of " + reply.length + " bytes; expected " + replyBytes);
        }
    }

    private static double together(Caller caller, byte[] payload, int replyBytes, int inFlight, int seconds) throws Exception {
        Semaphore room = new Semaphore(inFlight);
        AtomicLong counted = new AtomicLong();
        AtomicLong wrong = new AtomicLong();
        long begun = System.nanoTime();
        long until = begun + TimeUnit.SECONDS.toNanos(seconds);
        while (System.nanoTime() < until) {
            room.acquire();
            caller.call(payload).whenComplete((reply, error) -> {
                boolean isRight = error == null && reply.length == replyBytes;
                (isRight ? counted : wrong).incrementAndGet();
                room.release();
            });
        }
        room.acquire(inFlight);
        if (wrong.get() > 0) {
            throw new IllegalStateException(wrong + " calls failed");
        }
        return counted.get() * 1e9 / (System.nanoTime() - begun);
    }

    private static double oneWay(Caller caller, byte[] payload, int replyBytes, int seconds) throws Exception {
        long begun = System.nanoTime();
        long until = begun + TimeUnit.SECONDS.toNanos(seconds);
        long count = 0;
        while (System.nanoTime() < until) {
            for (int turn = 0; turn < 100; turn++) {
                caller.send(payload);
                count++;
            }
        }
        // The reply to a call that was sent last: all were read before it.
        check(caller.call(payload).get(60, TimeUnit.SECONDS), replyBytes);
        return count * 1e9 / (System.nanoTime() - begun);
    }

    public static void main(String[] arguments) {
        try {
            if (arguments.length == 3 && arguments[0].equals("server")) {
                serve(arguments[1], Integer.parseInt(arguments[2]));
            } else if (arguments.length == 6 && arguments[0].equals("client")) {
                measure(arguments[1], Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]),
                        Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]));
            } else if (arguments.length >= 5 && arguments[0].equals("send")) {
                String[] headers = Arrays.copyOfRange(arguments, 5, arguments.length);
                send(arguments[1], arguments[2], arguments[3], arguments[4], headers);
            } else if (arguments.length == 4 && arguments[0].equals("read")) {
                read(arguments[1], arguments[2], Integer.parseInt(arguments[3]));
            } else {
                throw new IllegalArgumentException("usage: send BROKERS TOPIC COMPRESSION TEXT [HEADER=VALUE]..."
                        + " | read BROKERS TOPIC COUNT | server BROKERS REPLY_BYTES"
                        + " | client BROKERS REQUEST_BYTES REPLY_BYTES IN_FLIGHT SECONDS");
            }
        } catch (Exception error) {
            System.err.println("peer: " + error);
            System.exit(1);
        }
    }
}
