//! [`EventStream`]: the sequencer of an event stream with everything that serves it, put together and run.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`EventStream`]: the requests to it while it runs, and stopping it |
//! | [`builder`] | the parts that every stream has: window, journal, links, threads |
//! | `sequencing` | a stream that puts frames in order |
//! | `relaying` | a stream that passes another's frames on: dispatchers and bridges |
//! | `carried_frames` | whether the frames of a journal fit the packets of its networks |

pub mod builder;
mod carried_frames;
mod relaying;
mod sequencing;

use crate::acceptor::Acceptor;
use crate::ingress::IngressShared;
use crate::journaler::SyncedEnd;
use crate::messages::SequencerRequest;
use crate::network::TcpAddresses;
use crate::network::client_sessions::SharedStatus;
use crate::options::EventStreamOptions;
use crate::preparer_thread::PreparerThread;
use crate::syncer::SyncThread;
use crate::{AgentRole, StreamError};
use gapless_agent::{AgentGroup, Clock, Counters, Now, Pauses, ThreadGroup, ThreadPlan, Waker};
use gapless_client::ClientError;
use gapless_client::client::{Client, ClientOptions};
use gapless_client::node::{NodeLink, SharedMemoryLink, SharedMemoryOptions, Start};
use gapless_client::replay_merge::ReplayMerge;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{DirectoryLock, RecoveryReport};
use gapless_log::{StreamIdentity, Window};
use gapless_transport::link::RingSizes;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::{Tier, TransportError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The findings of a start.
#[derive(Clone, Debug, Default)]
pub struct StreamRecovery {
    pub last_sequence: u64,
    /// The last sequence that the state in a file covers; 0 without one.
    pub state_sequence: u64,
    /// Frames of the journal folded in after it.
    pub frames_replayed: u64,
    /// The findings of the journal, and its cut.
    pub journal: Option<RecoveryReport>,
}

/// The caller that polls the agents.
enum Driver {
    /// Threads of their own.
    Threads(ThreadGroup),
    /// The caller, by [`EventStream::turn`]. Never locked: the mutex lets a stream be shared between threads.
    Caller(Mutex<AgentGroup>),
}

/// A running event stream.
pub struct EventStream {
    driver: Option<Driver>,
    acceptor: Option<Arc<Acceptor>>,
    sync_thread: Option<SyncThread<SyncedEnd>>,
    preparer: Option<PreparerThread>,
    ingress: Arc<IngressShared>,
    requests: Mailbox<SequencerRequest>,
    waker: Waker,
    window: Window,
    layout: Option<StreamLayout>,
    counters: Counters,
    recovery: StreamRecovery,
    plan: ThreadPlan<AgentRole>,
    tier: Tier,
    status: SharedStatus,
    tcp_addresses: Option<TcpAddresses>,
    client_address: Option<SocketAddr>,
    /// Whether somebody has asked why it stopped by itself, and was told.
    is_failure_told: AtomicBool,
    /// Dropped after everything that writes there.
    _lock: Option<DirectoryLock>,
}

impl EventStream {
    /// Recovers what `options.directory` holds, and starts: when this returns, nodes can connect.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use, damage, no threads or memory.
    pub fn start(options: &EventStreamOptions) -> Result<Self, StreamError> {
        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        sequencing::start(options, Some(clock))
    }

    /// Starts a stream that passes on the frames that come by `upstream`, with the same sequences, and sends up the
    /// frames that are published here. It goes on where its own journal ends; one that is new begins at `start`. Waits
    /// for the first connection, which tells what stream it is, until `stopped` is set: then there is none
    /// ([`ClientError::Closed`]).
    ///
    /// The same options as for a stream of one's own; those of the sequencer (feed session, sessions) mean nothing
    /// here. Publishers here are throttled here: to the sequencer all of them are one.
    ///
    /// # Errors
    /// As for [`EventStream::start`]; the directory belongs to another stream, or the next frames are no longer kept.
    pub fn relay(
        options: &EventStreamOptions,
        upstream: Box<dyn NodeLink>,
        start: Start,
        stopped: &AtomicBool,
    ) -> Result<Self, StreamError> {
        relaying::start(options, upstream, start, stopped)
    }

    /// As [`EventStream::start`], without threads for its agents: nothing happens but in [`EventStream::turn`], and
    /// the caller says what time it is. For tests and simulations.
    ///
    /// # Errors
    /// As for [`EventStream::start`].
    pub fn start_by_hand(options: &EventStreamOptions) -> Result<Self, StreamError> {
        sequencing::start(options, None)
    }

    /// Polls every agent once, in a stream that was started by hand. Returns the work done.
    ///
    /// # Errors
    /// An error that an agent cannot go on after.
    ///
    /// # Panics
    /// If the stream has threads.
    pub fn turn(&mut self, now: Now) -> Result<usize, StreamError> {
        match &mut self.driver {
            Some(Driver::Caller(agents)) => {
                let agents = agents.get_mut().unwrap_or_else(PoisonError::into_inner);
                agents.start(now)?;
                let work = agents.poll_once(now)?;
                if let Some(preparer) = &mut self.preparer {
                    preparer.turn();
                }
                Ok(work)
            }
            _ => panic!("this stream has threads of its own"),
        }
    }

    /// One step of a clean stop of a stream that was started by hand: its agents are closed in their order, and polled until each has
    /// done what it took. Whether all have: then they are gone.
    ///
    /// # Errors
    /// An error that an agent cannot go on after.
    ///
    /// # Panics
    /// If the stream has threads, or is closed.
    pub fn close_step(&mut self, now: Now) -> Result<bool, StreamError> {
        match &mut self.driver {
            Some(Driver::Caller(agents)) => {
                let is_closed = agents.get_mut().unwrap_or_else(PoisonError::into_inner).close_step(now)?;
                if is_closed {
                    self.driver = None;
                }
                Ok(is_closed)
            }
            _ => panic!("this stream has threads of its own, or is closed"),
        }
    }

    /// A publisher's end inside this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    #[doc(hidden)] // `EventStream::local_link` is the application's way.
    pub fn connect(&self, link: RingSizes) -> Result<PublisherLink, TransportError> {
        self.acceptor.as_ref().expect("a stream has its acceptor until it stops").connect(link)
    }

    /// A client inside this process, of the service that the stream belongs to.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    ///
    /// # Panics
    /// Never: a stream has its acceptor until it stops.
    pub fn client(&self, options: ClientOptions) -> Result<Client, ClientError> {
        self.acceptor.as_ref().expect("a stream has its acceptor until it stops").client(options)
    }

    /// The way of a node of this process. When the stream stops, it is gone for good.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn local_link(&self, options: SharedMemoryOptions) -> Result<SharedMemoryLink, ClientError> {
        Ok(SharedMemoryLink::local(self.connect(options.rings)?, self.reader(1), options))
    }

    /// A reader inside this process, from `sequence` on.
    #[must_use]
    pub fn reader(&self, sequence: u64) -> ReplayMerge {
        let is_kept = self.tier != Tier::Memory;
        let journal = self.layout.as_ref().filter(|_| is_kept).map(StreamLayout::journal);
        ReplayMerge::new(self.window.clone(), journal, sequence)
    }

    /// The findings of the start.
    #[must_use]
    pub const fn recovery(&self) -> &StreamRecovery {
        &self.recovery
    }

    /// The threads, as the plan describes them.
    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan<AgentRole> {
        &self.plan
    }

    /// How durable a frame is before anybody sees it.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// The stream, and its incarnation.
    #[must_use]
    pub fn identity(&self) -> StreamIdentity {
        self.window.identity()
    }

    /// The last sequence that has reached the tier.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// The nodes that are connected over networks, as they last said.
    #[must_use]
    pub const fn status(&self) -> &SharedStatus {
        &self.status
    }

    /// Where it listens for nodes by TCP, if it does.
    #[must_use]
    pub const fn tcp_addresses(&self) -> Option<TcpAddresses> {
        self.tcp_addresses
    }

    /// Where clients of its service come in by TCP, if they do.
    #[must_use]
    pub const fn client_address(&self) -> Option<SocketAddr> {
        self.client_address
    }

    /// The stream's counters, which other processes read from the file `counters` of its directory.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Where other processes of this machine connect.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.acceptor.as_ref().and_then(|acceptor| acceptor.socket_path())
    }

    /// The errors of pinning the threads.
    #[must_use]
    pub fn pin_warnings(&self) -> Vec<String> {
        self.threads().map(ThreadGroup::pin_warnings).unwrap_or_default()
    }

    /// How long each of the stream's threads, in the order of its plan, was kept from running while it spun, so far:
    /// by an interrupt, another thread or the hypervisor.
    #[must_use]
    pub fn pauses(&self) -> Vec<Pauses> {
        self.threads().map(ThreadGroup::pauses).unwrap_or_default()
    }

    /// CPU time of the stream's agent threads so far, ns.
    #[must_use]
    pub fn cpu_time_ns(&self) -> u64 {
        self.threads().map_or(0, ThreadGroup::cpu_time_ns)
    }

    fn threads(&self) -> Option<&ThreadGroup> {
        match &self.driver {
            Some(Driver::Threads(threads)) => Some(threads),
            _ => None,
        }
    }

    /// Why the stream has stopped by itself, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<StreamError> {
        let failure = self.threads()?.failures().failure().map(StreamError::Stopped)?;
        // Relaxed: it says only who has been told.
        self.is_failure_told.store(true, Ordering::Relaxed);
        Some(failure)
    }

    /// Asks something of the sequencer; it overtakes everything that publishers have sent and that is not in the
    /// stream yet.
    ///
    /// # Errors
    /// So many requests wait already that the sequencer must have stopped.
    pub fn ask(&self, request: SequencerRequest) -> Result<(), StreamError> {
        let full = |_| ClientError::Disconnected { peer: "this process".to_owned(), reason: None };
        self.requests.push(request).map_err(full)?;
        self.waker.wake();
        Ok(())
    }

    /// Stops cleanly: takes no more input, journals what was taken, writes the state. Returns the last sequence.
    ///
    /// # Errors
    /// The error that made the stream stop by itself, before or now.
    pub fn stop(mut self) -> Result<u64, StreamError> {
        self.end()?;
        Ok(self.released_sequence())
    }

    /// Ends a stream that was started by hand as if its process had died: nothing more is taken, journaled or sent. For
    /// simulations.
    pub fn abandon(mut self) {
        if matches!(self.driver, Some(Driver::Caller(_))) {
            self.driver = None;
        }
    }

    fn end(&mut self) -> Result<(), StreamError> {
        // Release: pairs with the Acquire in Ingress::poll.
        self.ingress.stopped.store(true, Ordering::Release);
        let threads = match self.driver.take() {
            Some(Driver::Threads(threads)) => threads,
            Some(Driver::Caller(agents)) => {
                let mut agents = agents.into_inner().unwrap_or_else(PoisonError::into_inner);
                let outcome = agents.poll_once(Now::default());
                drop(agents);
                let outcome = outcome.map_err(StreamError::Stopped).and_then(|_| self.check_files());
                (self.acceptor, self.sync_thread, self.preparer) = (None, None, None);
                return outcome;
            }
            None => return Ok(()),
        };
        while !self.ingress.halted.load(Ordering::Acquire) && !threads.failures().has_failed() {
            threads.threads().iter().for_each(|thread| thread.waker().wake());
            std::thread::sleep(Duration::from_micros(200));
        }
        let ended = threads.stop_and_join().map_err(StreamError::Stopped).and_then(|()| self.check_files());
        self.acceptor = None;
        self.sync_thread = None;
        self.preparer = None;
        ended
    }

    /// That what was acknowledged is still in its files.
    fn check_files(&self) -> Result<(), StreamError> {
        self.preparer.as_ref().map_or(Ok(()), PreparerThread::check_files)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // Who has asked knows it, and says it.
        if let Err(error) = self.end()
            && !*self.is_failure_told.get_mut()
        {
            tracing::error!(%error, "a stream that was dropped had failed");
        }
    }
}
