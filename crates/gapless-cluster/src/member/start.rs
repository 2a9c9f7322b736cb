//! [`ClusterMember`]: a member of a replicated event stream, put together from what its directory holds, and run.

use super::advertised_endpoints::AdvertisedEndpoints;
use super::ballot::Ballot;
use super::catch_up::CatchUp;
use super::control::ControlThread;
use super::core::divergence::{DivergenceCheck, HASHES_MAX};
use super::core::history::Histories;
use super::core::membership::Membership;
use super::core::time::Told;
use super::core::{Core, ENTRY_BYTES_MAX};
use super::durable::{Durable, SyncWorker};
use super::journal_readers::JournalReaders;
use super::late::LateAppends;
use super::late_budget::LateBudget;
use super::member_journal::MemberJournal;
use super::parcel::install::install;
use super::parcel::{OpenJournal, Parcels, Tools, base_file, is_complete};
use super::peers::Peers;
use super::pending_checkpoint::PendingCheckpoint;
use super::requests::{Outcome, Wish};
use super::shared::{MemberShared, MemberStatus};
use super::standing_files::{Instances, StandingFiles, check_incarnation, check_not_removed};
use super::surroundings::Surroundings;
use super::voting::Voting;
use super::{MESSAGE_BYTES_MAX, Member, ballot};
use crate::ClusterError;
use crate::config::{ClusterConfig, DiscoveryConfig, MemberConfig, MemberKind, TlsConfig};
use crate::consensus::{
    Chain, Consensus, ConsensusOptions, MemberDetails, MemberId, Members, Recovered, Role, RoleChange,
};
use crate::link::wire::{ClusterName, FRAMES_LENGTH_MAX, Identity};
use crate::link::{ADDRESSES_MAX, DiscoveryOptions, LinkError, LinkOptions, LinkTls, Links, Peer};
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, Clock, Now, OptimizeFor};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{Environment, FilePoint, JournalReader, Record, Retention};
use gapless_log::{Scope, StreamIdentity};
use gapless_stream::event_stream::builder::{Head, OwnJournaling, StreamBuilder};
use gapless_stream::event_stream::{EventStream, StreamRecovery};
use gapless_stream::ingress::{Ingress, IngressCounters, IngressLinks, IngressOptions};
use gapless_stream::member_service::{MemberService, ServiceParts};
use gapless_stream::options::EventStreamOptions;
use gapless_stream::persistence::Opening;
use gapless_stream::responder::Responder;
use gapless_stream::retention_watermark::RetentionWatermark;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::state_keeper::{StateInterval, StateKeeper};
use gapless_stream::taken_directory::{Owner, TakenDirectory};
use gapless_stream::{StreamError, sequencer_recovery, state_keeper};
use gapless_transport::mailbox::Mailbox;
use gapless_wire::aligned_length;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Frames taken in one turn, where a member is tuned for throughput.
const THROUGHPUT_FRAMES_PER_POLL: usize = 256;
/// The longest frame, and room for records before it.
const SEGMENT_LENGTH_MIN: u64 = (FRAME_LENGTH_MAX + (128 << 10)) as u64;
/// Before consensus has said anything.
const NO_ROLE: RoleChange = RoleChange { role: Role::Follower, term: 0, leader: None };

/// A running member.
pub struct ClusterMember {
    /// First, so that nobody asks what stops.
    _control: Option<ControlThread>,
    stream: EventStream,
    shared: Arc<MemberShared>,
    root: PathBuf,
}

impl ClusterMember {
    /// Recovers what the member's directory holds, and starts it: from then on it votes, follows or leads.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use or of something else, damage, no threads, no port.
    pub fn start(config: &ClusterConfig) -> Result<Self, ClusterError> {
        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        start(config, None, Some(clock), &Surroundings::default())
    }

    /// As [`ClusterMember::start`], with a service on the stream: publishers send commands, and get replies. A witness
    /// runs none (decision 9).
    ///
    /// # Errors
    /// As for [`ClusterMember::start`], and those of the service.
    pub fn start_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), Some(Clock::fastest().0), &Surroundings::default())
    }

    /// As [`ClusterMember::start_with`], and by hand as [`ClusterMember::start_by_hand`].
    ///
    /// # Errors
    /// As for [`ClusterMember::start_with`].
    pub fn start_by_hand_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), None, &Surroundings::default())
    }

    /// As [`ClusterMember::start_by_hand_with`], on another machine than this one.
    ///
    /// # Errors
    /// As for [`ClusterMember::start_with`].
    pub fn start_by_hand_with_in(
        config: &ClusterConfig,
        service: Box<dyn MemberService>,
        surroundings: &Surroundings,
    ) -> Result<Self, ClusterError> {
        start(config, Some(service), None, surroundings)
    }

    /// As [`ClusterMember::start`], without threads for its agents: nothing happens but in [`ClusterMember::turn`], and
    /// the caller says what time it is. For tests and simulations.
    ///
    /// # Errors
    /// As for [`ClusterMember::start`].
    pub fn start_by_hand(config: &ClusterConfig) -> Result<Self, ClusterError> {
        Self::start_by_hand_in(config, &Surroundings::default())
    }

    /// As [`ClusterMember::start_by_hand`], on another machine than this one. The same turns at the same times, over the
    /// same network, then do the same.
    ///
    /// # Errors
    /// As for [`ClusterMember::start`].
    pub fn start_by_hand_in(config: &ClusterConfig, surroundings: &Surroundings) -> Result<Self, ClusterError> {
        start(config, None, None, surroundings)
    }

    /// Polls every agent once, in a member that was started by hand. Returns the work done.
    ///
    /// # Errors
    /// What an agent cannot go on after.
    pub fn turn(&mut self, now: Now) -> Result<usize, ClusterError> {
        Ok(self.stream.turn(now)?)
    }

    /// Its stream: readers and publishers inside this process, what it counts, why it has failed.
    #[must_use]
    pub const fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// How it stood a few milliseconds ago; `None` before its first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        self.shared.status()
    }

    /// Asks for something, and waits until the agent has said yes or no; `None` if it has not within `timeout`.
    #[must_use]
    pub fn ask(&self, wish: Wish, timeout: Duration) -> Option<Outcome> {
        self.shared.ask(wish, timeout)
    }

    /// Whether it has stopped, or is about to, because it has fetched the state of another member: to be started again then,
    /// it goes on from there. See [`ClusterError::StartAgain`].
    #[must_use]
    pub fn must_start_again(&self) -> bool {
        is_complete(&self.root)
    }

    /// What others may ask, and look at.
    #[must_use]
    pub fn shared(&self) -> Arc<MemberShared> {
        Arc::clone(&self.shared)
    }

    /// Ends a member that was started by hand as if its process had died.
    pub fn abandon(self) {
        self.stream.abandon();
    }

    /// Stops it: a leader hands over first. Returns the last sequence that was released here.
    ///
    /// # Errors
    /// What made it stop by itself, before or now.
    pub fn stop(self) -> Result<u64, ClusterError> {
        Ok(self.stream.stop()?)
    }
}

fn start(
    config: &ClusterConfig,
    service: Option<Box<dyn MemberService>>,
    clock: Option<Clock>,
    surroundings: &Surroundings,
) -> Result<ClusterMember, ClusterError> {
    let mut service = service.filter(|_| config.own().kind != MemberKind::Witness);
    let head = if service.is_some() { Head::Replica } else { Head::Member };
    let has_threads = clock.is_some();
    let has_helpers = !surroundings.without_helpers;
    let options = config.event_stream_options();
    options.check_member()?;
    if options.clients.is_some() && service.is_none() && config.own().kind != MemberKind::Witness {
        let reason = "an event stream has nodes; there is no service here whose clients could come".to_owned();
        return Err(StreamError::Option { option: "clients", reason }.into());
    }
    let tls = tls(config)?;
    let frames_per_poll_max = match options.optimize_for {
        OptimizeFor::Latency => options.frames_per_poll_max,
        // What is taken in one turn goes to the others in one message.
        OptimizeFor::Throughput => options.frames_per_poll_max.max(THROUGHPUT_FRAMES_PER_POLL),
    };
    // A message takes at most half of it.
    let message_bytes_max = surroundings.message_bytes_max.unwrap_or(MESSAGE_BYTES_MAX);
    let window_bytes_min = 2 * message_bytes_max;
    if options.window_bytes < window_bytes_min {
        let reason = format!("a member's takes {window_bytes_min} bytes at least, not {}", options.window_bytes);
        return Err(StreamError::Option { option: "window", reason }.into());
    }
    if options.persistence.segment_length_bytes < SEGMENT_LENGTH_MIN {
        let (given, least) = (options.persistence.segment_length_bytes, SEGMENT_LENGTH_MIN);
        let reason =
            format!("a member's holds {least} bytes at least, for a frame and records of consensus, not {given}");
        return Err(StreamError::Option { option: "segment_length", reason }.into());
    }
    if options.message_bytes_max() > FRAMES_LENGTH_MAX {
        let (longest, limit) = (options.message_bytes_max(), FRAMES_LENGTH_MAX);
        let reason =
            format!("with its headers a message takes {longest} bytes, and {limit} go to another member at once");
        return Err(StreamError::Option { option: "message_length_max", reason }.into());
    }
    let root = options.directory.as_ref().expect("a replicated tier has a directory");
    let directory = TakenDirectory::take(StreamLayout::new(root))?;
    let layout = directory.layout().clone();
    directory.check_owner(Owner::Member)?;
    check_not_removed(layout.root(), config.member)?;
    check_journal_of(&layout.journal(), stream_id(&config.name), &surroundings.journal)?;
    if service.is_none() && config.own().kind != MemberKind::Witness && layout.outputs().exists() {
        let reason = "a service has run on this member, and this program runs none: its clients would wait for ever. Start the \
                      program of the service, as on the other members";
        return Err(ClusterError::Foreign { path: layout.outputs(), reason: reason.to_owned() });
    }
    let files = StandingFiles::open(layout.root(), surroundings.instance)?;
    check_incarnation(&files, config.incarnation)?;
    install(&layout)?;
    // It is read when somebody needs it; a damaged one is told of now.
    base_file(&files)?;
    let instances = Instances::read(&files)?;
    instances.check_is(config.member)?;
    let stream_id = stream_id(&config.name);
    let identity = StreamIdentity { stream_id, incarnation: config.incarnation };
    let journal_directory = layout.journal();
    let voters = config.others().filter(|each| each.kind != MemberKind::Learner).map(|each| each.id);
    // Who joins is told who it is by a leader.
    let awaited = if config.joins { Vec::new() } else { voters.collect() };
    let is_synced = options.tier.is_synced();
    let found = ballot::Found::read(layout.root(), files.instance())?;
    let environment = surroundings.journal.clone();
    let mut voting = Voting::begin(&files, &journal_directory, environment, &found, is_synced, awaited)?;
    // Records of consensus may be longer than the stream's frames.
    let of_state = points_of(identity, state_keeper::points(&layout.state())?)?;
    let of_service = match &service {
        Some(service) => points_of(identity, service.points(&layout).map_err(ClusterError::Service)?)?,
        None => Vec::new(),
    };
    let (state_sequence, snapshot_sequence) = (newest_readable(&of_state), newest_readable(&of_service));
    let opening = Opening {
        new_stream_id: Some(stream_id),
        points: [of_state, of_service].concat().into_iter().map(without_identity).collect(),
        environment: surroundings.journal.clone(),
        ..Opening::new(options.tier, FRAME_LENGTH_MAX)
    };
    let mut opened = options.persistence.open(&journal_directory, opening)?;
    let root = layout.root().to_owned();
    let aside = PendingCheckpoint::new(&root, files.instance()).on(surroundings.journal.clone());
    let reader = JournalReader::open_in(&journal_directory, surroundings.journal.clone())?;
    let records = reader.records()?.collect();
    let mut recovered = recover(&reader, records, opened.journal.last_sequence(), stream_id, Some(&aside))?;
    if let Some(voted) = &found.record {
        recovered.has_voted(voted).map_err(|source| ClusterError::Recovery { path: root.join("ballot"), source })?;
    }
    let begun = (files.instance(), voting.starts());
    let ballot = Ballot::begin(&root, &found, begun, surroundings.journal.clone())?;
    let behind = voting.recovered(recovered.hard_state().term, ballot.number())?;
    let journal = &mut opened.journal;
    if is_synced {
        journal.sync()?;
        voting.is_synced_now()?;
    }
    let last_sequence = journal.last_sequence();
    // A state is written of what was released alone, so it may know of more than the records: what was fetched is
    // released before the log comes to its place.
    let known_sequence = state_sequence.max(snapshot_sequence);
    let cut_behind = recovered.cut_behind().max(known_sequence);
    let is_longer = last_sequence > cut_behind;
    if is_longer {
        tracing::info!(cut_behind, last_sequence, "frames are cut that nobody was told of");
    }
    if let Some(checkpoint) = recovered.checkpoint().filter(|_| is_longer || aside.exists()) {
        // A cut takes records along that have to stay; one that a crash interrupted is completed.
        journal.sync()?;
        aside.write(&checkpoint)?;
        crash_point("start_before_truncation");
        journal.truncate_after(cut_behind)?;
        crash_point("start_after_truncation");
        journal.append_checkpoint(&checkpoint)?;
        journal.sync()?;
    }
    aside.remove()?;
    let last_sequence = journal.last_sequence();
    recovered.is_committed(known_sequence);
    if let Some(behind) = behind {
        recovered = recovered.behind(behind);
    }
    let committed = recovered.committed_sequence().max(known_sequence);
    let expiry_ns = options.session_expiry.as_nanos().min(u128::from(u64::MAX)) as u64;
    let rules = match &service {
        Some(_) => SequencerRules::of_service(expiry_ns),
        None => SequencerRules::of_stream(expiry_ns),
    };
    if let Some(service) = &mut service {
        service.recover(&layout, identity, committed).map_err(ClusterError::Service)?;
    }
    let sequencer = if last_sequence == 0 {
        gapless_stream::Sequencer::new(rules)
    } else {
        sequencer_recovery::rebuild(&layout, identity, rules, committed)?
    };
    let recovery = StreamRecovery {
        last_sequence,
        state_sequence,
        frames_replayed: committed - state_sequence,
        journal: Some(opened.report.clone()),
    };
    let (syncer, preparer) = (opened.journal.syncer(), opened.journal.preparer());
    let is_witness = config.own().kind == MemberKind::Witness;
    let of_service = match &service {
        Some(_) => snapshot_sequence,
        // Nothing goes before it has heard what the full members have.
        None if is_witness => 0,
        // Who runs no service covers with its state alone.
        None => u64::MAX,
    };
    let [watermark, service_watermark] = RetentionWatermark::shared(&preparer, [state_sequence, of_service]);
    let held_by_all = is_witness.then(|| service_watermark.clone());
    let consensus = Consensus::new(consensus_options(config, identity, options.window_bytes), recovered)?;
    let mut links = links(config, tls, identity, files.instance(), surroundings)?;
    let peers = Peers::new(config, instances);
    peers.tell_instances(&mut links);

    let mut builder = StreamBuilder::new(&options, Some(directory), identity, committed + 1, Some(opened), head)?;
    if !has_helpers {
        builder.without_threads();
    }
    let OwnJournaling { opened, cursor, releaser } = builder.take_journal()?;
    let waker = builder.seats.waker("member");
    let mut writer = builder.take_writer();
    let service_cursor = service.as_ref().map(|_| writer.gating_cursor(Scope::Released));
    let durable = || {
        let syncer = opened.journal.syncer();
        if !has_helpers {
            return Ok(Durable::by_hand(syncer));
        }
        SyncWorker::start(syncer, waker.clone()).map(Durable::Thread)
    };
    let worker = options.tier.is_synced().then(durable).transpose()?;
    let journal = MemberJournal::new(opened.journal, cursor, worker, (aside, ballot));
    let ingress = Ingress::new(
        sequencer,
        writer,
        None,
        IngressLinks {
            publishers: builder.acceptor_links.ingress.clone(),
            service: builder.answers.clone(),
            requests: builder.requests.clone(),
            downstream: builder.seats.downstream(Some("member"), &[head.answering()]),
            counters: IngressCounters::add_to(&builder.counters).map_err(ClusterError::Agent)?,
        },
        IngressOptions {
            frames_per_poll_max,
            fragments_bytes_max: options.fragments_bytes_max,
            message_bytes_max: options.message_bytes_max(),
            throttle: options.throttle,
        },
    );
    let time_min_ns = options.state_interval_min.as_nanos().min(u128::from(u64::MAX)) as u64;
    let interval = StateInterval { frames: options.state_interval_frames, time_min_ns };
    let window = builder.window.clone();
    let start_keeper = if has_helpers { StateKeeper::start } else { StateKeeper::by_hand };
    let mut ingress = ingress.keeping_state(start_keeper(
        layout.state(),
        identity,
        state_sequence,
        interval,
        window,
        (syncer.clone(), watermark),
    )?);
    if let Some(transactions) = service.as_mut().and_then(|service| service.transactions(&waker)) {
        ingress = ingress.running_ahead(transactions);
    }
    if is_witness {
        ingress.serve_nobody();
    }
    ingress.follow(None);
    let ingress_shared = ingress.shared();
    let shared = Arc::new(MemberShared::new(waker.clone()));
    let hashes = Mailbox::new(HASHES_MAX);
    let versions = service.as_ref().map(|service| service.versions());
    let tools = Tools {
        member: member_id(config.member),
        layout: layout.clone(),
        files,
        identity,
        shared: Arc::clone(&shared),
        with_snapshot: service.is_some(),
        open_journal: open_journal(&options, surroundings, stream_id),
        waker: has_helpers.then_some(waker),
    };
    let mut core = Core {
        member: member_id(config.member),
        // Links are looked at once, whether or not something has changed.
        membership: Membership { is_changed: true, ..Membership::default() },
        voting,
        // A witness lets nobody publish, and one that is polled by hand has no socket.
        endpoints: if has_threads && config.own().kind != MemberKind::Witness {
            AdvertisedEndpoints::new(
                &layout,
                options.clients.as_ref().filter(|_| service.is_some()).map(|port| port.address),
            )
        } else {
            AdvertisedEndpoints::default()
        },
        ingress,
        journal,
        releaser,
        consensus,
        effects: None,
        outbox: Vec::new(),
        has_answer: false,
        catch_up: CatchUp::default(),
        readers: JournalReaders::new(journal_directory.clone()),
        late_budget: LateBudget::default(),
        parcels: Parcels::new(tools),
        histories: Histories::default(),
        divergence: DivergenceCheck::new(member_id(config.member), versions.clone(), hashes.clone()),
        layout,
        identity,
        rules,
        feed_session: options.feed_session,
        begins_feeds: rules.takes_events && config.own().kind == MemberKind::Full,
        requests: builder.requests.clone(),
        downstream: builder.seats.downstream(Some("member"), &[head.answering(), "feed", "rewind"]),
        chain: Chain::at(0),
        proposed_sequence: committed,
        proposed_bytes: 0,
        released: committed,
        told_released: committed,
        first_sequence: 1,
        role: NO_ROLE,
        told_role: NO_ROLE,
        entry_bytes_max: ENTRY_BYTES_MAX.min(options.window_bytes / 16),
        dropped_full: 0,
        next_warning_ns: 0,
        next_status_ns: 0,
        told_time: Told::default(),
        held_by_all,
        next_held_ns: 0,
        now: Now::default(),
    };
    take_uncommitted(&mut core, &journal_directory, committed, last_sequence)?;
    let mut member = Member {
        core,
        links,
        peers,
        removed: None,
        waiting: Vec::new(),
        shared: Arc::clone(&shared),
        late: LateAppends::default(),
        message_bytes_max,
        bytes: Vec::new(),
        closes_by_ns: None,
    };
    member.begin_history();
    let (window, egress) = (builder.window.clone(), builder.egress());
    let answering: Box<dyn Agent> = match service {
        None => Box::new(Responder::new(builder.answers.clone(), egress, window)),
        Some(service) => service
            .agent(ServiceParts {
                cursor: service_cursor.expect("made with the service"),
                window,
                egress,
                from_sequencer: builder.answers.clone(),
                sequencer: builder.requests.clone(),
                counters: &builder.counters,
                layout: &member.core.layout,
                identity,
                syncer,
                watermark: service_watermark,
                hashes,
                waker: builder.seats.waker(head.answering()),
                frames_per_poll_max,
                has_helpers,
                snapshots: shared.snapshots_place(),
            })
            .map_err(ClusterError::Service)?,
    };
    let stream = builder.start(Box::new(member), Some(answering), ingress_shared, recovery, clock)?;
    let control = || ControlThread::start(&root, &config.name, options.tier, Arc::clone(&shared));
    let control = has_threads.then(control).transpose()?;
    Ok(ClusterMember { _control: control, stream, shared, root })
}

/// How a journal is made that takes the place of this member's. Nothing of it goes, and nobody waits for zeros.
fn open_journal(options: &EventStreamOptions, surroundings: &Surroundings, stream_id: u128) -> OpenJournal {
    let (mut persistence, tier, environment) =
        (options.persistence.clone(), options.tier, surroundings.journal.clone());
    persistence.retention = Retention::default();
    persistence.zero_initial = false;
    Box::new(move |directory, first_sequence| {
        let (new_stream_id, environment) = (Some(stream_id), environment.clone());
        let opening = Opening { first_sequence, new_stream_id, environment, ..Opening::new(tier, FRAME_LENGTH_MAX) };
        Ok(persistence.open(directory, opening)?.journal)
    })
}

/// The points of files that are all of this cluster's incarnation.
fn points_of(identity: StreamIdentity, points: Vec<FilePoint>) -> Result<Vec<FilePoint>, ClusterError> {
    let expected = (identity.stream_id, identity.incarnation);
    match points.iter().find(|point| point.identity.is_some_and(|found| found != expected)) {
        Some(point) => {
            let reason = "it belongs to another cluster, or to another incarnation of this one".to_owned();
            Err(ClusterError::Foreign { path: point.path.clone(), reason })
        }
        None => Ok(points),
    }
}

/// Where the newest file stands that can be read; 0 without one.
pub(super) fn newest_readable(points: &[FilePoint]) -> u64 {
    points.iter().filter(|point| point.timestamp_ns.is_some()).map(|point| point.sequence).max().unwrap_or(0)
}

/// The journal of a member has an incarnation of its own, states and snapshots have the cluster's.
fn without_identity(point: FilePoint) -> FilePoint {
    FilePoint { identity: None, ..point }
}

/// Refuses the journal of something else, before this is a member's directory. What else is wrong with it, opening it says.
fn check_journal_of(journal: &Path, stream_id: u128, environment: &Environment) -> Result<(), ClusterError> {
    match JournalReader::open_in(journal, environment.clone()) {
        Ok(found) if found.stream_id() != stream_id => Err(foreign_journal(journal)),
        _ => Ok(()),
    }
}

fn foreign_journal(path: &Path) -> ClusterError {
    let reason = "it is the journal of another cluster, or of a stream without one".to_owned();
    ClusterError::Foreign { path: path.to_owned(), reason }
}

/// What the records of a journal say that ends with the frame `last_sequence`, and what was written aside when it was cut.
pub(super) fn recover(
    journal: &JournalReader,
    mut records: Vec<Record>,
    last_sequence: u64,
    stream_id: u128,
    aside: Option<&PendingCheckpoint>,
) -> Result<Recovered, ClusterError> {
    let path = journal.directory().to_owned();
    let foreign = |reason: &str| Err(ClusterError::Foreign { path: path.clone(), reason: reason.to_owned() });
    if journal.stream_id() != stream_id {
        return Err(foreign_journal(&path));
    }
    if records.is_empty() && last_sequence > 0 {
        return foreign("it holds a stream, and no record of a cluster");
    }
    let written = match aside {
        Some(aside) => aside.read()?,
        None => None,
    };
    if let (Some(aside), Some(payload)) = (aside, written) {
        // It was written when the journal was about to be cut, and says all that the records said.
        let of_aside = |source| ClusterError::Recovery { path: aside.path().to_owned(), source };
        let known = records.iter().map(|each| (each.behind_sequence, each.is_checkpoint, &each.payload[..]));
        Recovered::check_aside(known, &payload).map_err(of_aside)?;
        records.push(Record { behind_sequence: last_sequence, is_checkpoint: true, payload });
    }
    let records = records.iter().map(|each| (each.behind_sequence, each.is_checkpoint, &each.payload[..]));
    Recovered::from_records(records, last_sequence).map_err(|source| ClusterError::Recovery { path, source })
}

/// Puts back into the window what is journaled and not known to be committed.
fn take_uncommitted(core: &mut Core, journal: &Path, committed: u64, last: u64) -> Result<(), ClusterError> {
    if committed >= last {
        return Ok(());
    }
    let mut replay = JournalReader::open(journal)?.replay_until(committed + 1, last)?;
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(frame) = replay.next_frame()?.filter(|frame| frame.sequence() <= last) {
        bytes.clear();
        bytes.resize(aligned_length(frame.length()), 0);
        bytes[..frame.length()].copy_from_slice(frame.bytes());
        if !core.ingress.has_room(bytes.len())? {
            let reason = format!(
                "frames {} to {last} are not known to be committed, and the window of this configuration does not hold \
                 them; make stream.window as large as it was",
                committed + 1
            );
            return Err(ClusterError::Foreign { path: journal.to_owned(), reason });
        }
        core.append_all(&bytes)?;
        length += bytes.len();
    }
    core.journal.pass_over(length)?;
    core.proposed_bytes = 0;
    Ok(())
}

/// The same on each member: from the cluster's name (FNV-1a with 128 bits).
pub(super) fn stream_id(name: &str) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    name.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME)).max(1)
}

pub(super) fn member_id(number: u64) -> MemberId {
    MemberId::new(number).expect("the configuration has checked it")
}

fn consensus_options(config: &ClusterConfig, identity: StreamIdentity, window_bytes: usize) -> ConsensusOptions {
    let of_kind = |kind| -> Vec<MemberId> {
        config.members.iter().filter(|each| each.kind == kind).map(|each| member_id(each.id)).collect()
    };
    let witnesses = of_kind(MemberKind::Witness);
    let mut voters = [of_kind(MemberKind::Full), witnesses.clone()].concat();
    voters.sort_unstable();
    let members = if config.joins {
        Members::default()
    } else {
        let details = config.members.iter().map(|each| MemberDetails {
            member: member_id(each.id),
            addresses: each.addresses.clone(),
            joining: None,
        });
        let learners = of_kind(MemberKind::Learner);
        Members { voters, learners, witnesses, details: details.collect(), ..Members::default() }
    };
    let timeout_ns = config.election.timeout.as_nanos() as u64;
    let low = identity.stream_id as u64;
    ConsensusOptions {
        // Not of the incarnation: a cluster that was recovered by force goes on with the chain that it has, and who joins
        // it computes that from the stream's first frame.
        chain_seed: low ^ 1,
        seed: low,
        heartbeat_interval_ns: config.election.heartbeat_interval.as_nanos() as u64,
        election_timeout_min_ns: timeout_ns,
        election_timeout_max_ns: 2 * timeout_ns,
        // What is uncommitted stays in the window of each member, also behind what its readers have not read yet.
        in_flight_bytes_max: (window_bytes / 8) as u64,
        is_witness: config.own().kind == MemberKind::Witness,
        ..ConsensusOptions::new(member_id(config.member), members)
    }
}

/// What the configuration says of TLS; who cannot do as it says does not start.
fn tls(config: &ClusterConfig) -> Result<Option<LinkTls>, LinkError> {
    let load = |files: &TlsConfig| {
        LinkTls::load(&files.certificate, &files.key, &files.authority, &config.name, config.member)
    };
    config.tls.as_ref().map(load).transpose()
}

fn links(
    config: &ClusterConfig,
    tls: Option<LinkTls>,
    identity: StreamIdentity,
    instance: u64,
    surroundings: &Surroundings,
) -> Result<Links, ClusterError> {
    let own = config.own();
    let listen = own.network_addresses().next().map(resolve).transpose()?;
    let listen_shared = own.shared_memory_path();
    let discovery = config.discovery.as_ref().map(|discovery| discovery_options(discovery, own)).transpose()?;
    let cluster = ClusterName::new(&config.name).expect("the configuration has checked it");
    let identity = Identity {
        cluster,
        stream_id: identity.stream_id,
        incarnation: identity.incarnation,
        member: own.id,
        instance,
    };
    let peers: Vec<_> =
        config.others().map(|each| Peer { member: each.id, addresses: each.addresses.clone() }).collect();
    let network = surroundings.network.clone();
    let options = LinkOptions { listen, listen_shared, network, discovery, tls, ..LinkOptions::default() };
    let mut links = Links::open(options, identity, &peers)?;
    if config.joins {
        // The members that its file names may have been replaced since.
        links.set_numbers_used(0);
    }
    Ok(links)
}

/// The others are told the addresses of this member, as they are resolved here.
fn discovery_options(config: &DiscoveryConfig, own: &MemberConfig) -> Result<DiscoveryOptions, ClusterError> {
    let addresses = own.network_addresses().take(ADDRESSES_MAX).map(resolve).collect::<Result<_, _>>()?;
    Ok(DiscoveryOptions { group: config.group, interface: config.interface.clone(), addresses })
}

fn resolve(address: &str) -> Result<SocketAddr, ClusterError> {
    let failed = |source| ClusterError::System { action: format!("looking up {address}"), source };
    let mut found = address.to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(std::io::Error::other("the name has no address")))
}
