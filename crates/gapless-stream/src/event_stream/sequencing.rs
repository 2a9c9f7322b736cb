//! Starting a stream that puts frames in order: the sequencer as it stood, and its agents.

use super::foundation::{Foundation, Journaling};
use super::options::EventStreamOptions;
use super::{EventStream, StreamRecovery};
use crate::answer_desk::AnswerDesk;
use crate::client::random_token;
use crate::ingress::{Ingress, IngressCounters, IngressLinks, IngressOptions};
use crate::link::ForSequencer;
use crate::persistence::OpenedJournal;
use crate::sequencer::{Sequencer, SequencerRules};
use crate::state_keeper::{self, StateInterval, StateKeeper};
use crate::stream_layout::StreamLayout;
use crate::{StreamError, Tier};
use gapless_agent::Clock;
use gapless_journal::JournalReader;
use gapless_log::StreamIdentity;
use gapless_wire::Fragment;

pub(super) fn start(options: &EventStreamOptions, clock: Option<Clock>) -> Result<EventStream, StreamError> {
    options.check()?;
    let expiry_ns = options.session_expiry.as_nanos().min(u128::from(u64::MAX)) as u64;
    let rules = SequencerRules::of_stream(expiry_ns);
    let layout = Foundation::make_directory(options)?;
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
    let mut foundation = Foundation::lay(options, layout, identity, recovery.last_sequence + 1, opened, "sequencer")?;
    if sequencer.feeds().newest().is_none() {
        // Room there is: nobody else knows the mailbox yet.
        let _ = foundation.requests.push(ForSequencer::BeginFeed { name: options.feed_session });
    }
    let Journaling { releaser, syncer_and_preparer, report } = foundation.journal()?;
    recovery.journal = report;
    let downstream = foundation.seats.downstream(Some("sequencer"), &["journaler", "answers"]);
    let mut ingress = Ingress::new(
        sequencer,
        foundation.take_writer(),
        releaser,
        IngressLinks {
            publishers: foundation.doors.ingress.clone(),
            service: foundation.answers.clone(),
            requests: foundation.requests.clone(),
            downstream,
            counters: IngressCounters::add_to(&foundation.counters)?,
        },
        IngressOptions {
            frames_per_poll_max: options.frames_per_poll_max,
            fragments_bytes_max: options.fragments_bytes_max,
            message_bytes_max: options.message_bytes_max(),
            throttle: options.throttle,
        },
    );
    if let (Some(below), Some(layout)) = (syncer_and_preparer, &foundation.layout) {
        let at = recovery.state_sequence;
        let time_min_ns = options.state_interval_min.as_nanos().min(u128::from(u64::MAX)) as u64;
        let interval = StateInterval { frames: options.state_interval_frames, time_min_ns };
        let window = foundation.window.clone();
        ingress = ingress.keeping_state(StateKeeper::start(layout.state(), identity, at, interval, window, below)?);
    }
    let shared = ingress.shared();
    let desk = AnswerDesk::new(foundation.answers.clone(), foundation.outlets(), foundation.window.clone());
    foundation.run(Box::new(ingress), Some(Box::new(desk)), shared, recovery, clock)
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
