//! The smallest useful service: ticket numbers, none given twice. Run it, kill it, run it again.

use gapless::prelude::*;

#[derive(Default)]
struct Tickets(u64);

const TAKE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

impl Service for Tickets {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(TAKE.schema, |tickets, _payload, context| {
            tickets.0 += 1;
            context.reply_with(TAKE, &tickets.0.to_le_bytes())
        });
    }
    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }
    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = ServiceHostOptions::in_directory("target/smallest"); // Remove it to begin at 1 again.
    options.persistence.segment_length_bytes = 1 << 20; // A journal of few tickets.
    let host = ServiceHost::start(Tickets::default(), options)?;
    let mut client = host.connect(ClientOptions::default())?;
    let session = client.open_session(random_token(), 1)?;
    let reply = client.call(session, TAKE, b"", Duration::from_secs(5))?;
    let number = u64::from_le_bytes(reply.payload.as_slice().try_into()?);
    println!("Ticket {number} is yours, and in the journal in target/smallest. Run me again for the next.");
    host.stop()?;
    Ok(())
}
