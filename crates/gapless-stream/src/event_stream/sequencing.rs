//! Starting a stream that sequences frames: recovers the sequencer and starts its agents.

use super::builder::{Journaling, StreamBuilder, StreamRole};
use super::carried_frames;
use super::{EventStream, StreamRecovery};
use crate::ingress::{Ingress, IngressCounters, IngressLinks, IngressOptions};
use crate::locked_directory::{DirectoryOwner, LockedDirectory};
use crate::messages::SequencerRequest;
use crate::options::EventStreamOptions;
use crate::persistence::{JournalParameters, OpenedJournal};
use crate::responder::Responder;
use crate::retention_watermark::RetentionWatermark;
use crate::sequencer::{Sequencer, SequencerRules};
use crate::sequencer_recovery::RebuiltSequencer;
use crate::sequencer_state_writer::{SequencerStateWriter, StateInterval};
use crate::{AgentRole, StreamError, sequencer_recovery, sequencer_state_writer};
use gapless_agent::Clock;
use gapless_agent::monotonic::saturating_ns;
use gapless_client::stream_layout::StreamLayout;
use gapless_log::StreamIdentity;
use gapless_transport::Tier;
use gapless_transport::token::random_token;

pub(super) fn start(options: &EventStreamOptions, clock: Option<Clock>) -> Result<EventStream, StreamError> {
    options.check()?;
    let expiry_ns = saturating_ns(options.session_expiry);
    let rules = SequencerRules::of_stream(expiry_ns);
    let mut directory =
        options.directory.as_ref().map(|root| LockedDirectory::lock(StreamLayout::new(root))).transpose()?;
    directory.as_mut().map_or(Ok(()), |directory| directory.check_owner(DirectoryOwner::Stream))?;
    if let (Some(directory), Tier::Memory) = (&directory, options.tier) {
        directory.check_no_journal()?;
    }
    let layout = directory.as_ref().map(LockedDirectory::layout);
    let mut identity = StreamIdentity { stream_id: random_token(), incarnation: random_token() as u64 };
    let mut recovery = StreamRecovery::default();
    let mut sequencer = Sequencer::new(rules);
    let mut opened = None;
    if let (Some(layout), true) = (layout, options.tier != Tier::Memory) {
        let points = sequencer_state_writer::points(&layout.state())?;
        if points.is_empty() {
            directory.as_ref().map_or(Ok(()), LockedDirectory::check_journal_exists)?;
        }
        let opening = JournalParameters { points, ..JournalParameters::new(options.tier, options.frame_length_max) };
        let mut found = options.persistence.open(&layout.journal(), opening)?;
        identity = found.identity;
        sequencer = recover(layout, &mut found, rules, &mut recovery)?;
        carried_frames::check(options, &layout.journal(), recovery.last_sequence)?;
        opened = Some(found);
    }
    let mut builder =
        StreamBuilder::new(options, directory, identity, recovery.last_sequence + 1, opened, StreamRole::Sequencer)?;
    if sequencer.feeds().newest().is_none() {
        // There is room: the mailbox is not shared yet.
        let _ = builder.requests.push(SequencerRequest::BeginFeed { name: options.feed_session });
    }
    let Journaling { releaser, syncer_and_preparer, report } = builder.journal()?;
    recovery.journal = report;
    let downstream =
        builder.threads.downstream(Some(AgentRole::Sequencer), &[AgentRole::Journaler, AgentRole::Responder]);
    let mut ingress = Ingress::new(
        sequencer,
        builder.take_writer(),
        releaser,
        IngressLinks {
            publishers: builder.acceptor_links.ingress.clone(),
            service: builder.answers.clone(),
            requests: builder.requests.clone(),
            downstream,
            counters: IngressCounters::add_to(&builder.counters)?,
        },
        IngressOptions {
            frames_per_poll_max: options.frames_per_poll_max,
            fragments_bytes_max: options.fragments_bytes_max,
            message_bytes_max: options.message_bytes_max(),
            throttle: options.throttle,
        },
    );
    if let (Some((syncer, preparer)), Some(layout)) = (syncer_and_preparer, &builder.layout) {
        let at = recovery.state_sequence;
        let [watermark] = RetentionWatermark::shared(&preparer, [at]);
        let below = (syncer, watermark);
        let time_min_ns = saturating_ns(options.state_interval_min);
        let interval = StateInterval { frames: options.state_interval_frames, time_min_ns };
        let window = builder.window.clone();
        ingress =
            ingress.writing_state(SequencerStateWriter::start(layout.state(), identity, at, interval, window, below)?);
    }
    let shared = ingress.shared();
    let responder = Responder::new(builder.answers.clone(), builder.egress(), builder.window.clone());
    builder.start(Box::new(ingress), vec![(AgentRole::Responder, Box::new(responder))], shared, recovery, clock)
}

fn recover(
    layout: &StreamLayout,
    opened: &mut OpenedJournal,
    rules: SequencerRules,
    recovery: &mut StreamRecovery,
) -> Result<Sequencer, StreamError> {
    let journal = &mut opened.journal;
    let (first, last) = (journal.first_sequence(), journal.last_sequence());
    let rebuilt = sequencer_recovery::fold(layout, opened.identity, rules, first, last)?;
    let RebuiltSequencer { sequencer, state_sequence, frames_replayed, is_mid_message } = rebuilt;
    if is_mid_message {
        // A message with missing parts was never released.
        journal.truncate_after(sequencer.last_sequence())?;
    }
    recovery.state_sequence = state_sequence;
    recovery.frames_replayed = frames_replayed;
    recovery.last_sequence = sequencer.last_sequence();
    Ok(sequencer)
}
