//! A small market: three order-entry nodes, one matching service in two instances, a market-data reader and the
//! sequencer, each a process of its own, started by one command and seen in one terminal.
//!
//! | module | what lives there |
//! |---|---|
//! | `main` | the choice of the process |
//! | `options` | the options |
//! | `floor` | the parent: starts the processes, kills an instance, checks that everything adds up |
//! | `child` | the parent's side of one process |
//! | `report` | results sent to the parent at the end, and their check |
//! | `lifeline` | a child's side of its parent: it ends when the parent does |
//! | `stream_file` | the stream's configuration, the same for all; the transport is a line of it |
//! | `messages`, `generated` | messages in the stream, as SBE |
//! | `orders` | orders of an entry node, derived from the seed alone |
//! | `entry` | an order-entry node |
//! | `book` | the order book: price, then time |
//! | `matching` | the matching service |
//! | `instance` | an instance of it as a process |
//! | `depth` | a book rebuilt from the market's messages, independent of `book` |
//! | `reader` | the market-data reader |
//! | `fingerprint` | fingerprints of books |
//!
//! Path of an order: `entry` publishes it → the sequencer gives it a place in the order → both instances of `matching`
//! read it there, and publish the same outcome and the same trades → the sequencer drops the duplicates → every process
//! reads each of them once.

#![forbid(unsafe_code)]

mod book;
mod child;
mod depth;
mod entry;
mod fingerprint;
mod floor;
mod instance;
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

/// Error for people.
pub type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match (&options.role, &options.place) {
        (Some(role), Some(place)) => {
            let lifeline = Lifeline::hold();
            let done = match *role {
                Role::Sequencer => stream_file::sequence(place, &lifeline),
                Role::Entry(number) => entry::run(&options, place, number, &lifeline),
                Role::Matching(number) => instance::run(place, number, &lifeline),
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
