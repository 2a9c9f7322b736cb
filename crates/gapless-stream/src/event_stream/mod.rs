//! [`EventStream`]: the sequencer of an event stream and everything that serves it, assembled and running.

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
use gapless_client::node::{NodeLink, SharedMemoryLink, SharedMemoryOptions, Start};
use gapless_client::polled::{ClientOptions, PolledClient};
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

#[derive(Clone, Debug, Default)]
pub struct StreamRecovery {
    pub last_sequence: u64,
    /// Last sequence in the recovered state file; 0 without one.
    pub state_sequence: u64,
    /// Journal frames replayed after it.
    pub frames_replayed: u64,
    pub journal: Option<RecoveryReport>,
}

enum StreamDriver {
    Threads(ThreadGroup),
    /// [`EventStream::turn`] does the work. Never locked: the mutex only makes the stream `Sync`.
    Caller(Mutex<AgentGroup>),
}

pub struct EventStream {
    driver: Option<StreamDriver>,
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
    is_failure_reported: AtomicBool,
    /// Dropped after everything that writes to the directory.
    _lock: Option<DirectoryLock>,
}

impl EventStream {
    /// Recovers the contents of `options.directory` and starts; nodes can connect once this returns.
    ///
    /// # Errors
    /// Invalid options, a directory in use, damage, no threads or memory.
    pub fn start(options: &EventStreamOptions) -> Result<Self, StreamError> {
        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        sequencing::start(options, Some(clock))
    }

    /// Starts a relay: it forwards the frames of `upstream` under the same sequences, and sends up the frames published
    /// here. It resumes at the end of its own journal; a new one begins at `start`.
    ///
    /// Waits for the first connection, which identifies the stream; setting `stopped` ends the wait with
    /// [`ClientError::Closed`]. Options of the sequencer itself (feed session, sessions) have no effect. The relay
    /// throttles its publishers, because the sequencer sees all of them as one.
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

    /// Like [`EventStream::start`], without threads: work is done only in [`EventStream::turn`], with the caller's
    /// time; for tests and simulations.
    ///
    /// # Errors
    /// As for [`EventStream::start`].
    pub fn start_by_hand(options: &EventStreamOptions) -> Result<Self, StreamError> {
        sequencing::start(options, None)
    }

    /// Polls every agent once; returns the work done.
    ///
    /// # Errors
    /// A fatal error of an agent.
    ///
    /// # Panics
    /// If the stream has threads.
    pub fn turn(&mut self, now: Now) -> Result<usize, StreamError> {
        match &mut self.driver {
            Some(StreamDriver::Caller(agents)) => {
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

    /// One step of a clean stop by hand: closes the agents in order and polls each; true once all are finished and
    /// dropped.
    ///
    /// # Errors
    /// A fatal error of an agent.
    ///
    /// # Panics
    /// If the stream has threads, or is closed.
    pub fn close_step(&mut self, now: Now) -> Result<bool, StreamError> {
        match &mut self.driver {
            Some(StreamDriver::Caller(agents)) => {
                let is_closed = agents.get_mut().unwrap_or_else(PoisonError::into_inner).close_step(now)?;
                if is_closed {
                    self.driver = None;
                }
                Ok(is_closed)
            }
            _ => panic!("this stream has threads of its own, or is closed"),
        }
    }

    /// Connects a publisher of this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory.
    #[doc(hidden)] // `EventStream::local_link` is the application's way.
    pub fn connect(&self, link: RingSizes) -> Result<PublisherLink, TransportError> {
        self.acceptor.as_ref().expect("a stream has its acceptor until it stops").connect(link)
    }

    /// Connects a client of this process to the stream's service.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory.
    ///
    /// # Panics
    /// Never: a stream has its acceptor until it stops.
    pub fn client(&self, options: ClientOptions) -> Result<PolledClient, ClientError> {
        self.acceptor.as_ref().expect("a stream has its acceptor until it stops").client(options)
    }

    /// Link for a node of this process, lost for good when the stream stops.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory.
    pub fn local_link(&self, options: SharedMemoryOptions) -> Result<SharedMemoryLink, ClientError> {
        Ok(SharedMemoryLink::local(self.connect(options.rings)?, self.reader(1), options))
    }

    /// Reader in this process, starting at `sequence`.
    #[must_use]
    pub fn reader(&self, sequence: u64) -> ReplayMerge {
        let is_kept = self.tier != Tier::Memory;
        let journal = self.layout.as_ref().filter(|_| is_kept).map(StreamLayout::journal);
        ReplayMerge::new(self.window.clone(), journal, sequence)
    }

    #[must_use]
    pub const fn recovery(&self) -> &StreamRecovery {
        &self.recovery
    }

    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan<AgentRole> {
        &self.plan
    }

    /// Durability of a frame before any reader sees it.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    #[must_use]
    pub fn identity(&self) -> StreamIdentity {
        self.window.identity()
    }

    /// Last sequence that has reached the tier.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// Nodes connected over networks.
    #[must_use]
    pub const fn status(&self) -> &SharedStatus {
        &self.status
    }

    /// TCP addresses for nodes.
    #[must_use]
    pub const fn tcp_addresses(&self) -> Option<TcpAddresses> {
        self.tcp_addresses
    }

    /// TCP address for clients of its service.
    #[must_use]
    pub const fn client_address(&self) -> Option<SocketAddr> {
        self.client_address
    }

    /// Counters, also in the file `counters` of the directory.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Socket for other processes.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.acceptor.as_ref().and_then(|acceptor| acceptor.socket_path())
    }

    #[must_use]
    pub fn pin_warnings(&self) -> Vec<String> {
        self.threads().map(ThreadGroup::pin_warnings).unwrap_or_default()
    }

    /// Time that each thread was kept from running while it spun (interrupt, other thread, hypervisor), in the order of
    /// the plan.
    #[must_use]
    pub fn pauses(&self) -> Vec<Pauses> {
        self.threads().map(ThreadGroup::pauses).unwrap_or_default()
    }

    #[must_use]
    pub fn cpu_time_ns(&self) -> u64 {
        self.threads().map_or(0, ThreadGroup::cpu_time_ns)
    }

    fn threads(&self) -> Option<&ThreadGroup> {
        match &self.driver {
            Some(StreamDriver::Threads(threads)) => Some(threads),
            _ => None,
        }
    }

    /// Failure that has stopped the stream.
    #[must_use]
    pub fn failure(&self) -> Option<StreamError> {
        let failure = self.threads()?.failures().failure().map(StreamError::Stopped)?;
        // Relaxed: only a note that the owner was told.
        self.is_failure_reported.store(true, Ordering::Relaxed);
        Some(failure)
    }

    /// Sends a request to the sequencer, ahead of all publishers' frames that are not in the stream yet.
    ///
    /// # Errors
    /// Too many requests wait: the sequencer must have stopped.
    pub fn ask(&self, request: SequencerRequest) -> Result<(), StreamError> {
        let full = |_| ClientError::Disconnected { peer: "this process".to_owned(), reason: None };
        self.requests.push(request).map_err(full)?;
        self.waker.wake();
        Ok(())
    }

    /// Stops cleanly: journals all frames taken, writes the state; returns the last sequence.
    ///
    /// # Errors
    /// The error that has stopped the stream, before or now.
    pub fn stop(mut self) -> Result<u64, StreamError> {
        self.end()?;
        Ok(self.released_sequence())
    }

    /// Ends a stream started by hand as if its process had died; for simulations.
    pub fn abandon(mut self) {
        if matches!(self.driver, Some(StreamDriver::Caller(_))) {
            self.driver = None;
        }
    }

    fn end(&mut self) -> Result<(), StreamError> {
        // Pairs with the Acquire in Ingress::poll.
        self.ingress.stopped.store(true, Ordering::Release);
        let threads = match self.driver.take() {
            Some(StreamDriver::Threads(threads)) => threads,
            Some(StreamDriver::Caller(agents)) => {
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

    /// Acknowledged frames must still be in their files.
    fn check_files(&self) -> Result<(), StreamError> {
        self.preparer.as_ref().map_or(Ok(()), PreparerThread::check_files)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // An owner that has asked for the failure reports it itself.
        if let Err(error) = self.end()
            && !*self.is_failure_reported.get_mut()
        {
            tracing::error!(%error, "a stream that was dropped had failed");
        }
    }
}
