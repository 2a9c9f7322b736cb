//! [`Reference`]: the expected replies, from one fold of all released frames in order. Each reply of any member must
//! equal the one here.

use crate::checker::Violation;
use crate::handler_fault::{FailurePlace, HandlerFault};
use crate::output::HandlerOutput;
use crate::record::{FrameEffect, RunRecord};
use crate::trace::hash_of;
use gapless_engine::Fold;
use gapless_engine::dead_letters::DeadLetter;
use gapless_engine::fold::Sink;
use gapless_engine::sessions::{SessionEntry, StoredReply};
use gapless_engine::snapshot;
use gapless_wire::control::Refusal;
use gapless_wire::{Encoding, Frame};
use std::collections::BTreeMap;

/// Position, time, type, payload hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedReply {
    pub sequence: u64,
    pub timestamp_ns: u64,
    pub schema: u32,
    pub payload: u64,
}

impl ExpectedReply {
    pub(crate) fn of(reply: &gapless_client::Reply<'_>) -> Self {
        let gapless_client::Reply { sequence, timestamp_ns, schema, .. } = *reply;
        // A client receives the parts of a refusal.
        let payload = reply.refusal.as_ref().map_or_else(|| hash_of(reply.payload), |it| hash_of(it.text.as_bytes()));
        Self { sequence, timestamp_ns, schema, payload }
    }
}

/// Replies by session and number in the session.
#[derive(Debug, Default)]
pub(crate) struct ReferenceAnswers {
    pub replies: BTreeMap<(u64, u64), ExpectedReply>,
    pub notices: BTreeMap<(u64, u64), ExpectedReply>,
    pub timers: u64,
    outputs: Option<Vec<HandlerOutput>>,
}

pub(crate) struct Reference {
    fold: Fold,
    is_on_event_stream: bool,
    pub record: RunRecord,
    is_recording: bool,
    audit: Option<FrameAudit>,
    pub answers: ReferenceAnswers,
    /// A handler broke a rule here.
    pub fault: Option<FailurePlace>,
}

/// Additional invariant, checked in order.
pub(crate) type FrameAudit = Box<dyn FnMut(&Frame<'_>) -> Result<(), Violation>>;

impl Reference {
    pub(crate) fn new(fold: Fold) -> Self {
        let (record, answers) = (RunRecord::default(), ReferenceAnswers::default());
        Self { fold, is_on_event_stream: false, record, is_recording: false, audit: None, answers, fault: None }
    }

    /// Folds a stream of other publishers.
    pub(crate) fn on_event_stream(fold: Fold) -> Self {
        Self { is_on_event_stream: true, ..Self::new(fold.on_event_stream()) }
    }

    pub(crate) fn recording(self) -> Self {
        let answers = ReferenceAnswers { outputs: Some(Vec::new()), ..ReferenceAnswers::default() };
        Self { is_recording: true, answers, ..self }
    }

    /// Returns the snapshot's sequence.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<u64, Violation> {
        let failed = |error: std::io::Error| error.to_string();
        let file = tempfile::NamedTempFile::new().map_err(failed)?;
        std::fs::write(file.path(), bytes).map_err(failed)?;
        let identity = snapshot::identity_of(file.path()).map_err(|error| error.to_string())?;
        snapshot::restore(&mut self.fold, file.path(), identity).map_err(|error| error.to_string())?;
        Ok(self.fold.last_sequence())
    }

    pub(crate) const fn last_sequence(&self) -> u64 {
        self.fold.last_sequence()
    }

    pub(crate) fn with_audit(self, audit: FrameAudit) -> Self {
        Self { audit: Some(audit), ..self }
    }

    pub(crate) fn follow(&mut self, frame: &Frame<'_>) -> Result<(), Violation> {
        if let Some(audit) = &mut self.audit {
            audit(frame)?;
        }
        self.record.follow(frame);
        if self.is_recording {
            let step = self.step(frame)?;
            self.record.push(step);
            return Ok(());
        }
        self.apply(frame)
    }

    pub(crate) fn step(&mut self, frame: &Frame<'_>) -> Result<FrameEffect, Violation> {
        self.apply(frame)?;
        let outputs = self.answers.outputs.as_mut().map(std::mem::take).unwrap_or_default();
        Ok(FrameEffect::new(outputs, self.fold.state()))
    }

    fn apply(&mut self, frame: &Frame<'_>) -> Result<(), Violation> {
        let applied = match self.is_on_event_stream {
            true => self.fold.apply_event_stream_frame(frame, false, &mut self.answers),
            false => self.fold.apply(frame, &mut self.answers),
        };
        applied.map_err(|error| match HandlerFault::of_engine(&error) {
            Some(HandlerFault { place, text: said }) => {
                self.fault = Some(place);
                said
            }
            None => format!("the service does not take frame {}: {error}", frame.sequence()),
        })
    }
}

impl ReferenceAnswers {
    fn record(&mut self, output: impl FnOnce() -> HandlerOutput) {
        if let Some(outputs) = &mut self.outputs {
            outputs.push(output());
        }
    }
}

fn output_of(session: &SessionEntry, reply: &StoredReply) -> HandlerOutput {
    let (number, session) = (reply.session_seq, session.session);
    match Refusal::from_bytes(&reply.payload).filter(|_| reply.is_refusal()) {
        Some(Refusal { code, detail, text }) => {
            HandlerOutput::Words(format!("refusal of command {number} of session {session}: {code:?} {detail}, {text}"))
        }
        None => {
            let encoding = Encoding::from_flags(reply.flags);
            let what = format!("reply to command {number} of session {session}");
            HandlerOutput::message(what, reply.schema, encoding, &reply.payload)
        }
    }
}

impl Sink for ReferenceAnswers {
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        self.record(|| output_of(session, reply));
        let text = Refusal::from_bytes(&reply.payload).filter(|_| reply.is_refusal());
        let payload = text.map_or_else(|| hash_of(&reply.payload), |refusal| hash_of(refusal.text.as_bytes()));
        let StoredReply { sequence, timestamp_ns, schema, .. } = *reply;
        self.replies
            .insert((session.session, reply.session_seq), ExpectedReply { sequence, timestamp_ns, schema, payload });
    }

    fn opened(&mut self, _: &mut SessionEntry) {}

    fn notice(&mut self, session: &SessionEntry) {
        let Some(notice) = session.notices.back() else { return };
        let (sequence, timestamp_ns, schema) = (notice.sequence, notice.timestamp_ns, notice.schema);
        self.record(|| {
            let what = format!("notice {} to session {}", notice.number, session.session);
            HandlerOutput::message(what, schema, notice.encoding, &notice.payload)
        });
        let said = ExpectedReply { sequence, timestamp_ns, schema, payload: hash_of(&notice.payload) };
        self.notices.insert((session.session, notice.number), said);
    }

    fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.timers += 1;
        self.record(|| HandlerOutput::TimerSet { timer, deadline_ns });
    }

    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.record(|| HandlerOutput::TimerTakenBack { timer, deadline_ns });
    }

    fn dead_letter(&mut self, letter: DeadLetter) {
        self.record(|| HandlerOutput::Words(format!("dead letter: {}", letter.reason)));
    }

    fn publish(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) {
        self.record(|| HandlerOutput::message("published".to_owned(), schema, encoding, payload));
    }
}
