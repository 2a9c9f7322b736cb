//! The two ends of a system under test: a caller in the benchmark's process, and a server in another one. Brokers
//! implement these traits here, Gapless next to the benchmark.

use crate::peers::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Timeout of a reply, and of the next message of a stream.
pub const REPLY_TIME_MAX: Duration = Duration::from_secs(10);
/// Interval at which a waiting end checks whether it has to stop.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waiting of both ends for messages. Spinning on a socket, each poll is a system call that yields the CPU to a process
/// that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Asleep in the kernel
    Blocking,
    /// Looking again and again, client and server each on a core of its own
    Spinning,
}

/// The calling end: one connected caller, used by one thread. Calls in flight have tickets, which identify their
/// replies in any order.
pub trait PeerCaller: Send {
    /// Begins a call. It may be sent together with later ones, at the latest when [`PeerCaller::receive`] waits.
    ///
    /// # Errors
    /// A connection that has ended; a system that accepts no more calls.
    fn begin(&mut self, ticket: u64, request: &[u8]) -> Result<()>;

    /// Waits for at least one reply, and passes all that have arrived to `take`, with their tickets.
    ///
    /// # Errors
    /// A connection that has ended, an outcome without a reply, a timeout after [`REPLY_TIME_MAX`].
    fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> Result<()>;

    /// Sends a message without an answer. It may be sent together with later ones, at the latest by [`PeerCaller::flush`].
    ///
    /// # Errors
    /// A connection that has ended; a system that accepts nothing for [`REPLY_TIME_MAX`].
    fn send(&mut self, message: &[u8]) -> Result<()>;

    /// Sends everything that was begun or sent.
    ///
    /// # Errors
    /// A connection that has ended.
    fn flush(&mut self) -> Result<()>;
}

/// Work of a server's worker.
pub trait PeerHandler: Send {
    /// Answers a call, by appending to the empty `reply`.
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>);

    /// Answers a call that a server which is gone had received before.
    fn call_again(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        self.call(request, reply);
    }

    /// Takes a message without an answer.
    fn receive(&mut self, message: &[u8]);
}

/// The serving end: one worker.
pub trait PeerServer: Send {
    /// Serves until `stop` is set, which it notices within about [`POLL_INTERVAL`]. May be called again afterwards;
    /// messages in between are not lost.
    ///
    /// # Errors
    /// A connection that has ended, a violation of the protocol.
    fn serve(&mut self, handler: &mut dyn PeerHandler, stop: &AtomicBool) -> Result<()>;
}

/// Adds one to each byte: the measured work.
pub fn increment(request: &[u8], reply: &mut Vec<u8>) {
    reply.extend(request.iter().map(|byte| byte.wrapping_add(1)));
}
