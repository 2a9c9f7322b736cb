//! [`Overflow`]: where the requests of a full queue wait, and [`EncodedOverflow`]: the same as bytes.
//!
//! A route without one is `Busy` when a class is full. With one, the request's value goes there and comes back, in order for
//! each class; who waits for the reply stays in memory, about 100 bytes for each. Only types that can be encoded can have one.

use crate::message::Message;
use crate::options::Priority;
use gapless_agent::foreign::caught;

/// Where the requests of a full queue wait. Called by one thread at a time, never under the lock of the queue. It must not panic.
pub trait Overflow<Request>: Send {
    /// Takes a request behind those of its class. It should not wait for a disk.
    ///
    /// # Errors
    /// Which limit was reached, or what failed: the call is `Busy` and says so.
    fn push(&mut self, class: Priority, request: &Request) -> Result<(), String>;

    /// Gives back the oldest of a class, of which there is at least one.
    fn pop(&mut self, class: Priority) -> PoppedRequest<Request>;
}

/// What [`Overflow::pop`] gives.
#[derive(Debug, PartialEq, Eq)]
pub enum PoppedRequest<Request> {
    /// The oldest.
    Request(Request),
    /// It is not in memory yet. When it is, somebody calls [`LocalRoute::refill`](super::LocalRoute::refill).
    NotYet,
    /// It is lost: the call has not begun and ends with this reason. The next pop gives the one behind it.
    Lost(String),
}

/// Queues of bytes, one for each class.
pub trait ByteQueues: Send {
    /// Behind those of its class.
    ///
    /// # Errors
    /// As [`Overflow::push`].
    fn push(&mut self, class: Priority, bytes: &[u8]) -> Result<(), String>;

    /// The oldest of its class into `into`, which is empty; false if it is not in memory yet.
    ///
    /// # Errors
    /// The oldest is lost, and why.
    fn pop(&mut self, class: Priority, into: &mut Vec<u8>) -> Result<bool, String>;
}

/// An overflow of requests that can be encoded.
#[derive(Debug)]
pub struct EncodedOverflow<Queues> {
    queues: Queues,
    /// Reused, so that a request costs no allocation here.
    bytes: Vec<u8>,
}

/// What is kept of the buffer between two requests.
const BYTES_KEPT_MAX: usize = 64 << 10;

impl<Queues> EncodedOverflow<Queues> {
    /// Over these queues.
    #[must_use]
    pub const fn new(queues: Queues) -> Self {
        Self { queues, bytes: Vec::new() }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT_MAX);
    }
}

impl<Request: Message, Queues: ByteQueues> Overflow<Request> for EncodedOverflow<Queues> {
    fn push(&mut self, class: Priority, request: &Request) -> Result<(), String> {
        self.clear();
        caught(|| request.encode(&mut self.bytes))?.map_err(|error| error.to_string())?;
        self.queues.push(class, &self.bytes)
    }

    fn pop(&mut self, class: Priority) -> PoppedRequest<Request> {
        self.clear();
        match self.queues.pop(class, &mut self.bytes) {
            // Caught, because its bytes are gone: who waits for it goes, too.
            Ok(true) => match caught(|| Request::decode(&self.bytes)) {
                Ok(Ok(request)) => PoppedRequest::Request(request),
                Ok(Err(error)) => PoppedRequest::Lost(error.to_string()),
                Err(panic) => PoppedRequest::Lost(panic),
            },
            Ok(false) => PoppedRequest::NotYet,
            Err(reason) => PoppedRequest::Lost(reason),
        }
    }
}
