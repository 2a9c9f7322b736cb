//! A floor under a supervisor: a sequencer, three order entries, a matching service in two instances, and accounts on a
//! cluster of three, all in one file. None of them knows of the supervisor; each may be killed at any time, and so may
//! the supervisor.
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
//! `floor.toml` is the supervisor's file, `stream.toml` the stream's. The cluster's members are the example
//! `clustered`.

#![forbid(unsafe_code)]

mod entry;
mod matching;
mod messages;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Failure = Box<dyn std::error::Error>;

const STREAM_FILE: &str = "stream.toml";

fn main() -> Result<(), Failure> {
    let stop = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    let is_over = || stop.load(Ordering::Relaxed);
    match std::env::args().nth(1).as_deref() {
        Some("entry") => entry::run(instance_number(), is_over),
        Some("matching") => matching::run(instance_number(), is_over),
        _ => Err("`trading_floor entry` or `trading_floor matching` is expected".into()),
    }
}

/// The supervisor sets `entry.2`.
fn instance_number() -> u64 {
    let instance = std::env::var("GAPLESS_INSTANCE").unwrap_or_default();
    instance.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(1)
}
