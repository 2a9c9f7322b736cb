//! A handler's outputs while it runs. They are staged here and leave together when it has succeeded,
//! or not at all.

use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use std::ops::Range;

/// A staged message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub schema: u32,
    pub encoding: Encoding,
    /// Where its payload lies in the buffer.
    pub payload: Range<usize>,
}

/// A staged change of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerChange {
    Set { timer: u64, deadline_ns: u64 },
    Cancel { timer: u64 },
}

/// What one call of a handler has produced so far.
#[derive(Default)]
pub(crate) struct Outputs {
    buffer: Vec<u8>,
    used: usize,
    pub reply: Option<Draft>,
    /// The length of a reply that is longer than any may be, bytes; then there is no other.
    pub reply_too_long: Option<u64>,
    pub notices: Vec<(u64, Draft)>,
    pub timers: Vec<TimerChange>,
    pub published: Vec<Draft>,
}

impl Outputs {
    /// Forgets everything; keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.reply = None;
        self.reply_too_long = None;
        self.notices.clear();
        self.timers.clear();
        self.published.clear();
    }

    /// Stages a payload of at most `length_max` bytes, which `encode` writes.
    #[inline]
    pub fn stage<E>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Draft, E> {
        let start = self.used;
        if self.buffer.len() < start + length_max {
            self.buffer.resize(start + length_max, 0);
        }
        let length = encode(&mut self.buffer[start..start + length_max])?;
        assert!(length <= length_max, "an encoder cannot write more than its buffer");
        self.used = start + length;
        Ok(Draft { schema, encoding, payload: start..start + length })
    }

    #[inline]
    pub fn payload(&self, draft: &Draft) -> &[u8] {
        &self.buffer[draft.payload.clone()]
    }
}

/// How a handler's call ended.
pub(crate) enum Outcome {
    Done,
    /// `detail` is the application's own code, where the handler has refused.
    Refused {
        code: RefusalCode,
        detail: u64,
        text: String,
        dead: bool,
    },
}
