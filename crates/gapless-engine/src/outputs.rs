//! Staged outputs of a running handler.

use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputDraft {
    pub schema: u32,
    pub encoding: Encoding,
    pub payload: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerChange {
    Set { timer: u64, deadline_ns: u64 },
    Cancel { timer: u64 },
}

#[derive(Default)]
pub(crate) struct Outputs {
    buffer: Vec<u8>,
    used: usize,
    pub reply: Option<OutputDraft>,
    pub reply_too_long: Option<u64>,
    pub notices: Vec<(u64, OutputDraft)>,
    pub timers: Vec<TimerChange>,
    pub published: Vec<OutputDraft>,
}

impl Outputs {
    #[inline]
    pub fn clear(&mut self) {
        self.used = 0;
        self.reply = None;
        self.reply_too_long = None;
        self.notices.clear();
        self.timers.clear();
        self.published.clear();
    }

    #[inline]
    pub fn stage<E>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<OutputDraft, E> {
        let start = self.used;
        if self.buffer.len() < start + length_max {
            self.buffer.resize(start + length_max, 0);
        }
        let length = encode(&mut self.buffer[start..start + length_max])?;
        assert!(length <= length_max, "an encoder cannot write more than its buffer");
        self.used = start + length;
        Ok(OutputDraft { schema, encoding, payload: start..start + length })
    }

    /// Stages a typed message, whose length is not known before.
    ///
    /// # Errors
    /// The error of `encode`, which leaves what it was given.
    #[inline]
    pub fn stage_typed<E>(
        &mut self,
        schema: u32,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<OutputDraft, E> {
        let start = self.used;
        self.buffer.truncate(start);
        encode(&mut self.buffer)?;
        self.used = self.buffer.len();
        Ok(OutputDraft { schema, encoding: Encoding::Postcard, payload: start..self.used })
    }

    #[inline]
    pub fn payload(&self, draft: &OutputDraft) -> &[u8] {
        &self.buffer[draft.payload.clone()]
    }
}

pub(crate) enum ExecutionOutcome {
    Done,
    /// `detail`: the application's own code, if the handler has refused.
    Refused {
        code: RefusalCode,
        detail: u64,
        text: String,
        dead: bool,
    },
}
