package gapless;

import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.axonframework.common.IdentifierFactory;

/** The identifiers of messages, as the system property "identifiers" says: random (Axon's own), time-ordered, or a number. */
public final class Identifiers extends IdentifierFactory {
    private static final String KIND = System.getProperty("identifiers", "random");
    private final AtomicLong next = new AtomicLong();

    @Override
    public String generateIdentifier() {
        switch (KIND) {
            case "random":
                return UUID.randomUUID().toString();
            case "time-ordered":
                ThreadLocalRandom random = ThreadLocalRandom.current();
                long time = System.currentTimeMillis() << 16 | 0x7000 | random.nextLong() & 0xfff;
                return new UUID(time, random.nextLong() & 0x3fffffffffffffffL | 0x8000000000000000L).toString();
            default:
                return Long.toString(next.getAndIncrement());
        }
    }
}
