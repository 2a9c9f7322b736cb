//! A floor under a supervisor: a sequencer, three order entries, a matching service in two copies, and accounts on a cluster of three,
//! all in one file. Nobody of them knows of the supervisor; each may be killed at any time, and so may it.
//!
//! ```sh
//! cargo build --release --examples --bins
//! export PATH=$PWD/target/release:$PWD/target/release/examples:$PATH
//! cp -r crates/gapless/examples/trading_floor /tmp/floor; cd /tmp/floor
//! gapless cluster new accounts
//! gapless up floor.toml
//! gapless ps
//! ```
//!
//! | module | what lives there |
//! |---|---|
//! | `main` | which process this is |
//! | `entry` | an order entry: sends orders, and looks that each is filled once |
//! | `matching` | a copy of the matching service |
//! | `messages` | what they say to each other in the stream |
//!
//! `floor.toml` is the supervisor's file, `stream.toml` the stream's. The cluster's members are the example `clustered`.

#![forbid(unsafe_code)]

mod entry;
mod matching;
mod messages;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whatever went wrong, for a person.
type Failure = Box<dyn std::error::Error>;

/// The stream's file, where the supervisor runs us.
const STREAM_FILE: &str = "stream.toml";

fn main() -> Result<(), Failure> {
    let stop = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&stop);
    // SIGTERM, as the supervisor stops us, and Ctrl-C. Relaxed: a flag on its own.
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    let is_over = || stop.load(Ordering::Relaxed);
    match std::env::args().nth(1).as_deref() {
        Some("entry") => entry::run(copy_number(), is_over),
        Some("matching") => matching::run(copy_number(), is_over),
        _ => Err("`trading_floor entry` or `trading_floor matching` is expected".into()),
    }
}

/// Which copy of its process this is, from 1: the supervisor says `entry.2`.
fn copy_number() -> u64 {
    let copy = std::env::var("GAPLESS_COPY").unwrap_or_default();
    copy.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(1)
}
