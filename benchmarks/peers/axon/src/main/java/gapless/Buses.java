package gapless;

import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.SleepingWaitStrategy;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import com.lmax.disruptor.dsl.ProducerType;
import org.axonframework.commandhandling.CommandBus;
import org.axonframework.commandhandling.CommandMessage;
import org.axonframework.commandhandling.SimpleCommandBus;
import org.axonframework.disruptor.commandhandling.DisruptorCommandBus;
import org.axonframework.eventsourcing.EventSourcingRepository;
import org.axonframework.eventsourcing.GenericAggregateFactory;
import org.axonframework.eventsourcing.eventstore.EmbeddedEventStore;
import org.axonframework.eventsourcing.eventstore.EventStore;
import org.axonframework.eventsourcing.eventstore.inmemory.InMemoryEventStorageEngine;
import org.axonframework.messaging.correlation.MessageOriginProvider;
import org.axonframework.messaging.interceptors.CorrelationDataInterceptor;
import org.axonframework.modelling.command.AggregateAnnotationCommandHandler;
import org.axonframework.modelling.command.AnnotationCommandTargetResolver;
import org.axonframework.modelling.command.CommandTargetResolver;
import org.axonframework.modelling.command.Repository;
import org.axonframework.modelling.command.VersionedAggregateIdentifier;

/** The two buses, with a handler for the counter's commands, as {@link Settings} says. */
final class Buses {
    private Buses() {}

    /** The bus of that name, with so many commands in flight at most. */
    static CommandBus start(String kind, LastEventStore last, int inFlightMax) {
        EventStore events = Settings.KEEPS_ALL_EVENTS
                ? EmbeddedEventStore.builder().storageEngine(new InMemoryEventStorageEngine()).build()
                : last;
        CommandTargetResolver target = Settings.HAS_ANNOTATED_TARGET
                ? AnnotationCommandTargetResolver.builder().build()
                : command -> new VersionedAggregateIdentifier(((Counter.Command) command.getPayload()).id(), null);
        CommandBus bus;
        Repository<Counter> repository;
        switch (kind) {
            case "simple":
                bus = SimpleCommandBus.builder().build();
                repository = EventSourcingRepository.builder(Counter.class)
                        .eventStore(events)
                        .cache(new StrongCache())
                        .build();
                break;
            case "disruptor":
                DisruptorCommandBus disruptor = disruptor(target, inFlightMax);
                repository = disruptor.createRepository(events, new GenericAggregateFactory<>(Counter.class));
                bus = disruptor;
                break;
            default:
                throw new IllegalArgumentException("bus " + kind + ": expected simple or disruptor");
        }
        if (Settings.HAS_METADATA) {
            bus.registerHandlerInterceptor(new CorrelationDataInterceptor<CommandMessage<?>>(new MessageOriginProvider()));
        }
        subscribe(bus, repository, target);
        return bus;
    }

    private static DisruptorCommandBus disruptor(CommandTargetResolver target, int inFlightMax) {
        DisruptorCommandBus.Builder builder = DisruptorCommandBus.builder()
                .bufferSize(Integer.highestOneBit(inFlightMax) * 2)
                .producerType(Settings.HAS_MANY_PRODUCERS ? ProducerType.MULTI : ProducerType.SINGLE)
                .waitStrategy(waitStrategy())
                .cache(new StrongCache())
                .commandTargetResolver(target);
        if (!Settings.HAS_POOL) {
            builder.executor(Buses::execute);
        }
        return builder.build();
    }

    private static WaitStrategy waitStrategy() {
        switch (Settings.WAIT) {
            case "blocking":
                return new BlockingWaitStrategy();
            case "sleeping":
                return new SleepingWaitStrategy();
            case "spinning":
                return new BusySpinWaitStrategy();
            default:
                return new YieldingWaitStrategy();
        }
    }

    private static void subscribe(CommandBus bus, Repository<Counter> repository, CommandTargetResolver target) {
        if (Settings.HAS_ANNOTATED_HANDLER) {
            AggregateAnnotationCommandHandler.<Counter>builder()
                    .aggregateType(Counter.class)
                    .repository(repository)
                    .commandTargetResolver(target)
                    .build()
                    .subscribe(bus);
            return;
        }
        bus.subscribe(Counter.Create.class.getName(), message -> {
            Counter.Create create = (Counter.Create) message.getPayload();
            repository.newInstance(() -> new Counter(create));
            return null;
        });
        bus.subscribe(Counter.Add.class.getName(), message -> {
            Counter.Add add = (Counter.Add) message.getPayload();
            return repository.load(add.id()).invoke(counter -> counter.handle(add));
        });
    }

    /** Starts the bus's own threads; a result is told by the thread that has it, without waking another. */
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
}
