//! State recovery at a start: the newest snapshot, then the journal after it. Also a debugging replay over a copied
//! journal, up to any sequence.

use crate::fold::{Fold, OnOtherOutputs, Policy, Sink};
use crate::handler_guard::describe;
use crate::interruption::{InterruptedQuery, InterruptedSpeculation, ReplayProgress, log_interrupted_query};
use crate::output_record::{ComparingSink, OutputDifference, RecordedOutputs};
use crate::service::Service;
use crate::{EngineError, skips, snapshot};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::JournalReader;
use gapless_log::StreamIdentity;
use gapless_stream::Sequencer;
use gapless_stream::logger::utc;
use gapless_stream::sequencer::SequencerRules;
use gapless_wire::control::TimerFired;
use gapless_wire::{Frame, Kind};
use std::path::Path;

/// Result of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoverySummary {
    /// 0 without a snapshot.
    pub snapshot_sequence: u64,
    pub frames_replayed: u64,
    pub last_sequence: u64,
    /// First frame of a message that the journal holds only in part: never released, so the journal is to be truncated
    /// before it.
    pub incomplete_from: Option<u64>,
    /// Frame in progress when the previous process was killed or aborted; 0: none.
    pub interrupted_sequence: u64,
    /// Command ahead of the stream when the previous process was killed or aborted.
    pub interrupted_speculation: Option<InterruptedSpeculation>,
    /// Query that was answered when the previous process was killed or aborted.
    pub interrupted_query: Option<InterruptedQuery>,
}

/// Rebuilds `fold` and `sequencer` up to `sequence_max`. The caller has checked that snapshots and journal come from
/// one history. `recorded`, given at the start of a service, is compared with the outputs of the replay.
///
/// # Errors
/// Damage, a gap between snapshot and journal, or a case that the policy makes an error.
pub fn recover(
    layout: &StreamLayout,
    identity: StreamIdentity,
    fold: &mut Fold,
    sequencer: &mut Sequencer,
    (sink, recorded): (&mut dyn Sink, Option<&mut RecordedOutputs>),
    sequence_max: u64,
) -> Result<RecoverySummary, EngineError> {
    let reader = JournalReader::open(layout.journal())?;
    let first = reader.first_sequence();
    let usable = snapshot::list(&layout.snapshots())?.into_iter().rev().find(|(sequence, _)| *sequence <= sequence_max);
    let mut recovered = RecoverySummary::default();
    if let Some((sequence, path)) = usable {
        snapshot::restore(fold, &path, identity)?;
        if fold.last_sequence() != sequence {
            let reason = format!("its name says sequence {sequence}, its content {}", fold.last_sequence());
            return Err(EngineError::Snapshot { path, reason });
        }
        recovered.snapshot_sequence = sequence;
    }
    fold.skip(skips::read(layout, &reader, fold.last_sequence())?);
    sequencer.resume_at(fold.last_sequence(), fold.last_timestamp_ns());
    for entry in fold.sessions().sorted() {
        sequencer.restore_session(entry.session, entry.token, entry.last_session_seq + 1, entry.last_active_ns);
    }
    let from = fold.last_sequence() + 1;
    if from < first {
        let reason = format!("it is needed from sequence {from}, but begins at {first}, and no snapshot covers that");
        return Err(EngineError::Corrupt { sequence: from, reason: format!("the journal: {reason}") });
    }
    // No writer truncates the journal meanwhile: this process owns it, or a majority has committed its frames.
    let mut replay = reader.replay_until(from, sequence_max)?;
    // A debugging replay writes nothing.
    let replaying = recorded.is_some().then(|| ReplayProgress::begin(layout.root())).transpose()?;
    let replaying = replaying.map(|(replaying, before, ahead)| {
        recovered.interrupted_query = log_interrupted_query(layout.root(), &*fold.service);
        (recovered.interrupted_sequence, recovered.interrupted_speculation) = (before, ahead);
        replaying
    });
    let mut nothing = RecordedOutputs::nothing(layout.root(), identity);
    let recorded = recorded.unwrap_or(&mut nothing);
    let on_other_outputs = fold.policy().on_other_outputs;
    let mut sink = ComparingSink::new(sink, recorded);
    while let Some(frame) = replay.next_frame()? {
        if recovered.frames_replayed == 0 {
            let last = reader.last_sequence().map_or(sequence_max, |last| last.min(sequence_max));
            sink.recorded.check_program(fold, (from, last))?;
        }
        if let Some(replaying) = &replaying {
            replaying.at(frame.sequence());
        }
        sink.before(frame.sequence());
        fold.apply(&frame, &mut sink)?;
        let compared = sink.after(frame.sequence(), frame.timestamp_ns());
        match compared.map_err(|other| with_command(other, &reader)) {
            Err(error) if on_other_outputs == OnOtherOutputs::Warn => tracing::warn!(%error, "a replay differs"),
            compared => compared?,
        }
        recovered.frames_replayed += 1;
        if frame.fragment().is_last() {
            sequencer.observe(&frame);
            recovered.incomplete_from = None;
        } else if frame.fragment().index == 0 {
            recovered.incomplete_from = Some(frame.sequence());
        }
    }
    if recovered.incomplete_from.is_some() {
        fold.forget_incomplete(sequencer.last_sequence(), sequencer.last_timestamp_ns());
    }
    for (timer, deadline_ns) in fold.timers.iter() {
        sequencer.set_timer(timer, deadline_ns);
    }
    recovered.last_sequence = fold.last_sequence();
    Ok(recovered)
}

#[cold]
fn with_command(other: OutputDifference, reader: &JournalReader) -> EngineError {
    let OutputDifference { first, last, at, path } = other;
    let place = match (at.start(), at.end()) {
        (from, to) if from == to => {
            let replay = reader.replay(*from).ok();
            let command = replay.and_then(|mut replay| Some(describe_frame(&replay.next_frame().ok()??)));
            format!("sequence {from}{}", command.map(|command| format!(" ({command})")).unwrap_or_default())
        }
        (from, to) => format!("one of the sequences {from} to {to}"),
    };
    EngineError::OtherOutputs { first, last, at, place, path }
}

fn describe_frame(frame: &Frame<'_>) -> String {
    let (session, session_seq) = (frame.session(), frame.session_seq());
    match (frame.kind(), TimerFired::from_bytes(frame.payload())) {
        (Kind::Command, _) => {
            format!("{}, session {session}, session_seq {session_seq}", describe(frame.schema(), frame.encoding()))
        }
        (Kind::Timer, Some(TimerFired { timer, deadline_ns })) => format!("timer {timer}, due at {}", utc(deadline_ns)),
        (kind, _) => format!("{kind:?} of session {session}"),
    }
}

/// Replays a copy of a service's directory up to `sequence_max`. Writes nothing.
///
/// # Errors
/// As for [`recover`].
pub fn replay_copy<S: Service>(
    directory: &Path,
    service: S,
    policy: Policy,
    sequence_max: u64,
    sink: &mut dyn Sink,
) -> Result<(Fold, RecoverySummary), EngineError> {
    let layout = StreamLayout::new(directory);
    let reader = JournalReader::open(layout.journal())?;
    for point in snapshot::points(&layout.snapshots())? {
        reader.check_point(&point)?;
    }
    let identity = StreamIdentity { stream_id: reader.stream_id(), incarnation: reader.incarnation() };
    let mut fold = Fold::new(service, policy);
    let mut sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
    let recovered = recover(&layout, identity, &mut fold, &mut sequencer, (sink, None), sequence_max)?;
    Ok((fold, recovered))
}
