//! [`Connect`]: making a client from an address.

use super::channel::{Channel, HELPER_NAME, lock};
use super::{CallOptions, Client, address};
use crate::polled::ClientOptions;
use crate::{ClientError, PolledClient};
use gapless_agent::foreign;
use gapless_transport::TransportError;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Builder of a [`Client`]. Await it, or call [`Connect::blocking`].
#[derive(Clone, Debug)]
#[must_use = "await it, or call `blocking`"]
pub struct Connect {
    address: String,
    calls: CallOptions,
    connection: ClientOptions,
}

impl Connect {
    pub(super) fn to(address: &str) -> Self {
        Self { address: address.to_owned(), calls: CallOptions::default(), connection: ClientOptions::default() }
    }

    /// Number of sessions, by default 1. Each has up to 64 commands in flight, in order.
    pub const fn sessions(mut self, count: usize) -> Self {
        self.calls.sessions = count;
        self
    }

    /// Limit of each call, and of connecting to members that do not answer; by default 5 s. If no member listens,
    /// connecting fails at once.
    pub const fn within(mut self, limit: Duration) -> Self {
        self.calls.within = limit;
        self.connection.timeout = if limit.as_secs() < FOREVER.as_secs() { limit } else { FOREVER };
        self
    }

    /// Time of polling for a reply before the task sleeps, by default 0.
    pub const fn spin(mut self, time: Duration) -> Self {
        self.calls.spin = time;
        self
    }

    /// Most commands that wait for room, by default 65,536.
    pub const fn waiting_max(mut self, commands: usize) -> Self {
        self.calls.waiting_max = commands;
        self
    }

    /// Replaces the options of the connection: ring sizes, stream, credentials, and the limit of connecting.
    pub fn connection(mut self, options: ClientOptions) -> Self {
        self.connection = options;
        self
    }

    /// Connects on this thread.
    pub(super) fn open(self) -> Result<Arc<Channel>, ClientError> {
        let options = self.checked_options()?;
        Ok(Arc::new(Channel::new(self.polled()?, options)?))
    }

    pub(super) fn checked_options(&self) -> Result<CallOptions, ClientError> {
        self.calls.check().map(|()| self.calls.clone())
    }

    pub(super) const fn connecting_within(&self) -> Duration {
        self.connection.timeout
    }

    pub(super) fn polled(self) -> Result<PolledClient, ClientError> {
        let members = address::parse(&self.address)?;
        PolledClient::connect_any(&members, self.connection)
    }
}

/// A later end of a wait cannot be computed.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl IntoFuture for Connect {
    type Output = Result<Client, ClientError>;
    type IntoFuture = Connecting;

    fn into_future(self) -> Connecting {
        Connecting { connect: Some(self), attempt: Arc::default() }
    }
}

/// Future of a client. Its thread connects, and becomes the client's helper.
///
/// # Panics
/// If polled after it has returned.
#[must_use = "a client connects at the first poll"]
pub struct Connecting {
    /// Taken at the first poll.
    connect: Option<Connect>,
    attempt: Arc<Mutex<Attempt>>,
}

#[derive(Default)]
enum Attempt {
    #[default]
    Begun,
    Awaited(Waker),
    Made(Result<Client, ClientError>),
    /// Taken, or no longer wanted.
    Over,
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("connect", &self.connect).finish_non_exhaustive()
    }
}

impl Future for Connecting {
    type Output = Result<Client, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(connect) = self.connect.take()
            && let Err(error) = spawn(connect, Arc::clone(&self.attempt))
        {
            *lock(&self.attempt) = Attempt::Over;
            return Poll::Ready(Err(error));
        }
        let mut attempt = lock(&self.attempt);
        match std::mem::replace(&mut *attempt, Attempt::Over) {
            Attempt::Made(client) => Poll::Ready(client),
            Attempt::Begun | Attempt::Awaited(_) => {
                *attempt = Attempt::Awaited(context.waker().clone());
                Poll::Pending
            }
            Attempt::Over => panic!("a connection is awaited after its end"),
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        // A client that was made is dropped without the lock.
        let made = std::mem::replace(&mut *lock(&self.attempt), Attempt::Over);
        drop(made);
    }
}

fn spawn(connect: Connect, attempt: Arc<Mutex<Attempt>>) -> Result<(), ClientError> {
    let run = move || {
        foreign::own_this_thread();
        let opened = catch_unwind(AssertUnwindSafe(|| connect.open())).unwrap_or_else(|_| {
            let reason = "connecting has panicked; the log has the reason".to_owned();
            Err(ClientError::Option { option: "address", reason })
        });
        let channel = opened.as_ref().ok().map(Arc::clone);
        if let Some(channel) = &channel {
            channel.claim_helper();
        }
        deliver(&attempt, opened.map(Client::of));
        drop(attempt);
        if let Some(channel) = channel {
            channel.run_helper();
        }
    };
    let spawned = std::thread::Builder::new().name(HELPER_NAME.to_owned()).spawn(run);
    let failed = |source| TransportError::System { action: "starting a thread for a client".to_owned(), source };
    Ok(spawned.map(drop).map_err(failed)?)
}

fn deliver(attempt: &Mutex<Attempt>, made: Result<Client, ClientError>) {
    let mut attempt = lock(attempt);
    match std::mem::replace(&mut *attempt, Attempt::Over) {
        Attempt::Over => {
            // Dropping a client closes its channel, and needs no lock of this future.
            drop(attempt);
            drop(made);
        }
        Attempt::Awaited(waker) => {
            *attempt = Attempt::Made(made);
            drop(attempt);
            foreign::wake(waker);
        }
        Attempt::Begun | Attempt::Made(_) => *attempt = Attempt::Made(made),
    }
}
