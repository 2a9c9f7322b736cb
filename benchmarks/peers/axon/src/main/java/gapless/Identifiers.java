package gapless;

import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.axonframework.common.IdentifierFactory;

/** The identifiers of messages: random (Axon's own), random of each thread, time-ordered, or a number. */
public final class Identifiers extends IdentifierFactory {
    private final AtomicLong next = new AtomicLong();

    @Override
    public String generateIdentifier() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        switch (Settings.IDENTIFIERS) {
            case "random":
                // All threads share one source behind one lock.
                return UUID.randomUUID().toString();
            case "random-by-thread":
                return new UUID(random.nextLong(), random.nextLong()).toString();
            case "time-ordered":
                long time = System.currentTimeMillis() << 16 | 0x7000 | random.nextLong() & 0xfff;
                return new UUID(time, random.nextLong() & 0x3fffffffffffffffL | 0x8000000000000000L).toString();
            default:
                return Long.toString(next.getAndIncrement());
        }
    }
}
