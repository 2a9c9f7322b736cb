//! The benchmark's processes, seen from inside: the sequencer, and each node.
//!
//! | module | what it does |
//! |---|---|
//! | this | reads what the process is to do, and talks with the one that started it |
//! | `serve` | runs the event stream |
//! | `node` | connects a node |
//! | `round_trips` | one message in flight, timed |
//! | `push` | publishes as fast as it can, or at a rate, and reads what everybody publishes |
//! | `rewind` | reads from the first frame until it is live |
//! | `counted` | what a link has counted |
//!
//! The benchmark starts this very program with a hidden subcommand; the work goes over as JSON in an argument, what is
//! said later as lines of JSON on standard input, and answers come back as lines of JSON on standard output. When
//! standard input ends, the benchmark has gone, and so does the process.

mod counted;
mod node;
mod push;
mod rewind;
mod round_trips;
mod serve;

use super::failed;
use super::order::Order;
use crate::{BenchError, Result};
use gapless_report::affinity::pin_current_thread;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// The hidden subcommand of `gapless bench`.
pub const SUBCOMMAND: &str = "sequencer-process";

/// A node that waits for a message so long has lost one.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process of the benchmark: does what `order` says.
///
/// # Errors
/// A malformed order, a stream that cannot be run or reached, messages that do not come.
pub fn main(order: &str) -> Result<()> {
    match serde_json::from_str(order)? {
        Order::Sequencer(order) => serve::run(&order),
        Order::Node(order) => {
            // Before the thread below starts, which must not be pinned with this one, and is asleep all the time.
            let parent = Parent::listen()?;
            if let Some(cpu) = order.cpu {
                pin_current_thread(&[cpu])?;
            }
            node::run(&order, &parent)
        }
    }
}

/// One line of JSON for the process that started this one.
fn answer(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|source| BenchError::system("answer the benchmark", source))
}

/// The process that started this one. Listening takes a thread that sleeps, so that who spins need not look.
struct Parent(Receiver<String>);

impl Parent {
    fn listen() -> Result<Self> {
        let (sender, receiver) = channel();
        let listen = move || {
            for line in std::io::stdin().lock().lines() {
                if line.is_ok_and(|line| sender.send(line).is_ok()) {
                    continue;
                }
                break;
            }
            // Nobody waits for this process any more, and it keeps nothing that would have to be put away.
            std::process::exit(1);
        };
        std::thread::Builder::new()
            .name("listen".to_owned())
            .spawn(listen)
            .map_err(|source| BenchError::system("start a thread", source))?;
        Ok(Self(receiver))
    }

    /// Waits for what it says next.
    fn hear<T: DeserializeOwned>(&self) -> Result<T> {
        let line = self.0.recv().map_err(|_| failed("the benchmark has gone"))?;
        Ok(serde_json::from_str(&line)?)
    }

    /// What it has said meanwhile, if anything.
    fn has_said<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        match self.0.try_recv() {
            Ok(line) => Ok(Some(serde_json::from_str(&line)?)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(failed("the benchmark has gone")),
        }
    }
}
