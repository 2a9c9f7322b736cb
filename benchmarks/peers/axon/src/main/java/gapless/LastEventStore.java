package gapless;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.axonframework.common.Registration;
import org.axonframework.eventhandling.DomainEventMessage;
import org.axonframework.eventhandling.EventMessage;
import org.axonframework.eventhandling.TrackingEventStream;
import org.axonframework.eventhandling.TrackingToken;
import org.axonframework.eventsourcing.eventstore.DomainEventStream;
import org.axonframework.eventsourcing.eventstore.EventStore;
import org.axonframework.messaging.MessageDispatchInterceptor;

/** Counts events and keeps the last one of each aggregate, as the store of Axon's own benchmark of its disruptor does. */
final class LastEventStore implements EventStore {
    private final ConcurrentHashMap<String, DomainEventMessage<?>> last = new ConcurrentHashMap<>();
    private volatile long stored;

    long stored() {
        return stored;
    }

    /** Called by one thread: the bus's publisher, or the caller of the simple bus. */
    @Override
    public void publish(List<? extends EventMessage<?>> events) {
        for (EventMessage<?> event : events) {
            DomainEventMessage<?> ofAggregate = (DomainEventMessage<?>) event;
            last.put(ofAggregate.getAggregateIdentifier(), ofAggregate);
        }
        stored = stored + events.size();
    }

    @Override
    public DomainEventStream readEvents(String identifier) {
        DomainEventMessage<?> event = last.get(identifier);
        return event == null ? DomainEventStream.empty() : DomainEventStream.of(event);
    }

    @Override
    public void storeSnapshot(DomainEventMessage<?> snapshot) {
        throw new UnsupportedOperationException("no snapshot is ever due");
    }

    @Override
    public TrackingEventStream openStream(TrackingToken token) {
        throw new UnsupportedOperationException("nobody tracks events");
    }

    @Override
    public Registration subscribe(Consumer<List<? extends EventMessage<?>>> processor) {
        throw new UnsupportedOperationException("nobody listens");
    }

    @Override
    public Registration registerDispatchInterceptor(MessageDispatchInterceptor<? super EventMessage<?>> interceptor) {
        throw new UnsupportedOperationException("nothing intercepts events");
    }
}
