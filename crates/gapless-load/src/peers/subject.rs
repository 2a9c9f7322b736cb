//! The two ends of a system under test, as a benchmark of calls sees them: a caller in the benchmark's process, and a
//! server in another. A broker and its clients implement them here, Gapless does where the benchmark is.

use crate::peers::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A reply, or the next message of a stream, comes within this time, or it is lost.
pub const REPLY_TIME_MAX: Duration = Duration::from_secs(10);
/// An end that waits looks this often whether it is to stop.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The way in which both ends wait for messages. Spinning over sockets, each look is a system call that gives the CPU away to
/// a process that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Asleep in the kernel
    Blocking,
    /// Looking again and again, client and server each on a core of its own
    Spinning,
}

/// The calling end: one connected caller, used by one thread. The payloads of all calls of one time have tickets, by which
/// their replies are known in whatever order they come.
pub trait Caller: Send {
    /// Begins a call. It may leave with the next ones, but not later than [`Caller::receive`] waits.
    ///
    /// # Errors
    /// A connection that has ended; a system that takes no more.
    fn begin(&mut self, ticket: u64, request: &[u8]) -> Result<()>;

    /// Waits until at least one reply is there, and gives all that have come with it to `take`, with their tickets.
    ///
    /// # Errors
    /// A connection that has ended, an outcome that is no reply, silence for [`REPLY_TIME_MAX`].
    fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> Result<()>;

    /// Sends a message that nobody answers. It may leave with the next ones, but not later than at [`Caller::flush`].
    ///
    /// # Errors
    /// A connection that has ended; a system that takes no more for [`REPLY_TIME_MAX`].
    fn send(&mut self, message: &[u8]) -> Result<()>;

    /// Lets everything leave that was begun or sent.
    ///
    /// # Errors
    /// A connection that has ended.
    fn flush(&mut self) -> Result<()>;
}

/// The work of a server, for one worker.
pub trait Handler: Send {
    /// Answers a call: writes into `reply`, which is empty.
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>);

    /// Answers a call that a server which is gone had before.
    fn call_again(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        self.call(request, reply);
    }

    /// Takes a message that nobody answers.
    fn receive(&mut self, message: &[u8]);
}

/// The serving end: one worker.
pub trait Server: Send {
    /// Serves until `stop` is set, and sees that within about [`LOOK_INTERVAL`]. May be called again afterwards: nothing
    /// that comes between is lost.
    ///
    /// # Errors
    /// A connection that has ended, bytes that are not those of the protocol.
    fn serve(&mut self, handler: &mut dyn Handler, stop: &AtomicBool) -> Result<()>;
}

/// Adds one to each byte: the work that is measured.
pub fn increment(request: &[u8], reply: &mut Vec<u8>) {
    reply.extend(request.iter().map(|byte| byte.wrapping_add(1)));
}
