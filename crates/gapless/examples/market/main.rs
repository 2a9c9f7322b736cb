//! A small market: three order-entry nodes, one matching service in two instances, a market-data reader and the
//! sequencer, each a process of its own, started by one command and seen in one terminal.
//!
//! Path of an order: `entry` publishes it → the sequencer gives it a place in the order → both instances of `matching`
//! publish the same outcome and trades → the sequencer drops the duplicates → every process reads each once. `depth`
//! rebuilds the book from these messages, independently of `book`.

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
