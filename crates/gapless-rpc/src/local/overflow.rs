//! [`Overflow`]: storage for requests beyond a queue's limit, and [`EncodedOverflow`]: the same as bytes.
//!
//! Without an overflow, a route is `Busy` when a class is full. With one, the request's value goes there and comes
//! back, in order within each class; the caller's part stays in memory, about 100 bytes each. Only types that can be
//! encoded can overflow to bytes.

use crate::message::Message;
use crate::options::Priority;
use gapless_agent::foreign::catch_panic;

/// Storage for requests beyond a queue's limit. Called by one thread at a time, never under the lock of the queue. Must
/// not panic.
pub trait Overflow<Request>: Send {
    /// Appends a request to its class. Should not wait for a disk.
    ///
    /// # Errors
    /// The limit that was reached, or the failure: the call ends as `Busy` with this reason.
    fn push(&mut self, class: Priority, request: &Request) -> Result<(), String>;

    /// Takes the oldest request of a class. The class has at least one.
    fn pop(&mut self, class: Priority) -> PoppedRequest<Request>;
}

#[derive(Debug, PartialEq, Eq)]
pub enum PoppedRequest<Request> {
    Request(Request),
    /// Not in memory yet. The overflow calls [`LocalRoute::refill`](super::LocalRoute::refill) when it is.
    NotYet,
    /// Lost: the call has not begun and ends with this reason. The next pop returns the following request.
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
    /// Encoding buffer, reused to avoid an allocation per request.
    bytes: Vec<u8>,
}

/// Buffer capacity that is kept between two requests, bytes.
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
            // A panic is caught, because the bytes are gone: the waiting call must end too.
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
