package gapless;

import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import com.sun.management.OperatingSystemMXBean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** The caller of {@link Peer}: requests on their way by their correlation, and the orders by which it measures. */
final class Calls implements AutoCloseable {
    /** Distinct payloads of a size. */
    private static final int DISTINCT = 64;
    private static final int PAYLOAD_BYTES_MIN = 32;
    private static final long PATIENCE_S = 30;

    private final KafkaProducer<byte[], byte[]> producer;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<Long, CompletableFuture<byte[]>> waiting = new ConcurrentHashMap<>();
    private final AtomicLong last = new AtomicLong();
    private final Thread reader;
    private volatile boolean ended;

    Calls(String brokers) {
        producer = Peer.producer(brokers);
        consumer = Peer.consumer(brokers, Peer.REPLIES);
        reader = new Thread(this::read, "replies");
        reader.setDaemon(true);
        reader.start();
    }

    /** Takes orders from standard input until it ends, and answers each with a line of JSON. */
    static void obey(String brokers) throws Exception {
        try (Calls calls = new Calls(brokers); Scanner orders = new Scanner(System.in, StandardCharsets.UTF_8)) {
            System.out.println("{\"calls\":true}");
            while (orders.hasNextLine()) {
                String[] order = orders.nextLine().replaceAll("[\\[\\]\"\\s]", "").split(",");
                if (order[0].equals("lone") && order.length == 4) {
                    calls.lone(number(order[1]), number(order[2]), number(order[3]));
                } else if (order[0].equals("cycles") && order.length == 6) {
                    calls.cycles(number(order[1]), number(order[2]) == 2, number(order[3]), number(order[4]), number(order[5]));
                } else {
                    throw new IllegalArgumentException("an order is [\"lone\", BYTES, WARM_UP, COUNT]"
                            + " or [\"cycles\", BYTES, WAYS, COUNT, CYCLES, IN_FLIGHT]");
                }
            }
        }
    }

    private static int number(String text) {
        return Integer.parseInt(text);
    }

    private void read() {
        while (!ended) {
            for (ConsumerRecord<byte[], byte[]> reply : consumer.poll(Duration.ofMillis(100))) {
                long correlation = ByteBuffer.wrap(reply.headers().lastHeader(Peer.CORRELATION).value()).getLong();
                CompletableFuture<byte[]> future = waiting.remove(correlation);
                if (future != null) {
                    future.complete(reply.value());
                }
            }
        }
    }

    private CompletableFuture<byte[]> call(byte[] payload) {
        long correlation = last.incrementAndGet();
        CompletableFuture<byte[]> future = new CompletableFuture<>();
        waiting.put(correlation, future);
        var request = new ProducerRecord<byte[], byte[]>(Peer.REQUESTS, 0, null, payload);
        request.headers().add(Peer.CORRELATION, ByteBuffer.allocate(8).putLong(correlation).array());
        request.headers().add(Peer.REPLY_TOPIC, Peer.REPLIES.getBytes(StandardCharsets.UTF_8));
        producer.send(request, (metadata, error) -> {
            if (error != null) {
                future.completeExceptionally(error);
            }
        });
        return future;
    }

    /** Calls one at a time; the payload comes back. */
    private void lone(int bytes, int warmUp, int count) throws Exception {
        byte[][] payloads = payloads(bytes);
        long[] times = new long[count];
        int wrong = 0;
        for (int number = 0; number < warmUp + count; number++) {
            byte[] payload = payloads[number % DISTINCT];
            long begun = System.nanoTime();
            byte[] reply = call(payload).get(PATIENCE_S, TimeUnit.SECONDS);
            long took = System.nanoTime() - begun;
            if (number >= warmUp) {
                times[number - warmUp] = took;
            }
            wrong += Arrays.equals(payload, reply) ? 0 : 1;
        }
        System.out.println("{\"times_ns\":" + Arrays.toString(times) + ",\"wrong\":" + wrong + "}");
    }

    /** In each cycle forks as many calls as are in flight together and joins them, again and again. Replies are checked outside of the clock. */
    private void cycles(int bytes, boolean comesBack, int count, int cycles, int inFlight) throws Exception {
        byte[][] payloads = payloads(bytes);
        long[] elapsed = new long[cycles];
        long[] cpu = new long[cycles];
        int wrong = 0;
        for (int cycle = 0; cycle < cycles; cycle++) {
            long cpuBefore = cpuTime();
            for (int first = 0; first < count; first += inFlight) {
                int forked = Math.min(inFlight, count - first);
                List<CompletableFuture<byte[]>> calls = new ArrayList<>(forked);
                List<byte[]> replies = new ArrayList<>(forked);
                long begun = System.nanoTime();
                for (int number = first; number < first + forked; number++) {
                    calls.add(call(payloads[number % DISTINCT]));
                }
                for (CompletableFuture<byte[]> call : calls) {
                    replies.add(call.get(PATIENCE_S, TimeUnit.SECONDS));
                }
                elapsed[cycle] += System.nanoTime() - begun;
                for (int at = 0; at < forked; at++) {
                    byte[] expected = comesBack ? payloads[(first + at) % DISTINCT] : Peer.WHOLE;
                    wrong += Arrays.equals(expected, replies.get(at)) ? 0 : 1;
                }
            }
            cpu[cycle] = cpuTime() - cpuBefore;
        }
        System.out.println("{\"elapsed_ns\":" + Arrays.toString(elapsed) + ",\"cpu_ns\":" + Arrays.toString(cpu) + ",\"wrong\":" + wrong
                + ",\"java\":\"" + Runtime.version() + "\"}");
    }

    /** CPU time of this process, ns. */
    static long cpuTime() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    /** Payloads that differ, each with its length at its begin and the complement at its end. */
    private static byte[][] payloads(int bytes) {
        if (bytes < PAYLOAD_BYTES_MIN) {
            throw new IllegalArgumentException("a payload of " + bytes + " bytes; expected at least " + PAYLOAD_BYTES_MIN);
        }
        byte[][] payloads = new byte[DISTINCT][bytes];
        for (int number = 0; number < DISTINCT; number++) {
            for (int at = 0; at < bytes; at++) {
                payloads[number][at] = (byte) (number * 31 + at * 7);
            }
            ByteBuffer buffer = ByteBuffer.wrap(payloads[number]).order(ByteOrder.LITTLE_ENDIAN);
            buffer.putLong(0, bytes).putLong(bytes - 8, ~(long) bytes);
        }
        return payloads;
    }

    /** Whether nothing of a payload is missing at its ends. */
    static boolean isWhole(byte[] payload) {
        ByteBuffer buffer = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        return payload.length >= PAYLOAD_BYTES_MIN && buffer.getLong(0) == payload.length
                && buffer.getLong(payload.length - 8) == ~(long) payload.length;
    }

    @Override
    public void close() throws Exception {
        ended = true;
        reader.join();
        consumer.close();
        producer.close();
    }
}
