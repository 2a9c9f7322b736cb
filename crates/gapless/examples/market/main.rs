//! A small market: three order-entry nodes, one matching service in two copies, a market-data reader and the
//! sequencer, each a process of its own, started by one command and seen in one terminal.
//!
//! | module | what lives there |
//! |---|---|
//! | `main` | which process this is |
//! | `options` | the options |
//! | `floor` | the parent: starts the processes, kills a copy, looks whether everything adds up |
//! | `child` | the parent's hold on one process |
//! | `report` | what a process says to its parent at the end, and the look at all of it |
//! | `lifeline` | a process's hold on its parent: it ends when the parent does |
//! | `stream_file` | the stream's configuration, the same for all; the transport is a line of it |
//! | `messages`, `generated` | what the processes say to each other in the stream, as SBE |
//! | `orders` | what an entry node orders: follows from the seed alone |
//! | `entry` | an order-entry node |
//! | `book` | the order book: price, then time |
//! | `matching` | the matching service |
//! | `copy` | a copy of it as a process |
//! | `depth` | a book made of what the market says, by other means than `book` |
//! | `reader` | the market-data reader |
//! | `fingerprint` | fingerprints of books |
//!
//! An order's walk: `entry` publishes it → the sequencer gives it a place in the order → both copies of `matching` read
//! it there, and publish the same outcome and the same trades → the sequencer recognises the second copy's → every
//! process reads each of them once.

#![forbid(unsafe_code)]

mod book;
mod child;
mod copy;
mod depth;
mod entry;
mod fingerprint;
mod floor;
mod lifeline;
mod matching;
mod messages;
mod options;
mod orders;
mod reader;
mod report;
mod stream_file;

use clap::Parser;
use lifeline::Lifeline;
use options::{Options, Role};
use std::process::ExitCode;

/// Whatever went wrong, for a person.
pub type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match (&options.role, &options.place) {
        (Some(role), Some(place)) => {
            let lifeline = Lifeline::hold();
            let done = match *role {
                Role::Sequencer => stream_file::sequence(place, &lifeline),
                Role::Entry(number) => entry::run(&options, place, number, &lifeline),
                Role::Matching(number) => copy::run(place, number, &lifeline),
                Role::Reader => reader::run(place, &lifeline),
            };
            done.map(|()| ExitCode::SUCCESS)
        }
        _ => floor::run(&options),
    };
    outcome.unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::FAILURE
    })
}
