//! The smallest useful service: ticket numbers, none given twice. Run it, kill it, run it again.

use gapless::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize, State)]
struct Tickets {
    given: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Take;

#[gapless::service]
impl Tickets {
    #[command]
    fn take(&mut self, _: Take) -> u64 {
        self.given += 1;
        self.given
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Remove the directory to begin at 1 again.
    let host = Host::in_directory("target/smallest").service(Tickets::default()).start()?;
    let number = host.blocking_client()?.call(Take)?;
    println!("Ticket {number} is yours, and in the journal in target/smallest. Run me again for the next.");
    host.stop()?;
    Ok(())
}
