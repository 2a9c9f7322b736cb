//! The service: seats are held for a while, and bought.

use gapless::prelude::*;
use gapless::state::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const SEATS: u32 = 2_000;
const HOLD_NS: u64 = 60_000_000_000;

#[derive(Default, Serialize, Deserialize, State)]
pub struct Hall {
    seats: BTreeMap<u32, Seat>,
}

#[derive(Serialize, Deserialize, State)]
enum Seat {
    Held { buyer: String },
    Sold { buyer: String, ticket: u64 },
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Held, refusal = Refused)]
pub struct Hold {
    pub seat: u32,
    pub buyer: String,
}

#[derive(Serialize, Deserialize, Message)]
pub struct Held {
    /// Nanoseconds since the epoch.
    pub until_ns: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Ticket, refusal = Refused)]
pub struct Buy {
    pub seat: u32,
    pub buyer: String,
}

#[derive(Serialize, Deserialize, Message)]
pub struct Ticket {
    pub ticket: u64,
}

#[derive(Debug, Serialize, Deserialize, Message)]
pub enum Refused {
    NoSuchSeat,
    Taken,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Seats)]
pub struct CountSeats;

#[derive(Serialize, Deserialize, Message)]
pub struct Seats {
    pub free: u32,
    pub held: u32,
    pub sold: u32,
}

#[derive(Serialize, Deserialize, Message)]
struct HoldEnds {
    seat: u32,
}

#[gapless::service]
impl Hall {
    #[command]
    fn hold(&mut self, Hold { seat, buyer }: Hold, context: &mut Context<'_>) -> Result<Held, Refused> {
        self.check(seat, &buyer)?;
        let until_ns = context.time_ns() + HOLD_NS;
        context.set_timer(&HoldEnds { seat }, until_ns);
        self.seats.insert(seat, Seat::Held { buyer });
        Ok(Held { until_ns })
    }

    #[command]
    fn buy(&mut self, Buy { seat, buyer }: Buy, context: &mut Context<'_>) -> Result<Ticket, Refused> {
        self.check(seat, &buyer)?;
        context.cancel_timer(&HoldEnds { seat });
        // Unique, and the same at every replay.
        let ticket = context.sequence();
        self.seats.insert(seat, Seat::Sold { buyer, ticket });
        Ok(Ticket { ticket })
    }

    #[timer]
    fn end_hold(&mut self, HoldEnds { seat }: HoldEnds) {
        self.seats.remove(&seat);
    }

    #[query]
    fn count(&self, _: CountSeats) -> Seats {
        let sold = self.seats.values().filter(|seat| matches!(seat, Seat::Sold { .. })).count() as u32;
        let held = self.seats.len() as u32 - sold;
        Seats { free: SEATS - sold - held, held, sold }
    }
}

impl Hall {
    fn check(&self, seat: u32, asking: &str) -> Result<(), Refused> {
        match self.seats.get(&seat) {
            _ if !(1..=SEATS).contains(&seat) => Err(Refused::NoSuchSeat),
            None => Ok(()),
            Some(Seat::Held { buyer }) if buyer == asking => Ok(()),
            Some(_) => Err(Refused::Taken),
        }
    }
}
