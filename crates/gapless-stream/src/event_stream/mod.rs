//! [`EventStream`]: the sequencer of an event stream with everything that serves it, put together and run.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`EventStream`]: recovery, assembling the agents, running them, stopping |
//! | [`options`] | [`EventStreamOptions`] |

pub mod options;

pub use options::EventStreamOptions;

use crate::answer_desk::AnswerDesk;
use crate::client::random_token;
use crate::doorman::{Doorman, DoormanLinks, PublisherLink, StreamDescription};
use crate::ingress::{Ingress, IngressCounters, IngressLinks, IngressOptions, IngressShared};
use crate::journaler::{Journaler, JournalerCounters, Release};
use crate::late_reader::LateReader;
use crate::link::{ForSequencer, LinkOptions};
use crate::mailbox::Mailbox;
use crate::network::endpoints::{Served, build};
use crate::network::guests::SharedStatus;
use crate::outlets::Outlets;
use crate::persistence::OpenedJournal;
use crate::preparing::PreparerThread;
use crate::sequencer::{Sequencer, SequencerRules};
use crate::state_keeper::{self, StateKeeper};
use crate::stream_layout::StreamLayout;
use crate::syncer::SyncThread;
use crate::{StreamError, Tier};
use gapless_agent::plan::cores_available;
use gapless_agent::{Agent, AgentGroup, AgentSpec, Clock, Counters, Now, Seats, ThreadGroup, ThreadPlan, Waker};
use gapless_journal::{JournalReader, RecoveryReport};
use gapless_log::{MemoryKind, Scope, StreamIdentity, Window, WindowOptions};
use gapless_wire::Fragment;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a start found.
#[derive(Clone, Debug, Default)]
pub struct StreamRecovery {
    /// The last sequence.
    pub last_sequence: u64,
    /// Where the state that was written aside stood; 0 without one.
    pub state_sequence: u64,
    /// Frames of the journal folded in behind it.
    pub frames_replayed: u64,
    /// What the journal found, and what it cut.
    pub journal: Option<RecoveryReport>,
}

/// Who polls the agents.
enum Driver {
    /// Threads of their own.
    Threads(ThreadGroup),
    /// The caller, by [`EventStream::turn`].
    Caller(AgentGroup),
}

/// A running event stream.
pub struct EventStream {
    driver: Option<Driver>,
    doorman: Option<Arc<Doorman>>,
    sync_thread: Option<SyncThread>,
    preparer: Option<PreparerThread>,
    ingress: Arc<IngressShared>,
    requests: Mailbox<ForSequencer>,
    waker: Waker,
    window: Window,
    layout: Option<StreamLayout>,
    counters: Counters,
    recovery: StreamRecovery,
    plan: ThreadPlan,
    tier: Tier,
    status: SharedStatus,
}

/// Mailboxes hold this many messages.
const MAILBOX_MESSAGES: usize = 4096;
/// Room for counters.
const COUNTERS_MAX: usize = 256;
/// Frames journaled at once before they are released, bytes.
const JOURNAL_BATCH_BYTES: usize = 64 << 10;

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
        Self::assemble(options, Some(clock))
    }

    /// As [`EventStream::start`], without threads for its agents: nothing happens but in [`EventStream::turn`], and
    /// the caller says what time it is. For tests and simulations.
    ///
    /// # Errors
    /// As for [`EventStream::start`].
    pub fn start_by_hand(options: &EventStreamOptions) -> Result<Self, StreamError> {
        Self::assemble(options, None)
    }

    fn assemble(options: &EventStreamOptions, clock: Option<Clock>) -> Result<Self, StreamError> {
        options.check()?;
        let expiry_ns = options.session_expiry.as_nanos().min(u128::from(u64::MAX)) as u64;
        let rules = SequencerRules::of_stream(expiry_ns);
        let layout = options.directory.as_ref().map(StreamLayout::new);
        if let Some(layout) = &layout {
            let root = layout.root();
            std::fs::create_dir_all(root)
                .map_err(|source| StreamError::System { action: format!("making {}", root.display()), source })?;
        }
        let mut identity = StreamIdentity { stream_id: random_token(), incarnation: random_token() as u64 };
        let mut recovery = StreamRecovery::default();
        let mut sequencer = Sequencer::new(rules);
        let mut opened = None;
        if let (Some(layout), true) = (&layout, options.tier != Tier::Memory) {
            let persistence = &options.persistence;
            let mut found = persistence.open(&layout.journal(), options.tier, options.frame_length_max, 1, None)?;
            identity = found.identity;
            sequencer = recover(layout, &mut found, rules, &mut recovery)?;
            opened = Some(found);
        }
        let counters = match &layout {
            Some(layout) => Counters::create(layout.counters(), COUNTERS_MAX)?,
            None => Counters::in_memory(COUNTERS_MAX)?,
        };
        let seats = seats(options)?;
        let window_options = WindowOptions {
            memory: MemoryKind::Shared,
            capacity_bytes: options.window_bytes,
            index_slots: (options.window_bytes / 128).next_power_of_two(),
            frame_length_max: options.frame_length_max,
            identity,
        };
        let (mut writer, releaser) = window_options.create(recovery.last_sequence + 1)?;
        let window = writer.window();
        let journal_cursor = opened.is_some().then(|| writer.gating_cursor(Scope::Appended));
        let feed_cursor = options.packets.is_some().then(|| writer.gating_cursor(Scope::Released));
        let links = DoormanLinks {
            ingress: Mailbox::new(MAILBOX_MESSAGES),
            delivery: Mailbox::new(MAILBOX_MESSAGES),
            ingress_waker: seats.waker("sequencer"),
            delivery_waker: seats.waker("answers"),
        };
        let answers = Mailbox::new(MAILBOX_MESSAGES);
        let requests = Mailbox::new(MAILBOX_MESSAGES);
        if sequencer.feeds().newest().is_none() {
            // Room there is: nobody else knows the mailbox yet.
            let _ = requests.push(ForSequencer::BeginFeed { name: options.feed_session });
        }
        let (mut ingress_releaser, mut journal_releaser) = (None, None);
        match &opened {
            None => ingress_releaser = Some(releaser),
            Some(_) => journal_releaser = Some(releaser),
        }
        let mut ingress = Ingress::new(
            sequencer,
            writer,
            ingress_releaser,
            IngressLinks {
                publishers: links.ingress.clone(),
                service: answers.clone(),
                requests: requests.clone(),
                downstream: seats.downstream(Some("sequencer"), &["journaler", "answers"]),
                counters: IngressCounters::add_to(&counters)?,
            },
            IngressOptions {
                frames_per_poll_max: options.frames_per_poll_max,
                fragments_bytes_max: options.fragments_bytes_max,
                message_bytes_max: options.message_bytes_max(),
                throttle: options.throttle,
            },
        );
        let (mut sync_thread, mut preparer, mut journaler) = (None, None, None);
        if let (Some(opened), Some(cursor), Some(releaser), Some(layout)) =
            (opened, journal_cursor, journal_releaser, &layout)
        {
            let OpenedJournal { journal, report, .. } = opened;
            recovery.journal = Some(report);
            let (at, interval) = (recovery.state_sequence, options.state_interval_frames);
            let below = (journal.syncer(), journal.preparer());
            let keeper = StateKeeper::start(layout.state(), identity, at, interval, window.clone(), below)?;
            ingress = ingress.keeping_state(keeper);
            preparer = Some(PreparerThread::start(journal.preparer())?);
            let release = if options.tier == Tier::Sync {
                let woken = seats.downstream(None, &["answers", "journaler"]);
                let last_sequence = counters.add("sync.last_sequence")?;
                let (thread, syncing) = SyncThread::start(journal.syncer(), releaser, woken, last_sequence)?;
                sync_thread = Some(thread);
                Release::WhenSynced(syncing)
            } else {
                Release::WhenJournaled(releaser)
            };
            let downstream = seats.downstream(Some("journaler"), &["answers"]);
            let batch_bytes_max = if options.persistence.flush_on_commit { 1 } else { JOURNAL_BATCH_BYTES };
            let counted = JournalerCounters::add_to(&counters)?;
            journaler = Some(Journaler::new(cursor, journal, release, downstream, batch_bytes_max, counted));
        }
        let ingress_shared = ingress.shared();
        let description = StreamDescription {
            identity,
            frame_length_max: options.frame_length_max,
            message_length_max: options.message_bytes_max(),
            tier: options.tier,
        };
        let outlets = Outlets::new(links.delivery.clone(), options.frame_length_max);
        let socket = layout.as_ref().filter(|_| clock.is_some()).map(StreamLayout::socket);
        let doorman = Doorman::start(socket.as_deref(), description, links, Some(window.clone()))?;
        let doorman = Arc::new(doorman);
        let status = SharedStatus::default();
        let journal = layout.as_ref().filter(|_| options.tier != Tier::Memory).map(StreamLayout::journal);
        let served = Served {
            doorman: Arc::clone(&doorman),
            window: window.clone(),
            feeds: ingress_shared.feeds.clone(),
            journal,
            next_sequence: recovery.last_sequence + 1,
            status: status.clone(),
            counters: &counters,
        };
        let mut agents: Vec<Box<dyn Agent>> = Vec::new();
        let mut behind = Vec::new();
        if let (Some(network), Some(cursor)) = (&options.packets, feed_cursor) {
            let [gateway, feed, replayer] = build(network, cursor, &served)?;
            agents.push(gateway);
            behind.extend([feed, replayer]);
        }
        agents.push(Box::new(ingress));
        agents.extend(journaler.map(|journaler| Box::new(journaler) as Box<dyn Agent>));
        agents.extend(behind);
        agents.push(Box::new(AnswerDesk::new(answers, outlets, window.clone())));
        let waker = seats.waker("sequencer");
        let driver = match clock {
            Some(clock) => Driver::Threads(ThreadGroup::launch(&seats.plan, agents, &clock, seats.wakers)?),
            None => Driver::Caller(AgentGroup::new(agents)),
        };
        Ok(Self {
            driver: Some(driver),
            doorman: Some(doorman),
            sync_thread,
            preparer,
            ingress: ingress_shared,
            requests,
            waker,
            window,
            layout,
            counters,
            recovery,
            plan: seats.plan,
            tier: options.tier,
            status,
        })
    }

    /// Polls every agent once, in a stream that was started by hand. Returns the work done.
    ///
    /// # Errors
    /// What an agent cannot go on after.
    ///
    /// # Panics
    /// If the stream has threads.
    pub fn turn(&mut self, now: Now) -> Result<usize, StreamError> {
        match &mut self.driver {
            Some(Driver::Caller(agents)) => {
                agents.start(now)?;
                Ok(agents.poll_once(now)?)
            }
            _ => panic!("this stream has threads of its own"),
        }
    }

    /// A publisher's end inside this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, link: LinkOptions) -> Result<PublisherLink, StreamError> {
        self.doorman.as_ref().expect("a stream has its doorman until it stops").connect(link)
    }

    /// A reader inside this process, from `sequence` on.
    #[must_use]
    pub fn reader(&self, sequence: u64) -> LateReader {
        let is_kept = self.tier != Tier::Memory;
        let journal = self.layout.as_ref().filter(|_| is_kept).map(StreamLayout::journal);
        LateReader::new(self.window.clone(), journal, sequence)
    }

    /// What the start found.
    #[must_use]
    pub const fn recovery(&self) -> &StreamRecovery {
        &self.recovery
    }

    /// The threads and what the plan says of them.
    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan {
        &self.plan
    }

    /// How durable a frame is before anybody sees it.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// Which stream and which life of it.
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

    /// The stream's counters, which other processes read from the file `counters` of its directory.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// CPU time of the stream's agent threads so far, ns.
    #[must_use]
    pub fn cpu_time_ns(&self) -> u64 {
        match &self.driver {
            Some(Driver::Threads(threads)) => threads.cpu_time_ns(),
            _ => 0,
        }
    }

    /// Why the stream has stopped by itself, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<StreamError> {
        match &self.driver {
            Some(Driver::Threads(threads)) => threads.failures().failure().map(StreamError::Stopped),
            _ => None,
        }
    }

    /// Asks something of the sequencer; it overtakes everything that publishers have sent and that is not in the
    /// stream yet.
    ///
    /// # Errors
    /// So many requests wait already that the sequencer must have stopped.
    pub fn ask(&self, request: ForSequencer) -> Result<(), StreamError> {
        let full = |_| StreamError::Disconnected { peer: "this process".to_owned() };
        self.requests.push(request).map_err(full)?;
        self.waker.wake();
        Ok(())
    }

    /// Stops cleanly: takes no more input, journals what was taken, writes the state. Returns the last sequence.
    ///
    /// # Errors
    /// What made the stream stop by itself, before or now.
    pub fn stop(mut self) -> Result<u64, StreamError> {
        self.end()?;
        Ok(self.released_sequence())
    }

    fn end(&mut self) -> Result<(), StreamError> {
        // Release: pairs with the Acquire in Ingress::poll.
        self.ingress.stopped.store(true, Ordering::Release);
        let threads = match self.driver.take() {
            Some(Driver::Threads(threads)) => threads,
            Some(Driver::Caller(mut agents)) => {
                let outcome = agents.poll_once(Now::default());
                drop(agents);
                (self.doorman, self.sync_thread, self.preparer) = (None, None, None);
                return outcome.map(|_| ()).map_err(StreamError::Stopped);
            }
            None => return Ok(()),
        };
        while !self.ingress.halted.load(Ordering::Acquire) && !threads.failures().has_failed() {
            threads.threads().iter().for_each(|thread| thread.waker().wake());
            std::thread::sleep(Duration::from_micros(200));
        }
        let ended = threads.stop_and_join().map_err(StreamError::Stopped);
        self.doorman = None;
        self.sync_thread = None;
        self.preparer = None;
        ended
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "a stream that was dropped had failed");
        }
    }
}

/// Which agent sits on which thread, in the order of a message's path.
fn seats(options: &EventStreamOptions) -> Result<Seats, StreamError> {
    let mut agents = Vec::new();
    if options.packets.is_some() {
        agents.push(AgentSpec::new("gateway").hot());
    }
    agents.push(AgentSpec::new("sequencer").hot().weight(2).cpus(options.sequencer_cpus));
    if options.tier != Tier::Memory {
        agents.push(AgentSpec::new("journaler").detachable().hot());
    }
    if options.packets.is_some() {
        agents.push(AgentSpec::new("feed").hot());
        agents.push(AgentSpec::new("replayer"));
    }
    agents.push(AgentSpec::new("answers").hot());
    let plan = gapless_agent::plan(options.plan, options.optimize_for, &agents, cores_available(), 0);
    Seats::new(plan).map_err(|source| StreamError::System { action: "making a waker".to_owned(), source })
}

/// The sequencer as it stood: its newest state, and the journal behind it.
fn recover(
    layout: &StreamLayout,
    opened: &mut OpenedJournal,
    rules: SequencerRules,
    recovery: &mut StreamRecovery,
) -> Result<Sequencer, StreamError> {
    let journal = &mut opened.journal;
    let state = state_keeper::newest(&layout.state(), opened.identity, journal.last_sequence())?;
    let mut sequencer = match &state {
        Some(state) => state.restore(rules),
        None => Sequencer::new(rules),
    };
    recovery.state_sequence = sequencer.last_sequence();
    let from = sequencer.last_sequence() + 1;
    let first = journal.first_sequence();
    if from < first {
        let reason = format!(
            "it reaches to sequence {}, the journal begins at {first}: what was between them is lost; restore one of them",
            from - 1
        );
        return Err(StreamError::State { path: layout.state(), reason });
    }
    let mut incomplete_from = None;
    if from <= journal.last_sequence() {
        let mut replay = JournalReader::open(layout.journal())?.replay(from)?;
        while let Some(frame) = replay.next_frame()? {
            recovery.frames_replayed += 1;
            if frame.fragment().is_last() {
                sequencer.observe(&frame);
                incomplete_from = None;
            } else if frame.fragment() != Fragment::WHOLE && frame.fragment().index == 0 {
                incomplete_from = Some(frame.sequence());
            }
        }
    }
    if incomplete_from.is_some() {
        // A message of which only a part is there was never released.
        journal.truncate_after(sequencer.last_sequence())?;
    }
    sequencer.forget_feeds_before(first);
    recovery.last_sequence = sequencer.last_sequence();
    Ok(sequencer)
}
