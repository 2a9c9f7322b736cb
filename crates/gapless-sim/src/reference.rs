//! [`Reference`]: the expected replies of the service. One fold of everything that was released, in the one order; each
//! reply that a client receives from any member, at any time and however often, must equal the reply of this one.

use crate::checker::Broken;
use crate::trace::hash_of;
use gapless_engine::Fold;
use gapless_engine::dead_letters::DeadLetter;
use gapless_engine::fold::Sink;
use gapless_engine::sessions::{SessionEntry, StoredReply};
use gapless_wire::Frame;
use std::collections::BTreeMap;

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
}

pub(crate) struct Reference {
    fold: Fold,
    /// Looks at each frame, too.
    audit: Option<Audit>,
    pub answers: Answers,
}

/// What else must hold of the frames, in their order.
pub(crate) type Audit = Box<dyn FnMut(&Frame<'_>) -> Result<(), Broken>>;

impl Reference {
    pub(crate) fn new(fold: Fold) -> Self {
        Self { fold, audit: None, answers: Answers::default() }
    }

    pub(crate) fn with_audit(self, audit: Audit) -> Self {
        Self { audit: Some(audit), ..self }
    }

    /// A frame that nobody had released before.
    pub(crate) fn follow(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        if let Some(audit) = &mut self.audit {
            audit(frame)?;
        }
        let applied = self.fold.apply(frame, &mut self.answers);
        applied.map_err(|error| format!("the service does not take frame {}: {error}", frame.sequence()))
    }
}

impl Sink for Answers {
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        let text = gapless_wire::control::Refusal::from_bytes(&reply.payload).filter(|_| reply.is_refusal());
        let payload = text.map_or_else(|| hash_of(&reply.payload), |refusal| hash_of(refusal.text.as_bytes()));
        let StoredReply { sequence, timestamp_ns, schema, .. } = *reply;
        self.replies.insert((session.session, reply.session_seq), Said { sequence, timestamp_ns, schema, payload });
    }

    fn opened(&mut self, _: &mut SessionEntry) {}

    fn notice(&mut self, session: &SessionEntry) {
        let Some(notice) = session.notices.back() else { return };
        let (sequence, timestamp_ns, schema) = (notice.sequence, notice.timestamp_ns, notice.schema);
        let said = Said { sequence, timestamp_ns, schema, payload: hash_of(&notice.payload) };
        self.notices.insert((session.session, notice.number), said);
    }

    fn set_timer(&mut self, _: u64, _: u64) {
        self.timers += 1;
    }

    fn cancel_timer(&mut self, _: u64, _: u64) {}

    fn dead_letter(&mut self, _: DeadLetter) {}
}
