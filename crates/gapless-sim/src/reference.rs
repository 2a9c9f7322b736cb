//! [`Reference`]: the expected replies of the service. One fold of everything that was released, in the one order; each
//! reply that a client receives from any member, at any time and however often, must equal the reply of this one.

use crate::checker::Broken;
use crate::record::{Record, Step, hex};
use crate::trace::hash_of;
use gapless_engine::Fold;
use gapless_engine::dead_letters::DeadLetter;
use gapless_engine::fold::Sink;
use gapless_engine::sessions::{SessionEntry, StoredReply};
use gapless_engine::snapshot;
use gapless_wire::{Encoding, Frame};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A reply as a client receives it: place, time, kind, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub sequence: u64,
    pub timestamp_ns: u64,
    pub schema: u32,
    pub payload: u64,
}

impl Said {
    pub(crate) fn of(reply: &gapless_client::Reply<'_>) -> Self {
        let gapless_client::Reply { sequence, timestamp_ns, schema, .. } = *reply;
        // A client receives the parts of a refusal.
        let payload = reply.refusal.as_ref().map_or_else(|| hash_of(reply.payload), |it| hash_of(it.text.as_bytes()));
        Self { sequence, timestamp_ns, schema, payload }
    }
}

/// The replies, by session and number there.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub replies: BTreeMap<(u64, u64), Said>,
    pub notices: BTreeMap<(u64, u64), Said>,
    /// Timers that were set.
    pub timers: u64,
    /// Of the frame that is applied, a line each, where they are recorded.
    lines: Option<String>,
}

pub(crate) struct Reference {
    fold: Fold,
    is_on_event_stream: bool,
    /// What was released, and what came of it.
    pub record: Record,
    is_recording: bool,
    /// Looks at each frame, too.
    audit: Option<Audit>,
    pub answers: Answers,
}

/// What else must hold of the frames, in their order.
pub(crate) type Audit = Box<dyn FnMut(&Frame<'_>) -> Result<(), Broken>>;

impl Reference {
    pub(crate) fn new(fold: Fold) -> Self {
        let (record, answers) = (Record::default(), Answers::default());
        Self { fold, is_on_event_stream: false, record, is_recording: false, audit: None, answers }
    }

    /// Of a service that folds the stream of others.
    pub(crate) fn on_event_stream(fold: Fold) -> Self {
        Self { is_on_event_stream: true, ..Self::new(fold.on_event_stream()) }
    }

    /// What its handlers make of each frame is recorded.
    pub(crate) fn recording(self) -> Self {
        let answers = Answers { lines: Some(String::new()), ..Answers::default() };
        Self { is_recording: true, answers, ..self }
    }

    /// Becomes what a snapshot holds; its sequence.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<u64, Broken> {
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

    pub(crate) fn with_audit(self, audit: Audit) -> Self {
        Self { audit: Some(audit), ..self }
    }

    /// A frame that nobody had released before.
    pub(crate) fn follow(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        if let Some(audit) = &mut self.audit {
            audit(frame)?;
        }
        self.record.frames.push(frame.bytes().to_vec());
        if self.is_recording {
            let step = self.step(frame)?;
            self.record.push(step);
            return Ok(());
        }
        self.apply(frame)
    }

    /// What the service makes of the next frame.
    pub(crate) fn step(&mut self, frame: &Frame<'_>) -> Result<Step, Broken> {
        self.apply(frame)?;
        let outputs = self.answers.lines.as_mut().map(std::mem::take).unwrap_or_default();
        Ok(Step::new(outputs, self.fold.state()))
    }

    fn apply(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        let applied = match self.is_on_event_stream {
            true => self.fold.apply_event_stream_frame(frame, false, &mut self.answers),
            false => self.fold.apply(frame, &mut self.answers),
        };
        applied.map_err(|error| format!("the service does not take frame {}: {error}", frame.sequence()))
    }
}

impl Answers {
    fn line(&mut self, what: std::fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            let _ = writeln!(lines, "{what}");
        }
    }
}

/// Bytes, and a number for those that are not shown.
fn shown(schema: u32, payload: &[u8]) -> String {
    let (schema, template) = (schema >> 16, schema & 0xffff);
    format!("schema {schema} template {template}, {}, hash {:016x}", hex(payload), hash_of(payload))
}

impl Sink for Answers {
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        if self.lines.is_some() {
            let what = if reply.is_refusal() { "refusal" } else { "reply" };
            self.line(format_args!(
                "{what} to command {} of session {}: {}",
                reply.session_seq,
                session.session,
                shown(reply.schema, &reply.payload)
            ));
        }
        let text = gapless_wire::control::Refusal::from_bytes(&reply.payload).filter(|_| reply.is_refusal());
        let payload = text.map_or_else(|| hash_of(&reply.payload), |refusal| hash_of(refusal.text.as_bytes()));
        let StoredReply { sequence, timestamp_ns, schema, .. } = *reply;
        self.replies.insert((session.session, reply.session_seq), Said { sequence, timestamp_ns, schema, payload });
    }

    fn opened(&mut self, _: &mut SessionEntry) {}

    fn notice(&mut self, session: &SessionEntry) {
        let Some(notice) = session.notices.back() else { return };
        let (sequence, timestamp_ns, schema) = (notice.sequence, notice.timestamp_ns, notice.schema);
        if self.lines.is_some() {
            let text = shown(schema, &notice.payload);
            self.line(format_args!("notice {} to session {}: {text}", notice.number, session.session));
        }
        let said = Said { sequence, timestamp_ns, schema, payload: hash_of(&notice.payload) };
        self.notices.insert((session.session, notice.number), said);
    }

    fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.timers += 1;
        self.line(format_args!("timer {timer} is set to {deadline_ns} ns"));
    }

    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.line(format_args!("timer {timer} is taken back from {deadline_ns} ns"));
    }

    fn dead_letter(&mut self, letter: DeadLetter) {
        self.line(format_args!("dead letter: {}", letter.reason));
    }

    fn publish(&mut self, schema: u32, _: Encoding, payload: &[u8]) {
        if self.lines.is_some() {
            self.line(format_args!("published: {}", shown(schema, payload)));
        }
    }
}
