package gapless;

import com.lmax.disruptor.YieldingWaitStrategy;
import com.lmax.disruptor.dsl.ProducerType;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.axonframework.commandhandling.CommandBus;
import org.axonframework.commandhandling.CommandMessage;
import org.axonframework.commandhandling.GenericCommandMessage;
import org.axonframework.commandhandling.SimpleCommandBus;
import org.axonframework.common.Registration;
import org.axonframework.common.caching.Cache;
import org.axonframework.disruptor.commandhandling.DisruptorCommandBus;
import org.axonframework.eventsourcing.EventSourcingRepository;
import org.axonframework.eventsourcing.GenericAggregateFactory;
import org.axonframework.eventsourcing.eventstore.EmbeddedEventStore;
import org.axonframework.eventsourcing.eventstore.EventStore;
import org.axonframework.eventsourcing.eventstore.inmemory.InMemoryEventStorageEngine;
import org.axonframework.messaging.correlation.MessageOriginProvider;
import org.axonframework.messaging.interceptors.CorrelationDataInterceptor;
import org.axonframework.modelling.command.AggregateAnnotationCommandHandler;
import org.axonframework.modelling.command.CommandTargetResolver;
import org.axonframework.modelling.command.Repository;
import org.axonframework.modelling.command.VersionedAggregateIdentifier;

/**
 * Drives one of Axon's buses, and prints one line of JSON.
 *
 * <p>Arguments: bus (simple, disruptor), aggregates, bytes of a note, seconds that warm up, seconds that count, commands in flight.
 */
public final class Main {
    /** One aggregate after the other would be in the order of memory; as `gapless bench commands` has it. */
    private static final long STRIDE = 7919;

    private final CommandBus bus;
    private final long aggregates;
    private final String[] ids;
    private final String note;
    private final int inFlightMax;
    private final AtomicLong answered = new AtomicLong();
    private long sent;
    private long number;
    private volatile long wrong;
    private volatile String firstWrong;

    private Main(CommandBus bus, int aggregates, int size, int inFlightMax) {
        this.bus = bus;
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
        CommandBus bus = bus(arguments[0], inFlightMax);
        Main main = new Main(bus, aggregates, Integer.parseInt(arguments[2]), inFlightMax);
        main.create();
        main.run(warmUp);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long answeredBefore = main.answered.get();
        long cpuBefore = system.getProcessCpuTime();
        long begin = System.nanoTime();
        main.run(time);
        long answered = main.answered.get() - answeredBefore;
        long elapsed = System.nanoTime() - begin;
        long cpu = system.getProcessCpuTime() - cpuBefore;
        main.await(0);
        if (bus instanceof DisruptorCommandBus disruptor) {
            disruptor.stop();
        }
        String wrong = main.firstWrong == null ? "null" : '"' + main.firstWrong.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + '"';
        String version = CommandBus.class.getPackage().getImplementationVersion();
        System.out.printf(
                "{\"counted\":%d,\"elapsed_ns\":%d,\"cpu_ns\":%d,\"sent\":%d,\"wrong\":%d,\"first_wrong\":%s,\"axon\":\"%s\",\"java\":\"%s\","
                        + "\"heap_bytes_max\":%d}%n",
                answered, elapsed, cpu, main.number, main.wrong, wrong, version, Runtime.version(), Runtime.getRuntime().maxMemory());
        System.exit(0);
    }

    /** The bus, with an event store in memory and every aggregate in a cache. */
    private static CommandBus bus(String kind, int inFlightMax) {
        EventStore events = EmbeddedEventStore.builder().storageEngine(new InMemoryEventStorageEngine()).build();
        CorrelationDataInterceptor<CommandMessage<?>> correlation = new CorrelationDataInterceptor<>(new MessageOriginProvider());
        CommandTargetResolver target =
                command -> new VersionedAggregateIdentifier(((Counter.Command) command.getPayload()).id(), null);
        CommandBus bus;
        Repository<Counter> repository;
        if (kind.equals("disruptor")) {
            DisruptorCommandBus disruptor = DisruptorCommandBus.builder()
                    .bufferSize(Integer.highestOneBit(inFlightMax) * 2)
                    .executor(Main::execute)
                    .producerType(ProducerType.SINGLE)
                    .waitStrategy(new YieldingWaitStrategy())
                    .cache(new StrongCache())
                    .commandTargetResolver(target)
                    .build();
            repository = disruptor.createRepository(events, new GenericAggregateFactory<>(Counter.class));
            bus = disruptor;
        } else {
            bus = SimpleCommandBus.builder().build();
            repository =
                    EventSourcingRepository.builder(Counter.class).eventStore(events).cache(new StrongCache()).build();
        }
        bus.registerHandlerInterceptor(correlation);
        AggregateAnnotationCommandHandler.<Counter>builder()
                .aggregateType(Counter.class)
                .repository(repository)
                .commandTargetResolver(target)
                .build()
                .subscribe(bus);
        return bus;
    }

    /** The bus's own threads are started; what they have to say of a result they say themselves, and wake no other thread for it. */
    private static void execute(Runnable task) {
        if (Thread.currentThread() instanceof BusThread) {
            task.run();
        } else {
            new BusThread(task).start();
        }
    }

    private static final class BusThread extends Thread {
        private BusThread(Runnable task) {
            super(task, "bus");
            setDaemon(true);
        }
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
            while (sent - answered.get() < inFlightMax) {
                long which = number % aggregates;
                int id = (int) (aggregates % STRIDE == 0 ? which : which * STRIDE % aggregates);
                dispatch(new Counter.Add(ids[id], 1, note), number / aggregates + 1);
                number++;
                // The bus that answers at once never has any in flight.
                if ((number & 1023) == 0 && System.nanoTime() >= end) {
                    return;
                }
            }
            await(inFlightMax / 2);
        }
    }

    /** Waits until so many are in flight at most. */
    private void await(int most) {
        while (sent - answered.get() > most) {
            Thread.yield();
        }
    }

    private void dispatch(Object payload, long expected) {
        CommandMessage<Object> command = GenericCommandMessage.asCommandMessage(payload);
        Map<String, ?> metadata = Map.of("correlation", "1111111111111111", "causation", "2222222222222222");
        sent++;
        bus.dispatch(command.withMetaData(metadata), (same, result) -> {
            if (result.isExceptional()) {
                note(result.exceptionResult().toString());
            } else if (expected >= 0 && !Long.valueOf(expected).equals(result.getPayload())) {
                note("sum " + expected + " was expected, and this is " + result.getPayload());
            }
            answered.incrementAndGet();
        });
    }

    /** Of callbacks, which one thread calls after the other. */
    private void note(String what) {
        wrong = wrong + 1;
        if (firstWrong == null) {
            firstWrong = what;
        }
    }

    /** A cache that forgets nothing: a weak one has to load an aggregate from all of its events behind each garbage collection. */
    private static final class StrongCache implements Cache {
        private final ConcurrentHashMap<Object, Object> entries = new ConcurrentHashMap<>();

        @Override
        @SuppressWarnings("unchecked")
        public <K, V> V get(K key) {
            return (V) entries.get(key);
        }

        @Override
        public void put(Object key, Object value) {
            entries.put(key, value);
        }

        @Override
        public boolean putIfAbsent(Object key, Object value) {
            return entries.putIfAbsent(key, value) == null;
        }

        @Override
        public boolean remove(Object key) {
            return entries.remove(key) != null;
        }

        @Override
        public void removeAll() {
            entries.clear();
        }

        @Override
        public boolean containsKey(Object key) {
            return entries.containsKey(key);
        }

        @Override
        public Registration registerCacheEntryListener(EntryListener listener) {
            return () -> true;
        }

        @Override
        @SuppressWarnings("unchecked")
        public <V> void computeIfPresent(Object key, UnaryOperator<V> update) {
            entries.computeIfPresent(key, (same, value) -> update.apply((V) value));
        }
    }
}
