//! [`Client`]: commands from any number of tasks and threads over one connection.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`Client`], [`CallOptions`] |
//! | [`blocking`] | [`blocking::Client`]: the same for threads |
//! | `connect` | [`Connect`]: making a client from an address |
//! | `address` | the address of a service as one string |
//! | `call`, `query` | [`Call`], [`Query`]: the futures of one command and of one query |
//! | `notice`, `notices` | [`Notice`], [`Notices`]: messages that no command asked for, and their stream |
//! | `ended` | [`Ended`]: the future of a client's end |
//! | `untyped_call` | `UntypedCall`: the same without the types of the request |
//! | `blocked` | blocking calls |
//! | `watcher` | one thread that takes replies while no caller does, and that reconnects |
//! | `channel` | `Channel`: the state that clones share |
//! | `keeper` | heartbeats of a client without a helper |
//! | `watch` | the watcher's state |
//! | `blocked_threads` | threads in blocking calls that sleep |
//! | `query_lane` | queries on their way |
//! | `questions` | questions for the outcomes of earlier commands |
//! | `subscribers` | bounded queues of the streams of notices |
//! | `end_news` | the end of a client, and the tasks that wait for it |
//! | `connection` | the polled client, with a session for each lane |
//! | `work_lock` | a lock whose owner also does the work that others announce |
//! | `outbox` | waiting commands, and news of the connection for callers |
//! | `command_queue` | commands that wait for room |
//! | `answer` | typed results of commands |
//! | `mismatch` | the first difference of types, for a request that the service does not handle |
//! | `call_state` | one command on its way |
//! | `waiting_bound` | the bound on commands that are not sent yet |
//! | `durable` | [`DurableClient`]: commands that outlive their process |
//! | `call_error` | [`CallError`]: what became of a command without a reply |

mod address;
mod answer;
mod blocked;
mod blocked_threads;
pub mod blocking;
mod call;
mod call_error;
mod call_state;
mod channel;
mod command_queue;
mod connect;
mod connection;
mod durable;
mod end_news;
mod ended;
mod keeper;
mod mismatch;
mod notice;
mod notices;
mod outbox;
mod query;
mod query_lane;
mod questions;
mod subscribers;
mod untyped_call;
mod waiting_bound;
mod watch;
mod watcher;
mod work_lock;

pub use call::Call;
pub use call_error::CallError;
pub use connect::{Connect, Connecting};
pub use durable::{DurableClient, Kept};
pub use ended::Ended;
pub use notice::{Notice, NoticesLost};
pub use notices::Notices;
pub use query::Query;
pub use subscribers::{NOTICE_BYTES_KEPT_MAX, NOTICES_KEPT_MAX};
pub use waiting_bound::WAITING_BYTES_MAX;

use crate::{ClientError, CommandNumber, PolledClient};
use channel::Channel;
use gapless_message::Request;
use rustc_hash::FxHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// Most sessions of one client.
pub const SESSIONS_MAX: usize = 1024;

/// Options of a [`Client`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOptions {
    /// Sessions, 1 to [`SESSIONS_MAX`]; each has up to 64 commands in flight, in order.
    pub sessions: usize,
    /// Limit of a call, from its sending or queueing on; [`Call::within`] overrides it.
    pub within: Duration,
    /// A call polls for its reply this long before its task or thread sleeps. Sleeping costs microseconds; spinning a
    /// core.
    pub spin: Duration,
    /// Most commands that wait for room in their sessions; further ones end as [`CallError::Busy`]. So do those beyond
    /// [`WAITING_BYTES_MAX`].
    pub waiting_max: usize,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { sessions: 1, within: Duration::from_secs(5), spin: Duration::ZERO, waiting_max: 65_536 }
    }
}

impl CallOptions {
    fn check(&self) -> Result<(), ClientError> {
        let refuse = |option, reason| Err(ClientError::Option { option, reason });
        if !(1..=SESSIONS_MAX).contains(&self.sessions) {
            return refuse("sessions", format!("1 to {SESSIONS_MAX} are allowed, not {}", self.sessions));
        }
        if self.waiting_max == 0 {
            return refuse("waiting_max", "at least 1 is expected: every command waits for a moment".to_owned());
        }
        Ok(())
    }
}

/// A client of a service. Clones share one connection, and may be used by any number of tasks and threads, of any
/// runtime or of none. A thread of its own, `gapless-client`, takes replies while no task does; it ends with the last
/// clone.
///
/// If the service restarts, or another member of its cluster leads, the client reconnects by itself: every command
/// still takes effect at most once, and calls wait within their limits.
///
/// ```no_run
/// use gapless_client::{CallError, Client};
/// use gapless_message::Message;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(reply = u64, refusal = String)]
/// struct Withdraw { account: u64, amount: u64 }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::connect("data/").sessions(4).await?;
/// match client.call(Withdraw { account: 7, amount: 10 }).await {
///     Ok(balance) => println!("{balance} are left"),
///     Err(CallError::Refused(reason)) => println!("{reason}"),
///     Err(other) => println!("{other}; took effect: {:?}", other.took_effect()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    owner: Arc<Owner>,
    /// Pinned session.
    lane: Option<usize>,
}

/// Held by clients and calls; its drop ends the helper.
struct Owner(Arc<Channel>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("lane", &self.lane).field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to a service, with defaults that the returned builder changes. The address is
    ///
    /// - a directory, `data/`: its `node.socket`, or else its `stream.socket`;
    /// - a socket, `data/node.socket`;
    /// - `tcp://HOST:PORT`;
    /// - or several of these, separated by commas, for the members of a cluster: `tcp://a:9200,b:9200`.
    #[must_use = "await it, or call `blocking`"]
    pub fn connect(address: impl AsRef<str>) -> Connect {
        Connect::to(address.as_ref())
    }

    /// A client over a connection that exists already, such as one inside the service's process. Its other sessions are
    /// no longer polled.
    ///
    /// # Errors
    /// An option out of range; the process has no free descriptor.
    pub fn over(polled: PolledClient, options: CallOptions) -> Result<Self, ClientError> {
        Ok(Self::of(Arc::new(Channel::new(polled, options)?)))
    }

    fn of(channel: Arc<Channel>) -> Self {
        channel.start_keeper();
        Self { owner: Arc::new(Owner(channel)), lane: None }
    }

    fn channel(&self) -> &Arc<Channel> {
        &self.owner.0
    }

    /// Sends a command at the first poll of the returned future.
    ///
    /// With one session, commands take effect in the order of their first polls; with several, those of one
    /// [`Client::ordered`] client do.
    pub fn call<R: Request>(&self, request: R) -> Call<R> {
        Call::new(self, &request)
    }

    /// Sends a command now; the returned future waits for the reply. A dropped future takes the command back if it was
    /// not sent yet.
    pub fn start<R: Request>(&self, request: R) -> Call<R> {
        let mut call = Call::new(self, &request);
        call.start();
        call
    }

    /// Asks for the outcome of a command whose call has ended as [`CallError::Unknown`], as often as you like: its
    /// reply, its refusal, or an error as of [`Client::call`]. The service keeps the replies of the last 64 commands of
    /// a session; later the outcome stays [`CallError::Unknown`], as it does if the session is lost. `R` is the type of
    /// the command.
    pub fn outcome<R: Request>(&self, number: CommandNumber) -> Call<R> {
        Call::of_outcome(self, number)
    }

    /// Notices of the service to all sessions of this client, from now on. Without a stream they are discarded. While
    /// there is one, the sessions do not expire, if the service keeps silent ones for two minutes or more.
    pub fn notices(&self) -> Notices {
        Notices::new(self.clone())
    }

    /// Reason of the end of this client: its service does not come back. `None` while it works, or looks for the
    /// service.
    #[must_use]
    pub fn end_reason(&self) -> Option<String> {
        self.channel().outbox.ended.reason().map(str::to_owned)
    }

    /// Waits for the end of this client, and returns its reason: the service in this process has stopped, or the stream
    /// lacks history that this client has seen. Every call ends with an error then; connect a new client. The future
    /// keeps this client connected, as a clone does.
    pub fn ended(&self) -> Ended {
        Ended::new(self.clone())
    }

    /// Asks the service, whose query reads the state and changes nothing. The state contains at least every command of
    /// which this client has seen a reply: it reads its own writes. Another client's command may be missing, if it was
    /// answered a moment ago.
    pub fn query<Q: Request>(&self, query: Q) -> Query<Q> {
        Query::new(self, &query)
    }

    /// A clone whose commands take effect in their order, as do those of all clones with the same key.
    #[must_use]
    pub fn ordered(&self, key: impl Hash) -> Self {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        // The lower bits of this hash are weak.
        let lane = (hasher.finish() >> 32) as usize % self.channel().options.sessions;
        Self { owner: Arc::clone(&self.owner), lane: Some(lane) }
    }

    /// Commands that are not sent yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.channel().outbox.waiting.count()
    }

    /// Last sequence of which this client has seen a reply: what another client passes to [`Query::after`] to read this
    /// one's writes.
    #[must_use]
    pub fn seen_sequence(&self) -> u64 {
        self.channel().outbox.seen_sequence()
    }

    /// Notices that were discarded so far, because there was no stream of [`Client::notices`].
    #[must_use]
    pub fn discarded_notices(&self) -> u64 {
        self.channel().outbox.notices()
    }

    fn next_lane(&self) -> usize {
        self.lane.unwrap_or_else(|| self.channel().next_lane())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests;
