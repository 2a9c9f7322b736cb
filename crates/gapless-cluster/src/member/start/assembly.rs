//! `MemberAssembly`: assembles a member's agents from the content of its directory, and starts them.

use super::{MemberDirectory, RecoveredLog, member_id, peer_options};
use crate::ClusterError;
use crate::config::{ClusterConfig, MemberKind};
use crate::consensus::Consensus;
use crate::link::LinkTls;
use crate::member::advertised_endpoints::AdvertisedEndpoints;
use crate::member::ballot::Ballot;
use crate::member::core::divergence::{DivergenceCheck, HASHES_MAX};
use crate::member::core::{ENTRY_BYTES_MAX, MemberCore, MemberCoreParts, ReplicatedStream};
use crate::member::journal_sync::JournalSync;
use crate::member::member_environment::MemberEnvironment;
use crate::member::member_journal::MemberJournal;
use crate::member::peers::Peers;
use crate::member::pending_checkpoint::PendingCheckpoint;
use crate::member::shared::MemberShared;
use crate::member::snapshot_transfer::{OpenJournal, TransferContext};
use crate::member::{MESSAGE_BYTES_MAX, Member};
use gapless_agent::monotonic::saturating_ns;
use gapless_agent::{Clock, OptimizeFor, Waker};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{Journal, JournalReader, Retention, SegmentPreparer, Syncer, Zeroing};
use gapless_log::{GatingCursor, Scope, StreamIdentity, WindowWriter};
use gapless_stream::event_stream::builder::{OwnJournaling, StreamBuilder, StreamRole};
use gapless_stream::event_stream::{EventStream, StreamRecovery};
use gapless_stream::ingress::{Ingress, IngressCounters, IngressLinks, IngressOptions};
use gapless_stream::member_service::{
    MemberService, SenderParts, ServiceAgents, ServiceParts, StateHash, TransactionLinks,
};
use gapless_stream::options::EventStreamOptions;
use gapless_stream::persistence::JournalParameters;
use gapless_stream::responder::Responder;
use gapless_stream::retention_watermark::RetentionWatermark;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::sequencer_state_writer::{SequencerStateWriter, StateInterval};
use gapless_stream::transactions::Transactions;
use gapless_stream::{AgentRole, Sequencer, sequencer_recovery};
use gapless_transport::mailbox::Mailbox;
use gapless_wire::aligned_length;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use std::sync::Arc;

const THROUGHPUT_FRAMES_PER_POLL: usize = 256;
pub(super) struct MemberAssembly<'a> {
    pub config: &'a ClusterConfig,
    pub options: &'a EventStreamOptions,
    pub member_environment: &'a MemberEnvironment,
    pub has_threads: bool,
}

struct Watermarks {
    of_state: RetentionWatermark,
    /// Watermark of the service's snapshots; on a witness, of the progress of the full members.
    of_service: RetentionWatermark,
}

impl MemberAssembly<'_> {
    /// Assembles the agents and starts them.
    pub fn start(
        self,
        member_directory: MemberDirectory,
        log: RecoveredLog,
        mut service: Option<Box<dyn MemberService>>,
        tls: Option<LinkTls>,
        clock: Option<Clock>,
    ) -> Result<(EventStream, Arc<MemberShared>), ClusterError> {
        let (config, options, member_environment) = (self.config, self.options, self.member_environment);
        let MemberDirectory { directory, layout, files, instances, identity } = member_directory;
        let RecoveredLog { opened, consensus, voting, ballot, pending_checkpoint, .. } = log;
        let RecoveredLog { state_sequence, snapshot_sequence, committed, last_sequence, .. } = log;
        let head = if service.is_some() { StreamRole::Replica } else { StreamRole::Member };
        let rules = self.rules(service.is_some());
        if let Some(service) = &mut service {
            service.recover(&layout, identity, committed).map_err(ClusterError::Service)?;
        }
        let sequencer = if last_sequence == 0 {
            Sequencer::new(rules)
        } else {
            sequencer_recovery::rebuild(&layout, identity, rules, committed)?
        };
        let recovery = StreamRecovery {
            last_sequence,
            state_sequence,
            frames_replayed: committed - state_sequence,
            journal: Some(opened.report.clone()),
        };
        let syncer = opened.journal.syncer();
        let covered = service.is_some().then_some(snapshot_sequence);
        let watermarks = self.watermarks(&opened.journal.preparer(), state_sequence, covered);
        let retention_watermark = self.is_witness().then(|| watermarks.of_service.clone());
        let of_consensus = peer_options::consensus_options(config, identity, options.window_bytes);
        let consensus = Consensus::new(of_consensus, consensus)?;
        let mut links = peer_options::links(config, tls, identity, files.instance(), member_environment)?;
        let peers = Peers::new(config, instances);
        peers.apply_instances(&mut links);

        let mut builder = StreamBuilder::new(options, Some(directory), identity, committed + 1, Some(opened), head)?;
        if member_environment.without_helpers {
            builder.without_threads();
        }
        let OwnJournaling { opened, cursor, releaser } = builder.take_journal()?;
        let waker = builder.threads.waker(AgentRole::Member);
        let mut writer = builder.take_writer();
        let service_cursor = service.as_ref().map(|_| writer.gating_cursor(Scope::Released));
        let journal = self.journal(opened.journal, cursor, &waker, (pending_checkpoint, ballot))?;
        let state_writer =
            self.state_writer(&layout, &builder, identity, state_sequence, (syncer.clone(), watermarks.of_state))?;
        let ingress = self.ingress(&builder, head, sequencer, writer)?.writing_state(state_writer);
        let mut ingress = marking(ingress, service.as_deref());
        let wakers = (&waker, &builder.threads.waker(head.answering()));
        if let Some(transactions) = transactions_of(service.as_mut(), wakers, &builder, &layout) {
            ingress = ingress.with_speculative_execution(transactions);
        }
        if self.is_witness() {
            ingress.redirect_all();
        }
        ingress.follow(None);
        let ingress_shared = ingress.shared();
        let (shared, hashes) = (Arc::new(MemberShared::new(waker.clone())), Mailbox::new(HASHES_MAX));
        let transfer_context = TransferContext {
            member: member_id(config.member),
            layout: layout.clone(),
            files,
            identity,
            shared: Arc::clone(&shared),
            with_snapshot: service.is_some(),
            open_journal: open_journal(options, member_environment, identity.stream_id),
            waker: (!member_environment.without_helpers).then_some(waker),
        };
        let parts = MemberCoreParts {
            member: member_id(config.member),
            voting,
            endpoints: self.endpoints(&layout, service.is_some()).shared_in(shared.endpoints_slot()),
            ingress,
            journal,
            releaser,
            consensus,
            transfer_context,
            divergence: divergence_check(config, service.as_deref(), &hashes),
            stream: ReplicatedStream {
                layout,
                identity,
                rules,
                feed_session: options.feed_session,
                fault_rules: service.as_ref().and_then(|service| service.fault_rules_to_write()),
                begins_feeds: rules.takes_events && config.own().kind == MemberKind::Full,
                requests: builder.requests.clone(),
                downstream: builder
                    .threads
                    .downstream(Some(AgentRole::Member), &[head.answering(), AgentRole::Feed, AgentRole::Rewind]),
                entry_bytes_max: ENTRY_BYTES_MAX.min(options.window_bytes / 16),
            },
            committed,
            retention_watermark,
        };
        let mut core = MemberCore::new(parts);
        take_uncommitted(&mut core, committed, last_sequence)?;
        // A message takes at most half of the window.
        let message_bytes_max = member_environment.message_bytes_max.unwrap_or(MESSAGE_BYTES_MAX);
        let mut member = Member::new(core, links, peers, Arc::clone(&shared), message_bytes_max);
        member.begin_history();
        let (window, egress) = (builder.window.clone(), builder.egress());
        let answering = match service {
            None => ServiceAgents::alone(Responder::new(builder.answers.clone(), egress, window)),
            Some(service) => service
                .agent(ServiceParts {
                    cursor: service_cursor.expect("made with the service"),
                    window,
                    egress,
                    sender: self.sender_parts(&builder),
                    from_sequencer: builder.answers.clone(),
                    sequencer: builder.requests.clone(),
                    sequencer_waker: builder.threads.waker(AgentRole::Member),
                    counters: &builder.counters,
                    layout: &member.core.stream.layout,
                    identity,
                    syncer,
                    watermark: watermarks.of_service,
                    hashes,
                    waker: builder.threads.waker(head.answering()),
                    frames_per_poll_max: self.frames_per_poll_max(),
                    has_helpers: !member_environment.without_helpers,
                    snapshots: shared.snapshots_slot(),
                })
                .map_err(ClusterError::Service)?,
        };
        let (member, agents) = (Box::new(member), answering.by_role(head.answering()));
        Ok((builder.start(member, agents, ingress_shared, recovery, clock)?, shared))
    }

    fn sender_parts(&self, builder: &StreamBuilder<'_>) -> Option<SenderParts> {
        builder.threads.has(AgentRole::Sender).then(|| SenderParts {
            queue_depth: self.options.member_threads.send_queue_depth,
            waker: builder.threads.waker(AgentRole::Sender),
        })
    }

    fn is_witness(&self) -> bool {
        self.config.own().kind == MemberKind::Witness
    }

    fn rules(&self, has_service: bool) -> SequencerRules {
        let expiry_ns = saturating_ns(self.options.session_expiry);
        if has_service { SequencerRules::of_service(expiry_ns) } else { SequencerRules::of_stream(expiry_ns) }
    }

    fn frames_per_poll_max(&self) -> usize {
        match self.options.optimize_for {
            OptimizeFor::Latency => self.options.frames_per_poll_max,
            // The frames of one turn are sent to the others in one message.
            OptimizeFor::Throughput => self.options.frames_per_poll_max.max(THROUGHPUT_FRAMES_PER_POLL),
        }
    }

    fn watermarks(
        &self,
        preparer: &SegmentPreparer,
        state_sequence: u64,
        snapshot_sequence: Option<u64>,
    ) -> Watermarks {
        let of_service = match snapshot_sequence {
            Some(sequence) => sequence,
            // No segment is deleted before the leader reports the full members' progress.
            None if self.is_witness() => 0,
            None => u64::MAX,
        };
        let [of_state, of_service] = RetentionWatermark::shared(preparer, [state_sequence, of_service]);
        Watermarks { of_state, of_service }
    }

    fn journal(
        &self,
        journal: Journal,
        cursor: GatingCursor,
        waker: &Waker,
        files: (PendingCheckpoint, Ballot),
    ) -> Result<MemberJournal, ClusterError> {
        let durable = || {
            let syncer = journal.syncer();
            if self.member_environment.without_helpers {
                return Ok(JournalSync::by_hand(syncer));
            }
            JournalSync::start(syncer, waker.clone(), self.options.sync_cpus)
        };
        let worker = self.options.tier.is_synced().then(durable).transpose()?;
        let is_flushed_by_frame = self.options.persistence.flush_on_commit;
        Ok(MemberJournal::new((journal, cursor), worker, files, is_flushed_by_frame))
    }

    fn state_writer(
        &self,
        layout: &StreamLayout,
        builder: &StreamBuilder<'_>,
        identity: StreamIdentity,
        state_sequence: u64,
        below: (Syncer, RetentionWatermark),
    ) -> Result<SequencerStateWriter, ClusterError> {
        let time_min_ns = saturating_ns(self.options.state_interval_min);
        let interval = StateInterval { frames: self.options.state_interval_frames, time_min_ns };
        let window = builder.window.clone();
        let start = if self.member_environment.without_helpers {
            SequencerStateWriter::by_hand
        } else {
            SequencerStateWriter::start
        };
        Ok(start(layout.state(), identity, state_sequence, interval, window, below)?)
    }

    fn ingress(
        &self,
        builder: &StreamBuilder<'_>,
        head: StreamRole,
        sequencer: Sequencer,
        writer: WindowWriter,
    ) -> Result<Ingress, ClusterError> {
        let links = IngressLinks {
            publishers: builder.acceptor_links.ingress.clone(),
            service: builder.answers.clone(),
            requests: builder.requests.clone(),
            downstream: builder.threads.downstream(Some(AgentRole::Member), &[head.answering()]),
            counters: IngressCounters::add_to(&builder.counters).map_err(ClusterError::Agent)?,
        };
        let options = IngressOptions {
            frames_per_poll_max: self.frames_per_poll_max(),
            fragments_bytes_max: self.options.fragments_bytes_max,
            message_bytes_max: self.options.message_bytes_max(),
            throttle: self.options.throttle,
        };
        Ok(Ingress::new(sequencer, writer, None, links, options))
    }

    fn endpoints(&self, layout: &StreamLayout, has_service: bool) -> AdvertisedEndpoints {
        // A witness accepts no publishers, and a member polled by hand has no socket.
        if !self.has_threads || self.is_witness() {
            return AdvertisedEndpoints::default();
        }
        let port = self.options.clients.as_ref().filter(|_| has_service);
        AdvertisedEndpoints::new(layout, port.map(|port| port.address))
    }
}

/// Retention deletes nothing of the new journal, and it is not filled with zeros in advance.
fn open_journal(options: &EventStreamOptions, member_environment: &MemberEnvironment, stream_id: u128) -> OpenJournal {
    let (mut persistence, tier, environment) =
        (options.persistence.clone(), options.tier, member_environment.journal.clone());
    persistence.retention = Retention::default();
    persistence.zeroing = Zeroing::None;
    Box::new(move |directory, first_sequence| {
        let (new_stream_id, environment) = (Some(stream_id), environment.clone());
        let opening = JournalParameters {
            first_sequence,
            new_stream_id,
            environment,
            ..JournalParameters::new(tier, FRAME_LENGTH_MAX)
        };
        Ok(persistence.open(directory, opening)?.journal)
    })
}

/// Back into the window, with frames not known to be committed.
fn take_uncommitted(core: &mut MemberCore, committed: u64, last: u64) -> Result<(), ClusterError> {
    let journal = core.stream.layout.journal();
    if committed >= last {
        return Ok(());
    }
    let mut replay = JournalReader::open(&journal)?.replay_until(committed + 1, last)?;
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
            return Err(ClusterError::Foreign { path: journal, reason });
        }
        core.append_all(&bytes)?;
        length += bytes.len();
    }
    core.journal.pass_over(length)?;
    core.proposed_bytes = 0;
    Ok(())
}

/// A member without a service is of an event stream, whose frames have no marks.
fn marking(ingress: Ingress, service: Option<&dyn MemberService>) -> Ingress {
    match service.and_then(MemberService::handled_commands) {
        Some(handled) => ingress.handling_only(handled),
        None => ingress,
    }
}

fn transactions_of(
    service: Option<&mut Box<dyn MemberService>>,
    (member, service_waker): (&Waker, &Waker),
    builder: &StreamBuilder<'_>,
    layout: &StreamLayout,
) -> Option<Box<dyn Transactions>> {
    let (window, counters) = (&builder.window, &builder.counters);
    service?.transactions(&TransactionLinks { member, service: service_waker, window, layout, counters })
}

fn divergence_check(
    config: &ClusterConfig,
    service: Option<&dyn MemberService>,
    hashes: &Mailbox<StateHash>,
) -> DivergenceCheck {
    DivergenceCheck::new(member_id(config.member), service.map(MemberService::versions), hashes.clone())
}
