package gapless;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.axonframework.commandhandling.CommandBus;
import org.axonframework.commandhandling.CommandMessage;
import org.axonframework.commandhandling.GenericCommandMessage;
import org.axonframework.disruptor.commandhandling.DisruptorCommandBus;

/**
 * Drives one of Axon's buses, and prints one line of JSON.
 *
 * <p>Arguments: bus (simple, disruptor), aggregates, bytes of a note, seconds that warm up, seconds that count, commands in flight;
 * system properties: see {@link Settings}.
 */
public final class Main {
    /** One aggregate after the other would be in the order of memory; as `gapless bench commands` has it. */
    private static final long STRIDE = 7919;

    private static final Map<String, String> METADATA =
            Map.of("correlation", "1111111111111111", "causation", "2222222222222222");

    private final CommandBus bus;
    private final LastEventStore last;
    private final long aggregates;
    private final String[] ids;
    private final String note;
    private final int inFlightMax;
    private final AtomicLong answered = new AtomicLong();
    private long sent;
    private long number;
    private volatile long wrong;
    private volatile String firstWrong;

    private Main(CommandBus bus, LastEventStore last, int aggregates, int size, int inFlightMax) {
        this.bus = bus;
        this.last = last;
        this.aggregates = aggregates;
        this.inFlightMax = inFlightMax;
        ids = new String[aggregates];
        for (int id = 0; id < aggregates; id++) {
            ids[id] = "counter-" + id;
        }
        note = "x".repeat(size);
    }

    public static void main(String[] arguments) throws Exception {
        int aggregates = Integer.parseInt(arguments[1]);
        double warmUp = Double.parseDouble(arguments[3]);
        double time = Double.parseDouble(arguments[4]);
        int inFlightMax = Integer.parseInt(arguments[5]);
        LastEventStore last = new LastEventStore();
        CommandBus bus = Buses.start(arguments[0], last, inFlightMax);
        Main main = new Main(bus, last, aggregates, Integer.parseInt(arguments[2]), inFlightMax);
        main.create();
        main.run(warmUp);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long answeredBefore = main.answered();
        long cpuBefore = system.getProcessCpuTime();
        long collectedBefore = collectedNs();
        long begin = System.nanoTime();
        main.run(time);
        long answered = main.answered() - answeredBefore;
        long elapsed = System.nanoTime() - begin;
        long cpu = system.getProcessCpuTime() - cpuBefore;
        long collected = collectedNs() - collectedBefore;
        main.await(0);
        if (bus instanceof DisruptorCommandBus) {
            ((DisruptorCommandBus) bus).stop();
        }
        String wrong = main.firstWrong == null ? "null" : '"' + main.firstWrong.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + '"';
        String version = CommandBus.class.getPackage().getImplementationVersion();
        System.out.printf(
                "{\"counted\":%d,\"elapsed_ns\":%d,\"cpu_ns\":%d,\"collected_ns\":%d,\"sent\":%d,\"wrong\":%d,\"first_wrong\":%s,"
                        + "\"axon\":\"%s\",\"java\":\"%s\",\"heap_bytes_max\":%d}%n",
                answered, elapsed, cpu, collected, main.number, main.wrong, wrong, version, Runtime.version(),
                Runtime.getRuntime().maxMemory());
        System.exit(0);
    }

    /** Time in garbage collections. */
    private static long collectedNs() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += collector.getCollectionTime() * 1_000_000;
        }
        return sum;
    }

    private void create() {
        for (String id : ids) {
            dispatch(new Counter.Create(id), -1);
        }
        await(0);
    }

    /** Sends for so many seconds: what may be in flight, then half of it is awaited. */
    private void run(double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < end) {
            for (long room = inFlightMax - (sent - answered()); room > 0; room--) {
                long which = number % aggregates;
                int id = (int) (aggregates % STRIDE == 0 ? which : which * STRIDE % aggregates);
                dispatch(new Counter.Add(ids[id], 1, note), number / aggregates + 1);
                number++;
            }
            await(inFlightMax / 2);
        }
    }

    private long answered() {
        return Settings.AWAITS_ANSWERS ? answered.get() : last.stored();
    }

    /** Waits until so many are in flight at most. */
    private void await(int most) {
        while (sent - answered() > most) {
            Thread.yield();
        }
    }

    private void dispatch(Object payload, long expected) {
        CommandMessage<Object> command = GenericCommandMessage.asCommandMessage(payload);
        if (Settings.HAS_METADATA) {
            command = command.withMetaData(METADATA);
        }
        sent++;
        if (!Settings.AWAITS_ANSWERS) {
            bus.dispatch(command);
            return;
        }
        bus.dispatch(command, (same, result) -> {
            if (result.isExceptional()) {
                note(result.exceptionResult().toString());
            } else if (expected >= 0 && !Long.valueOf(expected).equals(result.getPayload())) {
                note("sum " + expected + " was expected, and this is " + result.getPayload());
            }
            if (Settings.HAS_POOL) {
                answered.incrementAndGet();
            } else {
                // One thread calls all callbacks, so no other one writes.
                answered.lazySet(answered.get() + 1);
            }
        });
    }

    /** Of callbacks, which one thread calls after the other. */
    private void note(String what) {
        wrong = wrong + 1;
        if (firstWrong == null) {
            firstWrong = what;
        }
    }
}
