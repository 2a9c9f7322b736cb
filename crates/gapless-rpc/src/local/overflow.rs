//! [`Overflow`]: storage for requests beyond a queue's limit, in order within each class; the caller's part stays in
//! memory, about 100 bytes each. [`EncodedOverflow`]: the same as bytes.

use crate::message::Message;
use crate::options::Priority;
use gapless_agent::foreign::catch_panic;

/// Called by one thread at a time, never under the lock of the queue. Must not panic.
pub trait Overflow<Request>: Send {
    /// Appends a request to its class; should not wait for a disk.
    ///
    /// # Errors
    /// The limit or failure: the call ends as `Busy` with this reason.
    fn push(&mut self, class: Priority, request: &Request) -> Result<(), String>;

    /// Takes the oldest request of a class that has at least one.
    fn pop(&mut self, class: Priority) -> PoppedRequest<Request>;
}

#[derive(Debug, PartialEq, Eq)]
pub enum PoppedRequest<Request> {
    Request(Request),
    /// Not in memory yet; the overflow calls [`LocalRoute::refill`](super::LocalRoute::refill) when it is.
    NotYet,
    /// The call ends with this reason, not begun. The next pop returns the following request.
    Lost(String),
}

/// Byte queues, one for each class.
pub trait ByteQueues: Send {
    /// Appends to a class.
    ///
    /// # Errors
    /// Like [`Overflow::push`].
    fn push(&mut self, class: Priority, bytes: &[u8]) -> Result<(), String>;

    /// Takes the oldest entry of a class into `into`, which is empty; false if it is not in memory yet.
    ///
    /// # Errors
    /// The oldest entry is lost, with the reason.
    fn pop(&mut self, class: Priority, into: &mut Vec<u8>) -> Result<bool, String>;
}

/// An overflow of requests that can be encoded.
#[derive(Debug)]
pub struct EncodedOverflow<Queues> {
    queues: Queues,
    bytes: Vec<u8>,
}

const BYTES_KEPT_MAX: usize = 64 << 10;

impl<Queues> EncodedOverflow<Queues> {
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
        catch_panic(|| request.encode(&mut self.bytes))?.map_err(|error| error.to_string())?;
        self.queues.push(class, &self.bytes)
    }

    fn pop(&mut self, class: Priority) -> PoppedRequest<Request> {
        self.clear();
        match self.queues.pop(class, &mut self.bytes) {
            // The bytes are gone: after a panic the waiting call must end too.
            Ok(true) => match catch_panic(|| Request::decode(&self.bytes)) {
                Ok(Ok(request)) => PoppedRequest::Request(request),
                Ok(Err(error)) => PoppedRequest::Lost(error.to_string()),
                Err(panic) => PoppedRequest::Lost(panic),
            },
            Ok(false) => PoppedRequest::NotYet,
            Err(reason) => PoppedRequest::Lost(reason),
        }
    }
}
