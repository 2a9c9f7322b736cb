//! The two ends of a system under test: a caller in the benchmark's process, and a server in another one.

use crate::peers::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Timeout of a reply, and of the next message of a stream.
pub const REPLY_TIME_MAX: Duration = Duration::from_secs(10);
/// Interval of checks whether to stop.
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

/// Used by one thread. Calls in flight have tickets, which identify their replies in any order.
pub trait PeerCaller: Send {
    /// The call may be sent with later ones, at the latest when [`PeerCaller::receive`] waits.
    ///
    /// # Errors
    /// A connection that has ended; a system that accepts no more calls.
    fn begin(&mut self, ticket: u64, request: &[u8]) -> Result<()>;

    /// Waits for at least one reply, and passes all that have arrived to `take`.
    ///
    /// # Errors
    /// A connection that has ended, an outcome without a reply, a timeout after [`REPLY_TIME_MAX`].
    fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> Result<()>;

    /// A send without an answer, which may be sent with later ones, at the latest by [`PeerCaller::flush`].
    ///
    /// # Errors
    /// A connection that has ended; a system that accepts nothing for [`REPLY_TIME_MAX`].
    fn send(&mut self, message: &[u8]) -> Result<()>;

    fn flush(&mut self) -> Result<()>;
}

pub trait PeerHandler: Send {
    /// Appends to the empty `reply`.
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>);

    /// A server that is gone had received the call before.
    fn call_again(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        self.call(request, reply);
    }

    fn receive(&mut self, message: &[u8]);
}

/// One worker.
pub trait PeerServer: Send {
    /// Notices `stop` within about [`POLL_INTERVAL`]. May be called again; messages in between are not lost.
    ///
    /// # Errors
    /// A connection that has ended, a violation of the protocol.
    fn serve(&mut self, handler: &mut dyn PeerHandler, stop: &AtomicBool) -> Result<()>;
}

pub fn increment(request: &[u8], reply: &mut Vec<u8>) {
    reply.extend(request.iter().map(|byte| byte.wrapping_add(1)));
}
