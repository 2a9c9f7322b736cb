//! [`Client`]: the client for threads.

use super::call_error::CallError;
use super::notice::{Notice, NoticesLost};
use super::{Call, CallOptions, Connect};
use crate::error::QueryError;
use crate::{ClientError, CommandNumber, PolledClient};
use gapless_agent::block_on::{block_on, block_on_until};
use gapless_message::Request;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// A client whose calls block. Clones share one connection, also with those of the async [`Client`](super::Client) that
/// it is made from. A calling thread takes the replies itself; after the first [`Client::start`], a helper thread does.
#[derive(Clone, Debug)]
pub struct Client(super::Client);

impl Client {
    /// Connects as [`Client::connect`](super::Client::connect) does; [`Connect::blocking`] takes options.
    ///
    /// # Errors
    /// As [`Connect::blocking`].
    pub fn connect(address: impl AsRef<str>) -> Result<Self, ClientError> {
        Connect::to(address.as_ref()).blocking()
    }

    /// A client over a connection that exists already.
    ///
    /// # Errors
    /// As [`Client::over`](super::Client::over).
    pub fn over(polled: PolledClient, options: CallOptions) -> Result<Self, ClientError> {
        super::Client::over(polled, options).map(Self)
    }

    /// Sends a command, and waits for its reply.
    ///
    /// # Errors
    /// [`CallError`]: the fate of the command.
    pub fn call<R: Request>(&self, request: R) -> Result<R::Reply, CallError<R::Refusal>> {
        self.0.call(request).wait()
    }

    /// Like [`Client::call`], with another limit than that of the options.
    ///
    /// # Errors
    /// [`CallError`]: the fate of the command.
    pub fn call_within<R: Request>(&self, request: R, limit: Duration) -> Result<R::Reply, CallError<R::Refusal>> {
        self.0.call(request).within(limit).wait()
    }

    /// Sends a command now; [`Started::wait`] waits for its reply. Many started commands take one round trip.
    pub fn start<R: Request>(&self, request: R) -> Started<R> {
        Started(self.0.start(request))
    }

    /// Asks for the outcome of a command whose call has ended as [`CallError::Unknown`], as
    /// [`Client::outcome`](super::Client::outcome) does.
    ///
    /// # Errors
    /// [`CallError`]: the fate of the command.
    pub fn outcome<R: Request>(&self, number: CommandNumber) -> Result<R::Reply, CallError<R::Refusal>> {
        self.0.outcome::<R>(number).wait()
    }

    /// Notices of the service to all sessions of this client, from now on. A helper thread receives them.
    pub fn notices(&self) -> Notices {
        Notices(self.0.notices())
    }

    /// Reason of the end of this client, as [`Client::end_reason`](super::Client::end_reason).
    #[must_use]
    pub fn end_reason(&self) -> Option<String> {
        self.0.end_reason()
    }

    /// Asks the service, as [`Client::query`](super::Client::query) does, and waits for the answer.
    ///
    /// # Errors
    /// [`QueryError`] says why there is no answer.
    pub fn query<Q: Request>(&self, query: Q) -> Result<Q::Reply, QueryError<Q::Refusal>> {
        self.0.query(query).wait()
    }

    /// A clone whose commands take effect in their order, as do those of all clones with the same key.
    #[must_use]
    pub fn ordered(&self, key: impl Hash) -> Self {
        Self(self.0.ordered(key))
    }

    /// Async client of the same connection.
    #[must_use]
    pub const fn shared(&self) -> &super::Client {
        &self.0
    }
}

impl Connect {
    /// Connects on this thread.
    ///
    /// # Errors
    /// The address or an option is refused; no service listens there, or it refuses the client; no answer in time.
    pub fn blocking(self) -> Result<Client, ClientError> {
        self.open().map(|channel| super::Client::of(channel).into())
    }
}

impl From<super::Client> for Client {
    fn from(client: super::Client) -> Self {
        Self(client)
    }
}

/// Notices of a service, as [`Notices`](super::Notices). The iterator waits for each, and ends with the client.
#[derive(Debug)]
#[must_use = "notices come from the iterator"]
pub struct Notices(super::Notices);

impl Notices {
    /// Waits for at most `limit`. `None`: no notice has come, or the client has ended ([`Client::end_reason`]).
    pub fn next_within(&mut self, limit: Duration) -> Option<Result<Notice, NoticesLost>> {
        // Centuries are no limit.
        let deadline = Instant::now().checked_add(limit);
        block_on_until(self.0.next(), deadline).flatten()
    }
}

impl Iterator for Notices {
    type Item = Result<Notice, NoticesLost>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(self.0.next())
    }
}

/// A command on its way.
#[derive(Debug)]
#[must_use = "a dropped command that was not sent yet is taken back"]
pub struct Started<R: Request>(Call<R>);

impl<R: Request> Started<R> {
    /// Waits for the reply.
    ///
    /// # Errors
    /// [`CallError`]: the fate of the command.
    pub fn wait(self) -> Result<R::Reply, CallError<R::Refusal>> {
        self.0.wait()
    }
}
