//! Encoding of a transaction, the effects of a handler, in the stream.
//!
//! ```text
//!   0  u8   version, 1
//!   1  u8   outcome: 0 done, 1 refused, 2 refused and recorded as a dead letter, 3 done, its reply is too long
//!   2  u16  encoding of the reply
//!   4  u32  schema of the reply; the code of a refusal; the length of a reply that is too long, at most u32::MAX
//!   8  u64  hash of the state after the transaction
//!  16  u32  layout of the state: a hash of its collections' types and versions
//!  20  u32  length of the reply, or of a refusal's text; u32::MAX without a reply
//!  24  u32  number of notices         for a refusal, here u64: the application's own code
//!  28  u32  number of timer changes
//!  32  the reply or the text; each notice: u64 session, u32 schema, u16 encoding, u32 length, bytes; each timer
//!      change: u8 kind (1 set, 2 cancel), u64 timer, u64 deadline (0 for a cancel); or u8 kind (3 set, 4 cancel), u64
//!      schema of the timer's message, u64 deadline (0 for a cancel), u32 length, the message; then, up to the end, the changes of
//!      the state in the encoding of [`changes`](crate::store::changes); may be empty
//! ```
//! Numbers are little-endian. The frame's header has the session of the command. A refused command has no notices, no
//! timers and no changes.

use crate::outputs::{ExecutionOutcome, OutputDraft, Outputs, TimerChange};
use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use gapless_wire::fields::{FieldReader, FieldWriter, u16_at, u32_at, u64_at};

pub const VERSION: u8 = 1;
pub const HEAD_LENGTH: usize = 32;
const HASH_AT: usize = 8;
const LENGTH_AT: usize = 20;
const COUNTS_AT: usize = 24;
const NO_REPLY: u32 = u32::MAX;
const DONE: u8 = 0;
const DONE_TOO_LONG: u8 = 3;
const SET: u8 = 1;
const CANCEL: u8 = 2;
const SET_MESSAGE: u8 = 3;
const CANCEL_MESSAGE: u8 = 4;
const TEXT_LENGTH_MAX: usize = 1024;

#[inline]
pub(crate) fn write_outputs(out: &mut Vec<u8>, outputs: &Outputs, layout: u32) {
    let (outcome, flags, schema, reply) = match (&outputs.reply, outputs.reply_too_long) {
        (Some(draft), _) => (DONE, draft.encoding.flags(), draft.schema, Some(outputs.payload(draft))),
        (None, Some(length)) => (DONE_TOO_LONG, 0, u32::try_from(length).unwrap_or(u32::MAX), None),
        (None, None) => (DONE, 0, 0, None),
    };
    let counts = [outputs.notices.len() as u32, outputs.timers.len() as u32];
    let length = reply.map_or(NO_REPLY, |reply| reply.len() as u32);
    put_head(out, outcome, flags, schema, layout, length, counts);
    out.extend_from_slice(reply.unwrap_or_default());
    for (session, draft) in &outputs.notices {
        let payload = outputs.payload(draft);
        let mut out = FieldWriter::new(out);
        out.u64(*session).u32(draft.schema).u16(draft.encoding.flags()).u32(payload.len() as u32).bytes(payload);
    }
    for change in &outputs.timers {
        let (what, timer, deadline_ns, message) = match change {
            TimerChange::Set { timer, deadline_ns } => (SET, *timer, *deadline_ns, None),
            TimerChange::Cancel { timer } => (CANCEL, *timer, 0, None),
            TimerChange::SetMessage { message, deadline_ns } => {
                (SET_MESSAGE, u64::from(message.schema), *deadline_ns, Some(message))
            }
            TimerChange::CancelMessage { message } => (CANCEL_MESSAGE, u64::from(message.schema), 0, Some(message)),
        };
        let mut out = FieldWriter::new(out);
        out.u8(what).u64(timer).u64(deadline_ns);
        if let Some(message) = message {
            let payload = outputs.payload(message);
            out.u32(payload.len() as u32).bytes(payload);
        }
    }
}

#[inline]
pub(crate) fn write_done(out: &mut Vec<u8>, schema: u32, reply: &[u8]) {
    put_head(out, DONE, Encoding::Opaque.flags(), schema, 0, reply.len() as u32, [0, 0]);
    out.extend_from_slice(reply);
}

#[cold]
pub(crate) fn write_refusal(
    out: &mut Vec<u8>,
    (code, detail): (RefusalCode, u64),
    text: &str,
    is_dead: bool,
    layout: u32,
) {
    let text = &text[..text.floor_char_boundary(TEXT_LENGTH_MAX)];
    put_head(
        out,
        1 + u8::from(is_dead),
        0,
        code as u32,
        layout,
        text.len() as u32,
        [detail as u32, (detail >> 32) as u32],
    );
    out.extend_from_slice(text.as_bytes());
}

#[inline]
pub(crate) fn put_hash(out: &mut [u8], begin: usize, hash: u64) {
    out[begin + HASH_AT..][..8].copy_from_slice(&hash.to_le_bytes());
}

#[inline]
fn put_head(out: &mut Vec<u8>, outcome: u8, flags: u16, schema: u32, layout: u32, length: u32, counts: [u32; 2]) {
    let mut head = [0; HEAD_LENGTH];
    (head[0], head[1]) = (VERSION, outcome);
    head[2..4].copy_from_slice(&flags.to_le_bytes());
    head[4..8].copy_from_slice(&schema.to_le_bytes());
    head[16..20].copy_from_slice(&layout.to_le_bytes());
    head[LENGTH_AT..][..4].copy_from_slice(&length.to_le_bytes());
    head[24..28].copy_from_slice(&counts[0].to_le_bytes());
    head[28..32].copy_from_slice(&counts[1].to_le_bytes());
    out.extend_from_slice(&head);
}

pub(crate) struct TransactionReply<'a> {
    pub schema: u32,
    pub encoding: Encoding,
    pub payload: &'a [u8],
}

pub(crate) struct DecodedTransaction<'a> {
    pub outcome: ExecutionOutcome,
    /// `None`: refused.
    pub reply: Option<TransactionReply<'a>>,
    pub hash: u64,
    pub layout: u32,
    pub changes: &'a [u8],
}

#[inline]
fn encoding_of(flags: u16) -> Result<Encoding, String> {
    let encoding = Encoding::from_flags(flags);
    if encoding.flags() == flags { Ok(encoding) } else { Err(format!("{flags:#06x} is no encoding")) }
}

/// Stages notices and timers in `outputs`, which must be empty.
///
/// # Errors
/// Defect of the bytes.
#[inline(always)]
pub(crate) fn read<'a>(bytes: &'a [u8], outputs: &mut Outputs) -> Result<DecodedTransaction<'a>, String> {
    let mut fields = FieldReader::new(bytes);
    let head: &[u8; HEAD_LENGTH] = fields.head("the head of a transaction")?;
    let (version, outcome) = (head[0], head[1]);
    if version != VERSION {
        return Err(format!("a transaction of version {version}, {VERSION} is known here: run a newer program"));
    }
    let encoding = encoding_of(u16_at(head, 2))?;
    let (schema, hash, layout) = (u32_at(head, 4), u64_at(head, HASH_AT), u32_at(head, 16));
    let (length, notices, timers) = (u32_at(head, LENGTH_AT), u32_at(head, COUNTS_AT), u32_at(head, COUNTS_AT + 4));
    let reply = if length == NO_REPLY { None } else { Some(fields.bytes(length as usize, "the reply")?) };
    if outcome == DONE_TOO_LONG {
        if reply.is_some() || encoding != Encoding::Opaque {
            return Err("a reply that is too long has bytes".to_owned());
        }
        outputs.reply_too_long = Some(u64::from(schema));
    } else if outcome != DONE {
        let detail = u64::from(notices) | u64::from(timers) << 32;
        let outcome = refused(outcome, (schema, detail), encoding, reply)?;
        if !fields.rest().is_empty() {
            return Err("a refused command has effects".to_owned());
        }
        return Ok(DecodedTransaction { outcome, reply: None, hash, layout, changes: &[] });
    }
    for _ in 0..notices {
        let (session, schema) = (fields.u64("a notice's session")?, fields.u32("a notice's schema")?);
        let (encoding, length) = (encoding_of(fields.u16("an encoding")?)?, fields.u32("a notice's length")?);
        let payload = fields.bytes(length as usize, "a notice")?;
        let staged = outputs.stage_bytes(schema, encoding, payload);
        outputs.notices.push((session, staged));
    }
    for _ in 0..timers {
        let what = fields.u8("a change of a timer")?;
        let (timer, deadline_ns) = (fields.u64("a timer")?, fields.u64("a deadline")?);
        let change = match (what, deadline_ns) {
            (SET, _) => TimerChange::Set { timer, deadline_ns },
            (CANCEL, 0) => TimerChange::Cancel { timer },
            (SET_MESSAGE, _) => TimerChange::SetMessage { message: message(timer, &mut fields, outputs)?, deadline_ns },
            (CANCEL_MESSAGE, 0) => TimerChange::CancelMessage { message: message(timer, &mut fields, outputs)? },
            _ => return Err(format!("change {what} of timer {timer} is none")),
        };
        outputs.timers.push(change);
    }
    let reply = reply.map(|payload| TransactionReply { schema, encoding, payload });
    Ok(DecodedTransaction { outcome: ExecutionOutcome::Done, reply, hash, layout, changes: fields.rest() })
}

/// Stages the message of a timer.
#[cold]
fn message(schema: u64, fields: &mut FieldReader<'_>, outputs: &mut Outputs) -> Result<OutputDraft, String> {
    let schema = u32::try_from(schema).map_err(|_| format!("{schema} is no schema of a timer"))?;
    let length = fields.u32("the length of a timer's message")?;
    let payload = fields.bytes(length as usize, "a timer's message")?;
    Ok(outputs.stage_bytes(schema, Encoding::Postcard, payload))
}

/// Does not check the rest.
#[inline]
pub(crate) fn read_done_reply(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LENGTH>()?;
    // `NO_REPLY` exceeds any length.
    if (head[0], head[1]) == (VERSION, DONE) { rest.get(..u32_at(head, LENGTH_AT) as usize) } else { None }
}

#[inline]
pub(crate) fn read_plain_changes(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LENGTH>()?;
    let length = match u32_at(head, LENGTH_AT) {
        NO_REPLY => 0,
        length => length as usize,
    };
    let is_plain = (head[0], head[1]) == (VERSION, DONE) && u64_at(head, COUNTS_AT) == 0;
    if is_plain && encoding_of(u16_at(head, 2)).is_ok() { rest.get(length..) } else { None }
}

#[cold]
pub(crate) fn read_reply(bytes: &[u8]) -> Result<Result<&[u8], &str>, String> {
    let read = read(bytes, &mut Outputs::default())?;
    match read.outcome {
        ExecutionOutcome::Done => Ok(Ok(read.reply.map_or(&[], |reply| reply.payload))),
        ExecutionOutcome::Refused { text, .. } => {
            let text = str::from_utf8(&bytes[HEAD_LENGTH..][..text.len()]);
            Ok(Err(text.expect("a refusal's text was read")))
        }
    }
}

#[cold]
fn refused(
    outcome: u8,
    (code, detail): (u32, u64),
    encoding: Encoding,
    text: Option<&[u8]>,
) -> Result<ExecutionOutcome, String> {
    let text = text.filter(|text| text.len() <= TEXT_LENGTH_MAX && encoding == Encoding::Opaque);
    let (Some(text), Some(code)) = (text.and_then(|text| str::from_utf8(text).ok()), RefusalCode::from_value(code))
    else {
        return Err("a refusal has no text or no code".to_owned());
    };
    if detail != 0 && code != RefusalCode::Rejected {
        return Err("a code of the application in a refusal that is not the handler's".to_owned());
    }
    match outcome {
        1 | 2 => Ok(ExecutionOutcome::Refused { code, detail, text: text.to_owned(), dead: outcome == 2 }),
        _ => Err(format!("outcome {outcome} is none")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn fast_paths_equal_full_read() {
        let mut bytes = Vec::new();
        write_done(&mut bytes, 7, b"reply");
        bytes.extend_from_slice(b"changes");
        assert_eq!((read_done_reply(&bytes), read_plain_changes(&bytes)), (Some(&b"reply"[..]), Some(&b"changes"[..])));
        let mut changed = bytes.clone();
        for at in 0..HEAD_LENGTH {
            for byte in 0..=u8::MAX {
                changed[at] = byte;
                let mut outputs = Outputs::default();
                let whole = read(&changed, &mut outputs);
                let is_done = |read: &DecodedTransaction<'_>| {
                    matches!(read.outcome, ExecutionOutcome::Done) && outputs.reply_too_long.is_none()
                };
                let done = whole.as_ref().ok().filter(|read| is_done(read));
                if let Some(changes) = read_plain_changes(&changed) {
                    assert_eq!(Some(changes), done.map(|read| read.changes), "{at}: {byte}");
                }
                if let (Some(reply), Some(done)) = (read_done_reply(&changed), done) {
                    assert_eq!(Some(reply), done.reply.as_ref().map(|reply| reply.payload), "{at}: {byte}");
                }
            }
            changed[at] = bytes[at];
        }
        for cut in 0..HEAD_LENGTH + 5 {
            assert_eq!(
                (read_done_reply(&bytes[..cut]), read_plain_changes(&bytes[..cut])),
                (None, None),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn refusal_keeps_its_code() {
        for (code, detail, dead) in [(RefusalCode::Rejected, u64::MAX - 7, false), (RefusalCode::Unhandled, 0, true)] {
            let (mut bytes, mut outputs) = (Vec::new(), Outputs::default());
            write_refusal(&mut bytes, (code, detail), "no", dead, 5);
            let read = read(&bytes, &mut outputs).unwrap();
            let expected = |outcome: &ExecutionOutcome| {
                matches!(outcome, ExecutionOutcome::Refused { code: c, detail: d, text, dead: is_dead }
                    if (*c, *d, text.as_str(), *is_dead) == (code, detail, "no", dead))
            };
            assert!(expected(&read.outcome) && read.layout == 5);
        }
        let (mut bytes, mut outputs) = (Vec::new(), Outputs::default());
        write_refusal(&mut bytes, (RefusalCode::Unhandled, 7), "no", false, 5);
        assert!(read(&bytes, &mut outputs).is_err(), "only a handler's refusal has an application code");
    }

    #[test]
    fn too_long_reply_is_an_outcome() {
        let mut written = Outputs::default();
        written.reply_too_long = Some(3 << 20);
        written.timers.push(TimerChange::Set { timer: 1, deadline_ns: 2 });
        let (mut bytes, mut outputs) = (Vec::new(), Outputs::default());
        write_outputs(&mut bytes, &written, 5);
        let read = read(&bytes, &mut outputs).unwrap();
        assert!(matches!(read.outcome, ExecutionOutcome::Done) && read.reply.is_none());
        assert_eq!((outputs.reply_too_long, outputs.timers.len()), (Some(3 << 20), 1));
    }
}
