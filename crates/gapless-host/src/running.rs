//! [`Running`]: a running host.

use crate::HostError;
use crate::life::Life;
use crate::node::NodeQuery;
#[cfg(feature = "cqrs")]
use crate::program::Aggregates;
use crate::program::Services;
use crate::started::{Connection, Started};
use crate::status::Status;
#[cfg(feature = "cluster")]
use crate::watcher::Watcher;
use gapless_agent::Counter;
use gapless_client::polled::MessageType;
use gapless_client::shared::CallOptions;
use gapless_client::{Client, ClientError, ClientOptions, PolledClient, QueryError, blocking};
#[cfg(feature = "cqrs")]
use gapless_cqrs::{
    BusOptions, CommandBus, CommandCounters, DeletionError, DeletionReport, EventFilter, EventReader, FoundEvents,
    Position,
};
use gapless_message::{Request, contract};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "cluster")]
use std::time::Instant;

/// A running host. Its clones are handles of the same host, also for other threads; it ends with the last one, or at
/// once by [`Running::stop`].
///
/// A drop of the last handle stops as [`Running::stop`] does, but its errors are only logged.
pub struct Running<K = Services> {
    host: Arc<RunningHost>,
    program: PhantomData<fn() -> K>,
}

impl<K> Clone for Running<K> {
    fn clone(&self) -> Self {
        Self { host: Arc::clone(&self.host), program: PhantomData }
    }
}

struct RunningHost {
    life: Arc<Life>,
    place: String,
    has_manual_time: bool,
    #[cfg(feature = "cluster")]
    watcher: Option<Watcher>,
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        self.life.ask_stop();
        #[cfg(feature = "cluster")]
        if let Some(watcher) = &mut self.watcher {
            watcher.join();
        }
        self.life.end();
    }
}

#[cfg(feature = "cluster")]
const LEADER_LOOK_INTERVAL: Duration = Duration::from_millis(5);

impl<K> Running<K> {
    pub(crate) fn new(started: Started, place: String, has_manual_time: bool) -> Self {
        let host = RunningHost {
            life: Arc::new(Life::new(started, false)),
            place,
            has_manual_time,
            #[cfg(feature = "cluster")]
            watcher: None,
        };
        Self { host: Arc::new(host), program: PhantomData }
    }

    #[cfg(feature = "cluster")]
    pub(crate) fn watched(
        started: Started,
        place: String,
        start_again: crate::watcher::StartAgain,
    ) -> Result<Self, HostError> {
        let life = Arc::new(Life::new(started, true));
        let watcher = Some(Watcher::start(Arc::clone(&life), start_again)?);
        let host = RunningHost { life, place, has_manual_time: false, watcher };
        Ok(Self { host: Arc::new(host), program: PhantomData })
    }

    /// Connects a client for tasks and threads, with one session. One with other options is made over a polled client:
    /// [`Client::over`].
    ///
    /// # Errors
    /// As for [`Running::polled_client`].
    pub fn client(&self) -> Result<Client, HostError> {
        Ok(Client::over(self.polled_client(ClientOptions::default())?, CallOptions::default())?)
    }

    /// Connects a client whose calls block.
    ///
    /// # Errors
    /// As for [`Running::polled_client`].
    pub fn blocking_client(&self) -> Result<blocking::Client, HostError> {
        self.client().map(Into::into)
    }

    /// Connects a client for hot loops, which its owner polls: to a stream of its own within this process, on a member
    /// to the leader, which it follows.
    ///
    /// A member waits for a leader, at most `options.timeout`. It knows the addresses of the members that have been
    /// connected to it since its start, and the client those known now.
    ///
    /// # Errors
    /// [`HostError::Client`] if there is too little memory, or no member accepts; [`HostError::Stopped`] and
    /// [`HostError::Ended`] after the end; [`HostError::Refused`] on a node, and on a witness that no member was connected
    /// to.
    pub fn polled_client(&self, options: ClientOptions) -> Result<PolledClient, HostError> {
        match self.connection(&options)? {
            Connection::Own(client) => Ok(*client),
            #[cfg(feature = "cluster")]
            Connection::Members(addresses) => Ok(PolledClient::connect_any(&addresses.all, options)?),
            Connection::None => Err(self.refused("polled_client", "a node takes no commands; publish to its stream")),
        }
    }

    #[cfg(not(feature = "cluster"))]
    fn connection(&self, options: &ClientOptions) -> Result<Connection, HostError> {
        self.with(|started| started.connection(options))?
    }

    /// Waits for a leader. Returns at least one address.
    #[cfg(feature = "cluster")]
    fn connection(&self, options: &ClientOptions) -> Result<Connection, HostError> {
        let deadline = Instant::now() + options.timeout;
        loop {
            match self.with(|started| started.connection(options)) {
                Ok(Ok(Connection::Members(addresses))) => {
                    let is_late = Instant::now() >= deadline;
                    if is_late && addresses.all.is_empty() {
                        let reason = "no member that serves clients has been connected yet; ask another member";
                        return Err(self.refused("polled_client", reason));
                    }
                    if is_late || addresses.is_complete && !addresses.all.is_empty() {
                        return Ok(Connection::Members(addresses));
                    }
                }
                Ok(other) => return other,
                Err(HostError::Starting) if Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(LEADER_LOOK_INTERVAL);
        }
    }

    /// Asks the service of a node, which no client can reach. It answers between two polls, after the last handled frame:
    /// within 20 ms if the node is idle, later by its handlers for at most 256 frames, by 64 other queries, and by the
    /// encoding of a snapshot.
    ///
    /// # Errors
    /// As for the query of a client; [`QueryError::Unavailable`] after the end, and elsewhere, where clients ask.
    pub fn query<Q: Request>(&self, query: &Q) -> Result<Q::Reply, QueryError<Q::Refusal>> {
        let mut payload = Vec::new();
        contract::encode_request(query, &mut payload).map_err(|error| ClientError::Encode(error.to_string()))?;
        let query = NodeQuery { message: MessageType::typed::<Q>(), payload };
        let unavailable = |reason: String| QueryError::Unavailable { reason };
        let answered = self.with(|started| started.query(query)).map_err(|error| unavailable(error.to_string()))?;
        let clients = || self.refused("query", "its clients ask it: take Running::client").to_string();
        let answer = answered.ok_or_else(|| unavailable(clients()))?.map_err(QueryError::with_refusal)?;
        match contract::decode_answer::<Q>(&answer) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(refusal)) => Err(QueryError::Refused(refusal)),
            Err(error) => Err(QueryError::Failed { reason: error.to_string() }),
        }
    }

    /// Adds a counter of the application, which `gapless counters` shows with those of the host.
    ///
    /// # Errors
    /// [`HostError::Engine`] for a name that is taken, or without room; [`HostError::Refused`] on a node; the host has
    /// ended.
    pub fn add_counter(&self, name: &str) -> Result<Counter, HostError> {
        let added = self.with(|started| started.add_counter(name))?;
        added.ok_or_else(|| self.refused("add_counter", "a node has no counters"))?
    }

    /// Phase, role and sequences; never waits for the host.
    #[must_use]
    pub fn status(&self) -> Status {
        self.host.life.status()
    }

    /// Takes a snapshot of everything handled so far; returns its sequence once it is on the device. Commands go on
    /// meanwhile, an end waits.
    ///
    /// # Errors
    /// [`HostError::Engine`] in memory, or if it cannot be written; [`HostError::Refused`] with the reason of a member:
    /// a witness, a member with aggregates, another snapshot in progress; of a node; the host has ended.
    pub fn snapshot(&self) -> Result<u64, HostError> {
        let taken = self.with(Started::snapshot)??;
        taken.map_err(|reason| self.refused("snapshot", &reason))
    }

    /// Advances the stream's time by `by` from its last frame; for tests of timers, with
    /// [`Host::manual_time`](crate::Host::manual_time). Returns the time, ns since the epoch.
    ///
    /// Each timer due until then fires at its own time, in order, also timers set by other timers. When this returns
    /// they are handled, and their outputs are on their way.
    ///
    /// # Errors
    /// [`HostError::Refused`] without manual time; the host has ended.
    pub fn advance(&self, by: Duration) -> Result<u64, HostError> {
        let no_time = || self.refused("advance", "its time is a clock's; a host with Host::manual_time can be moved");
        if !self.host.has_manual_time {
            return Err(no_time());
        }
        self.with(|started| started.advance(by))?.map_err(|error| error.unwrap_or_else(no_time))
    }

    /// Switches the service to another of its versions, at a mark that is appended soon; on a cluster the leader does.
    /// Afterwards programs without that version cannot start here.
    ///
    /// # Errors
    /// [`HostError::Engine`] if the service does not have the version; [`HostError::Refused`] with the reason of a
    /// member, for instance because it does not lead; the host has ended.
    pub fn begin_version(&self, version: u32) -> Result<(), HostError> {
        let begun = self.with(|started| started.begin_version(version))??;
        begun.map_err(|reason| self.refused("begin_version", &reason))
    }

    /// Sleeps until the host ends: until a handle stops it, or it fails. A member that starts again by itself goes on.
    ///
    /// # Errors
    /// Failure of the host.
    pub fn wait(&self) -> Result<(), HostError> {
        self.host.life.wait()
    }

    /// Handles the accepted commands, writes a final snapshot unless configured otherwise, and ends; a leader hands over
    /// first, and a node waits up to 2 s for its messages to be in the stream. Returns the last sequence. For handles of a stopped host it returns the same.
    ///
    /// # Errors
    /// [`HostError::Ended`]: the host failed, before or during the stop.
    pub fn stop(&self) -> Result<u64, HostError> {
        self.host.life.stop()
    }

    fn with<T>(&self, look: impl FnOnce(&Started) -> T) -> Result<T, HostError> {
        self.host.life.with(look)
    }

    fn refused(&self, call: &'static str, reason: &str) -> HostError {
        HostError::Refused { call, place: self.host.place.clone(), reason: reason.to_owned() }
    }
}

#[cfg(feature = "cqrs")]
const WITNESS: &str = "a witness has no events; ask another member";

#[cfg(feature = "cqrs")]
impl Running<Aggregates> {
    /// A handle of the command bus, which clones share. On a member it follows the leader, as
    /// [`Running::polled_client`] does.
    ///
    /// # Errors
    /// As for [`Running::polled_client`].
    pub fn bus(&self, options: &BusOptions) -> Result<CommandBus, HostError> {
        Ok(CommandBus::over(self.polled_client(ClientOptions::default())?, options)?)
    }

    /// All events from a position on; on a member those released here.
    ///
    /// # Errors
    /// [`HostError::Refused`] on a witness; the host has ended.
    pub fn events(&self, from: Position) -> Result<EventReader, HostError> {
        self.with(|started| started.events(from))?.ok_or_else(|| self.refused("events", WITNESS))
    }

    /// Released events of a filter, with those of every answered command.
    ///
    /// # Errors
    /// As for [`Running::events`].
    pub fn found_events(&self, filter: EventFilter, from: Position) -> Result<FoundEvents, HostError> {
        let found = self.with(|started| started.found_events(filter, from))?;
        found.ok_or_else(|| self.refused("found_events", WITNESS))
    }

    /// Counters of commands decided here.
    ///
    /// # Errors
    /// As for [`Running::events`].
    pub fn command_counters(&self) -> Result<CommandCounters, HostError> {
        self.with(Started::counters)?.ok_or_else(|| self.refused("command_counters", WITNESS))
    }

    /// Deletes the events before a sequence for good, while commands go on. Aggregates keep state and version
    /// ([`CommandHost::delete_events_before`](gapless_cqrs::CommandHost::delete_events_before)).
    ///
    /// # Errors
    /// [`HostError::Refused`] on a member; the host has ended. The inner error says why nothing was deleted.
    pub fn delete_events_before(&self, sequence: u64) -> Result<Result<DeletionReport, DeletionError>, HostError> {
        let deleted = self.with(|started| started.delete_events_before(sequence))?;
        deleted.ok_or_else(|| self.refused("delete_events_before", "the members would no longer have equal journals"))
    }
}
