//! `generated/market.rs` is generated from `market.xml` by `gapless schema generate market.xml --output generated`; a
//! test compares the two. Applications do that in a build script (`docs/guides/message-schemas.md`), but one in this
//! crate would make every user of the library compile the generator.

#![allow(dead_code, reason = "tests use a part of it")]

include!("generated/market.rs");

use gapless::prelude::*;
use gapless::schema::DecodeError;
use gapless::stream;
pub use market::{Accepted, CancelOrder, Cancelled, Closed, Finished, NewOrder, Reason, Rejected, Side, Trade};

/// Bits of a request below the number of its entry node.
const NUMBER_BITS: u32 = 48;

pub const fn request(entry: u64, number: u64) -> u64 {
    entry << NUMBER_BITS | number
}

pub const fn entry_of(request: u64) -> u64 {
    request >> NUMBER_BITS
}

/// Number within its entry node, from 1.
pub const fn number_of(request: u64) -> u64 {
    request & ((1 << NUMBER_BITS) - 1)
}

pub const fn other(side: Side) -> Side {
    match side {
        Side::Buy => Side::Sell,
        _ => Side::Buy,
    }
}

pub fn publish<M: Encode>(node: &mut StreamNode<AnyLink>, message: &M) -> Result<(), super::Failure> {
    node.publish_object(message)?;
    Ok(())
}

#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Accepted(Accepted),
    Rejected(Rejected),
    Cancelled(Cancelled),
    Trade(Trade),
    Closed(Closed),
}

impl Said {
    /// `None` if it is not from the matching service.
    pub fn read(message: &stream::Message<'_>) -> Result<Option<Self>, DecodeError> {
        if message.encoding != Encoding::Sbe || message.schema >> 16 != u32::from(market::SCHEMA_ID) {
            return Ok(None);
        }
        let payload = message.payload;
        Ok(Some(match message.schema as u16 {
            11 => Self::Accepted(<Sbe<Accepted> as Decode>::decode(payload)?),
            12 => Self::Rejected(<Sbe<Rejected> as Decode>::decode(payload)?),
            13 => Self::Cancelled(<Sbe<Cancelled> as Decode>::decode(payload)?),
            14 => Self::Trade(<Sbe<Trade> as Decode>::decode(payload)?),
            15 => Self::Closed(<Sbe<Closed> as Decode>::decode(payload)?),
            _ => return Ok(None),
        }))
    }
}

pub fn money(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100)
}
