//! Staged outputs of a running handler.

use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use std::convert::Infallible;
use std::ops::Range;

/// Longest output of a handler, bytes. Equal in all streams and versions, so that replays hit it at the same messages.
pub const OUTPUT_LENGTH_MAX: usize = gapless_transport::link::ANSWER_LENGTH_MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputDraft {
    pub schema: u32,
    pub encoding: Encoding,
    pub payload: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimerChange {
    Set { timer: u64, deadline_ns: u64 },
    Cancel { timer: u64 },
    SetMessage { message: OutputDraft, deadline_ns: u64 },
    CancelMessage { message: OutputDraft },
}

#[derive(Default)]
pub(crate) struct Outputs {
    buffer: Vec<u8>,
    used: usize,
    /// Encoded message; its memory is reused.
    typed: Vec<u8>,
    pub reply: Option<OutputDraft>,
    pub reply_too_long: Option<u64>,
    pub notices: Vec<(u64, OutputDraft)>,
    pub timers: Vec<TimerChange>,
    pub published: Vec<OutputDraft>,
    /// Keys of the timer messages that the service takes; not an output.
    pub timer_schemas: Vec<u32>,
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

    /// Stages a typed reply of unknown length. Above `length_max` bytes it is lost: its length is returned.
    ///
    /// # Errors
    /// The error of `encode`; the outputs are then unchanged.
    #[inline]
    pub fn stage_reply<E>(
        &mut self,
        schema: u32,
        length_max: usize,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let mut typed = self.take_typed();
        encode(&mut typed)?;
        if typed.len() > length_max {
            return Ok(Some(typed.len() as u64));
        }
        self.reply = Some(self.stage(schema, Encoding::Postcard, typed.len(), |buffer| {
            buffer.copy_from_slice(&typed);
            Ok::<_, E>(typed.len())
        })?);
        self.put_back(typed);
        Ok(None)
    }

    /// Returns an empty buffer for an encoded message; give it back to [`Outputs::put_back`].
    #[inline]
    pub fn take_typed(&mut self) -> Vec<u8> {
        let mut typed = std::mem::take(&mut self.typed);
        typed.clear();
        typed
    }

    #[inline]
    pub fn put_back(&mut self, typed: Vec<u8>) {
        self.typed = typed;
    }

    /// Stages an encoded message.
    pub fn stage_bytes(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) -> OutputDraft {
        let Ok(draft) = self.stage(schema, encoding, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok::<_, Infallible>(payload.len())
        });
        draft
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
