package gapless;

import org.axonframework.commandhandling.CommandHandler;
import org.axonframework.eventsourcing.EventSourcingHandler;
import org.axonframework.modelling.command.AggregateIdentifier;
import org.axonframework.modelling.command.AggregateLifecycle;

/** Adds up what its commands say, as the counter of `gapless bench commands`. */
public class Counter {
    /** A command says whose it is: the annotation that Axon has for this is looked for by reflection at each command. */
    public interface Command {
        String id();
    }

    public record Create(String id) implements Command {}

    public record Add(String id, long amount, String note) implements Command {}

    public record Created(String id) {}

    public record Added(String id, long amount, String note) {}

    @AggregateIdentifier
    private String id;
    private long sum;

    public Counter() {}

    @CommandHandler
    public Counter(Create command) {
        AggregateLifecycle.apply(new Created(command.id()));
    }

    @CommandHandler
    public long handle(Add command) {
        AggregateLifecycle.apply(new Added(command.id(), command.amount(), command.note()));
        return sum;
    }

    @EventSourcingHandler
    public void on(Created event) {
        id = event.id();
    }

    @EventSourcingHandler
    public void on(Added event) {
        sum += event.amount();
    }
}
