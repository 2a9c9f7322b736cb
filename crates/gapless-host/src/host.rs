//! [`Host`]: place, options and program of a host.

use crate::HostError;
use crate::node::NodeHost;
use crate::options::HostOptions;
#[cfg(feature = "cqrs")]
use crate::options::ProgramKind;
use crate::place::Place;
#[cfg(feature = "cqrs")]
use crate::program::Aggregates;
use crate::program::{FromFunction, FromInitial, OfState, Services};
use crate::running::Running;
use crate::started::Started;
use gapless_client::{ClientError, StreamConfig};
#[cfg(feature = "cluster")]
use gapless_cluster::config::ClusterConfig;
#[cfg(feature = "cqrs")]
use gapless_cqrs::{AggregateOptions, BusOptions, CommandHost, CommandModel, PolledBus};
#[cfg(feature = "cluster")]
use gapless_engine::EngineError;
use gapless_engine::store::{Store, StoreLimits};
use gapless_engine::{Persistence, Policy, Service, StateService, Threads};
use gapless_message::state::State;
use gapless_transport::Tier;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const NO_NODE: &str = "only an event-sourced service can be a node of it; take Host::service";

/// Builder of a host: first the place, then options, then the program.
///
/// ```
/// # mod gapless {
/// #     pub use gapless_engine::service;
/// #     pub use gapless_host::Host;
/// #     pub mod prelude {
/// #         pub use gapless_client::ClientOptions;
/// #         pub use gapless_message::{Message, State};
/// #         pub use gapless_transport::token::random_token;
/// #         pub use std::time::Duration;
/// #     }
/// # }
/// use gapless::Host;
/// use gapless::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize, State)]
/// struct Tickets {
///     given: u64,
/// }
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(reply = u64)]
/// struct Take;
///
/// #[gapless::service]
/// impl Tickets {
///     #[command]
///     fn take(&mut self, _: Take) -> u64 {
///         self.given += 1;
///         self.given
///     }
/// }
///
/// // "memory", a directory, or the file of a cluster's member: for instance an argument of the program.
/// let place = "memory";
/// let host = Host::at(place)?.service(Tickets::default()).start()?;
/// let mut client = host.polled_client(ClientOptions::default())?;
/// let session = client.open_session(random_token(), 16)?;
/// assert_eq!(client.call_request(session, &Take, Duration::from_secs(5))?, Ok(1));
/// host.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a host runs once it is started"]
pub struct Host<K = ()> {
    place: Place,
    options: HostOptions,
    program: K,
}

impl Host {
    /// A host without a disk, at tier `memory`, for clients in this process.
    pub fn in_memory() -> Self {
        Self::of(Place::Memory)
    }

    /// A host whose stream is in a directory, at tier `journal`; clients of this machine find its socket `node.socket`
    /// there.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self::of(Place::Directory(directory.into()))
    }

    /// A member of a cluster, described by its file. As a witness it runs no service.
    ///
    /// It starts without its peers, and waits for them. It starts again by itself after it has fetched another member's
    /// state; while another program has one of its addresses, that start tries again, for up to 30 s. A first start that
    /// fails returns its error at once, and is repeated by whoever supervises the program.
    #[cfg(feature = "cluster")]
    pub fn member(file: impl Into<PathBuf>) -> Self {
        Self::of(Place::Member(file.into()))
    }

    /// A node of a stream of others, described by the stream's file. It reads all messages of the stream and publishes its
    /// own, as often as the stream needs them: any number of instances with one [`Host::token`] give the stream each
    /// message once. It connects, also again, by itself, and needs no sequencer at its start.
    pub fn on_stream(file: impl Into<PathBuf>) -> Self {
        Self::of(Place::Stream(file.into()))
    }

    /// The place named by one word: `memory`; a path that ends with `.toml`, the file of a cluster's member; else a
    /// directory.
    ///
    /// # Errors
    /// [`HostError::Place`] for an empty word; for a file, if the program was built without the feature `cluster`.
    pub fn at(place: &str) -> Result<Self, HostError> {
        let refuse = |reason: &str| Err(HostError::Place { place: place.to_owned(), reason: reason.to_owned() });
        match place {
            "" => refuse("\"memory\", a directory or a member's file, such as \"member-1.toml\", is expected"),
            "memory" => Ok(Self::in_memory()),
            #[cfg(feature = "cluster")]
            file if file.ends_with(".toml") => Ok(Self::member(file)),
            #[cfg(not(feature = "cluster"))]
            file if file.ends_with(".toml") => {
                refuse("a member of a cluster needs a program that is built with the feature `cluster`")
            }
            directory => Ok(Self::in_directory(directory)),
        }
    }

    fn of(place: Place) -> Self {
        Self { place, options: HostOptions::default(), program: () }
    }

    /// Runs an event-sourced service with a derived state. `initial` is the state before the first frame: give an equal
    /// one at each start, because a replay without a snapshot begins with it. What a configuration may change belongs
    /// into a command.
    pub fn service<S: Service + State>(self, initial: S) -> Host<Services> {
        self.running(Services(Box::new(FromInitial::new(initial))))
    }

    /// Runs an event-sourced service with a state of any form. `make` returns the service at the beginning of the stream;
    /// it is called at each start of a member, on another thread.
    pub fn service_from<S: Service>(self, make: impl FnMut() -> S + Send + 'static) -> Host<Services> {
        self.running(Services(Box::new(FromFunction(make))))
    }

    /// Runs a state-replicated service: its handlers run once, and the stream holds their changes. `make` declares the
    /// collections and returns the service; it is called again at each start of a member, and to rebuild the state of a
    /// deposed leader.
    pub fn replicated_state<S: StateService>(
        self,
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
    ) -> Host<Services> {
        self.running(Services(Box::new(OfState(Arc::new(make)))))
    }

    /// Runs aggregates and handlers on a command bus. The members of a cluster must have the same model and options.
    #[cfg(feature = "cqrs")]
    pub fn aggregates(self, model: CommandModel) -> Host<Aggregates> {
        self.running(Aggregates { model, options: AggregateOptions::default() })
    }

    fn running<K>(self, program: K) -> Host<K> {
        Host { place: self.place, options: self.options, program }
    }
}

/// Options. A place refuses those that it lacks at the start, [`HostError::Option`]; the file of a member has its own.
impl<K> Host<K> {
    /// Durability of a command before the service acts on it.
    pub fn tier(self, tier: Tier) -> Self {
        self.with(|options| options.tier = Some(tier))
    }

    /// Freezes time, which then advances only by [`Running::advance`]: for tests of timers and timeouts.
    pub fn manual_time(self) -> Self {
        self.with(|options| options.manual_time = true)
    }

    /// Frames between two snapshots, 10 million by default; `None`: no snapshots, so the journal is never deleted. In
    /// memory without effect.
    pub fn snapshot_every(self, frames: impl Into<Option<u64>>) -> Self {
        let frames = frames.into();
        self.with(|options| options.snapshot_every = Some(frames))
    }

    /// Whether a stop writes a snapshot; it does by default. In memory without effect.
    pub fn snapshot_on_stop(self, is_written: bool) -> Self {
        self.with(|options| options.snapshot_on_stop = Some(is_written))
    }

    /// Reaction to faults of handlers; for event-sourced services. Must be equal on all members.
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|options| options.policy = Some(policy))
    }

    /// Limits of a replicated state. Must be equal on all members.
    pub fn limits(self, limits: StoreLimits) -> Self {
        self.with(|options| options.limits = Some(limits))
    }

    /// Threads of the host, and their CPUs.
    pub fn threads(self, threads: Threads) -> Self {
        self.with(|options| options.threads = Some(threads))
    }

    /// Memory for the newest frames, bytes, a power of two.
    pub fn window_bytes(self, bytes: usize) -> Self {
        self.with(|options| options.window_bytes = Some(bytes))
    }

    /// Longest frame, bytes; longer messages are split.
    pub fn frame_length_max(self, bytes: usize) -> Self {
        self.with(|options| options.frame_length_max = Some(bytes))
    }

    /// Frames that an agent handles before it looks at others; by default derived from [`Host::threads`].
    pub fn frames_per_poll_max(self, frames: usize) -> Self {
        self.with(|options| options.frames_per_poll_max = Some(frames))
    }

    /// Sessions without a frame for this long are closed.
    pub fn session_expiry(self, idle: Duration) -> Self {
        self.with(|options| options.session_expiry = Some(idle))
    }

    /// Segments, retention and checks of the journal.
    pub fn persistence(self, persistence: Persistence) -> Self {
        self.with(|options| options.persistence = Some(persistence))
    }

    /// Path of the Unix socket for clients of other processes; `None`: for clients of this process only.
    pub fn socket(self, path: impl Into<Option<PathBuf>>) -> Self {
        let path = path.into();
        self.with(|options| options.socket = Some(path))
    }

    /// On a stream of others: identity of the service there, which its instances share, and keep over restarts.
    pub fn token(self, token: u128) -> Self {
        self.with(|options| options.token = Some(token))
    }

    /// On a stream of others: directory of this instance for snapshots and dead letters. Without one, each start replays
    /// the stream from its first frame.
    pub fn directory(self, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        self.with(|options| options.directory = Some(directory))
    }

    /// On a stream of others: memory for published messages that are not known to be in the stream, bytes; 64 MiB by
    /// default.
    pub fn kept_bytes_max(self, bytes: usize) -> Self {
        self.with(|options| options.kept_bytes_max = Some(bytes))
    }

    fn with(mut self, set: impl FnOnce(&mut HostOptions)) -> Self {
        set(&mut self.options);
        self
    }
}

impl Host<Services> {
    /// Recovers the place and starts; clients can connect when this returns.
    ///
    /// # Errors
    /// [`HostError::Option`] for an option that the place or the program lacks; [`HostError::Engine`] for an invalid
    /// option or file, a directory in use or of another program, damage, too little memory, no thread, no port.
    pub fn start(self) -> Result<Running, HostError> {
        let Self { place, options, program: Services(mut program) } = self;
        options.check(&place, program.kind())?;
        let name = place.to_string();
        #[cfg(feature = "cluster")]
        if let Place::Member(file) = &place {
            let config = ClusterConfig::load(file).map_err(EngineError::from)?;
            let mut start = move || Ok(Started::Member(Box::new(program.start_member(&options, &config)?)));
            return Running::watched(start()?, name, Box::new(start));
        }
        if let Place::Stream(file) = &place {
            let link = StreamConfig::load(file).map_err(ClientError::from)?.link()?;
            let Some(node) = program.start_node(link, options.on_stream()) else {
                return Err(HostError::Refused { call: "start", place: name, reason: NO_NODE.to_owned() });
            };
            return Ok(Running::new(Started::Node(NodeHost::start(node?)?), name, false));
        }
        let has_manual_time = options.manual_time;
        let host = program.start(options.of_own_stream(&place))?;
        Ok(Running::new(Started::Service(Box::new(host)), name, has_manual_time))
    }
}

#[cfg(feature = "cqrs")]
impl Host<Aggregates> {
    /// Limits of identifiers, and of aggregates and models in memory.
    pub fn aggregate_options(mut self, options: AggregateOptions) -> Self {
        self.program.options = options;
        self
    }

    /// Recovers the place and starts, as a service does.
    ///
    /// # Errors
    /// As for a service; [`HostError::Bus`] for an invalid model, or a journal that has lost its beginning and has no
    /// intact base.
    pub fn start(self) -> Result<Running<Aggregates>, HostError> {
        let Self { place, options, program: Aggregates { model, options: bus_options } } = self;
        options.check(&place, ProgramKind::Aggregates)?;
        let name = place.to_string();
        #[cfg(feature = "cluster")]
        if let Place::Member(file) = &place {
            let config = ClusterConfig::load(file).map_err(EngineError::from)?;
            // A bus member has a complete journal: it never fetches a state, and never has to start again.
            let member = gapless_cqrs::member::CommandMember::start(model, bus_options, &config)?;
            return Ok(Running::new(Started::BusMember(Box::new(member)), name, false));
        }
        if let Place::Stream(_) = &place {
            return Err(HostError::Refused { call: "start", place: name, reason: NO_NODE.to_owned() });
        }
        let has_manual_time = options.manual_time;
        let host = CommandHost::start(model, bus_options, options.of_own_stream(&place))?;
        Ok(Running::new(Started::Bus(Box::new(host)), name, has_manual_time))
    }

    /// Starts without threads: the caller owns the bus and polls it, which saves the way between threads.
    ///
    /// # Errors
    /// As for [`Host::start`]; [`HostError::Option`] for options of threads, sockets and time;
    /// [`HostError::Refused`] on a member.
    pub fn start_polled(self, bus: &BusOptions) -> Result<PolledBus, HostError> {
        let Self { place, options, program: Aggregates { model, options: bus_options } } = self;
        if !matches!(place, Place::Memory | Place::Directory(_)) {
            let reason = "it has threads; take Host::start".to_owned();
            return Err(HostError::Refused { call: "start_polled", place: place.to_string(), reason });
        }
        options.check(&place, ProgramKind::Aggregates)?;
        options.check_polled(&place)?;
        Ok(PolledBus::start(model, bus_options, options.of_own_stream(&place), bus)?)
    }
}
