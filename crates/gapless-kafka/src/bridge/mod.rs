//! [`Bridge`]: one thread owns its domain, its broker clients and the [`BridgeCore`](crate::BridgeCore) between them.

mod backoff;
mod broker;
mod calls;
mod offers;
mod ready;
mod relays;
mod reporter;
mod status;
mod thread;
mod topics;

use crate::client::{BrokerError, TopicDifference};
use crate::config::{BridgeConfig, DomainPlace};
use crate::counters::Counters;
use crate::effects::{BridgeError, BridgeNotice};
use gapless_agent::monotonic::monotonic_ns;
use gapless_rpc::domain::ServedRoute;
use gapless_rpc::{Domain, DomainOptions, RpcError};
use ready::{ReadySources, WorkSource};
use reporter::{Reporter, ReporterEnd};
use status::StatusResponder;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use thread::BridgeThread;

const EVENTS_MAX: Duration = Duration::from_secs(1);

/// A bridge that runs, until [`Bridge::stop`] or an error. Dropping it stops it and waits for its end.
#[derive(Debug)]
pub struct Bridge {
    thread: Option<JoinHandle<Result<(), RunError>>>,
    shared: Arc<BridgeShared>,
    reporter_end: ReporterEnd,
    _status_route: ServedRoute,
}

#[derive(Debug)]
struct BridgeShared {
    ready: Arc<ReadySources>,
    is_stopping: AtomicBool,
    status: StatusResponder,
}

/// An event of a bridge, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    Waiting(BrokerError),
    /// The broker refuses this user something, or a record.
    Refused(BrokerError),
    /// Records of the inbox were lost before they were read: the bridge begins again.
    InboxLost {
        reason: String,
    },
    /// The bridge has not begun to serve yet.
    NotServing {
        /// Time since its start, or since its inbox was lost.
        since: Duration,
    },
    Notice(BridgeNotice),
    NotRelayed {
        route: String,
        reason: String,
    },
    /// An existing topic has other settings than the protocol asks for.
    TopicDiffers {
        topic: String,
        differences: Vec<TopicDifference>,
    },
    /// Records that changed nothing since the start: at the end, and after each minute with more of them.
    Ignored(Counters),
    /// The operator took earlier events too slowly.
    Dropped {
        events: u64,
    },
}

impl BridgeEvent {
    /// Returns its kind as a stable name, for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Refused(_) => "refused",
            Self::InboxLost { .. } => "inbox_lost",
            Self::NotServing { .. } => "not_serving",
            Self::NotRelayed { .. } => "not_relayed",
            Self::TopicDiffers { .. } => "topic_differs",
            Self::Ignored(_) => "ignored",
            Self::Dropped { .. } => "dropped",
            Self::Notice(notice) => match notice {
                BridgeNotice::Serving => "serving",
                BridgeNotice::PeerBegan { .. } => "peer_began",
                BridgeNotice::PeerStopped { .. } => "peer_stopped",
                BridgeNotice::PeerSilent { .. } => "peer_silent",
                BridgeNotice::PeerBack { .. } => "peer_back",
                BridgeNotice::BadLease { .. } => "bad_lease",
                BridgeNotice::PrefixFull { .. } => "prefix_full",
                BridgeNotice::Unreadable { .. } => "unreadable",
                BridgeNotice::BrokerLost { .. } => "broker_lost",
                BridgeNotice::BrokerBack => "broker_back",
                BridgeNotice::LeaseFull { .. } => "lease_full",
            },
        }
    }
}

impl std::fmt::Display for BridgeEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Waiting(error) => write!(f, "waiting for the broker: {error}"),
            Self::Refused(error) => write!(f, "the broker refuses: {error}"),
            Self::InboxLost { reason } => write!(f, "beginning again: {reason}"),
            Self::NotServing { since } => write!(
                f,
                "not serving after {} s: its mark or its lease does not come back; it needs to read and write its inbox and the leases",
                since.as_secs()
            ),
            Self::Notice(notice) => notice.fmt(f),
            Self::NotRelayed { route, reason } => write!(f, "the route {route} is not served here: {reason}"),
            Self::TopicDiffers { topic, differences } => {
                let words: Vec<_> = differences.iter().map(ToString::to_string).collect();
                write!(f, "the topic {topic} has other settings than expected: {}", words.join("; "))
            }
            Self::Ignored(counters) => write!(f, "ignored records: {counters}"),
            Self::Dropped { events } => {
                write!(f, "{events} events are not shown: those before them were not taken in time")
            }
        }
    }
}

/// A bridge that does not start, or has ended by an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The domain cannot be opened.
    #[error(transparent)]
    Domain(#[from] RpcError),
    /// A secret of the file cannot be read. Correct its path or its permissions.
    #[error("{0}")]
    Secret(String),
    /// The broker refuses this bridge, or its client cannot be made. Correct the broker settings.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The topic was made with settings under which the protocol does not hold. Change the topic, or use another name.
    #[error("the topic {topic} cannot be used: {reason}")]
    Topic {
        topic: String,
        /// Found and expected settings.
        reason: String,
    },
    /// Another bridge has the name.
    #[error(transparent)]
    Ended(#[from] BridgeError),
    /// The operating system refused. Remove the cause and start again.
    #[error("{operation}: {error}")]
    System { operation: &'static str, error: io::Error },
}

impl Bridge {
    /// Opens the domain of the file and starts the bridge's thread, which waits for an unreachable broker. `on_event`
    /// is called on a thread of its own; beyond 1,024 waiting events, further ones are dropped and counted.
    ///
    /// # Errors
    /// A secret that cannot be read, a domain that cannot be opened, a machine without threads or descriptors.
    pub fn start(config: BridgeConfig, on_event: impl FnMut(&BridgeEvent) + Send + 'static) -> Result<Self, RunError> {
        let process_name = format!("bridge {}", config.name);
        let options = DomainOptions { process_name: Some(process_name), slots: 4096, ..DomainOptions::default() };
        let domain = match &config.domain {
            DomainPlace::Default => Domain::open_from_environment("default", options)?,
            DomainPlace::Name(name) => Domain::open(name, options)?,
            DomainPlace::Directory(path) => Domain::open_directory(path, options)?,
        };
        let ready = Arc::<ReadySources>::default();
        let status = StatusResponder::new(config.brokers.clone());
        let shared = Arc::new(BridgeShared { ready, is_stopping: AtomicBool::new(false), status });
        let status_route = status::serve(&domain, &shared)?;
        let (reporter, reporter_end) = Reporter::start(on_event)?;
        let run = BridgeThread::new(config, domain, Arc::clone(&shared), reporter)?;
        let system = |error| RunError::System { operation: "starting the thread of a bridge", error };
        let thread =
            std::thread::Builder::new().name("gapless-bridge".to_owned()).spawn(move || run.run()).map_err(system)?;
        Ok(Self { thread: Some(thread), shared, reporter_end, _status_route: status_route })
    }

    /// Begins a clean stop: takes nothing new; calls in flight have the file's stop time to end.
    pub fn stop(&self) {
        // Release: pairs with the Acquire of the thread, which is woken after it.
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.ready.signal(WorkSource::Owner);
    }

    /// Whether its thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it if it runs, and waits for its end.
    ///
    /// # Errors
    /// The error that has ended it.
    ///
    /// # Panics
    /// With the panic of its thread.
    pub fn end(mut self) -> Result<(), RunError> {
        self.stop();
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.reporter_end.wait(EVENTS_MAX);
        ended
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop();
            if let Ok(Err(error)) = thread.join() {
                tracing::error!(%error, "a bridge has ended");
            }
            self.reporter_end.wait(EVENTS_MAX);
        }
    }
}

fn now() -> gapless_agent::Now {
    gapless_agent::Now { monotonic_ns: monotonic_ns(), ..gapless_agent::Now::default() }
}

fn random() -> Result<u64, RunError> {
    loop {
        let mut bytes = [0; 8];
        let system = |error| RunError::System { operation: "drawing a random number", error };
        gapless_agent::random::fill(&mut bytes).map_err(system)?;
        match u64::from_le_bytes(bytes) {
            0 => {}
            drawn => return Ok(drawn),
        }
    }
}
