//! Body of a reply with the status [`Ended`](super::status::Status::Ended): the error with which a relay ends a call.
//! Little-endian.
//!
//! ```text
//!  u8 kind, followed up to the last byte by:
//!    1 no_route        text reason
//!    2 busy            text reason
//!    3 not_begun       u32 attempts | text reason
//!    4 unknown         u32 attempts | text reason
//!    5 refused         u32 code | text | u32 length of the payload, payload
//!    6 timed_out       u64 ns | u8 begun, 0 or 1 | u16 count, then u32 process id of each
//!    7 mismatch        text caller | text instance | text difference
//!    8 bad_message     text reason
//!    9 panicked        text reason
//!   10 cannot_forward  text reason
//!   11 other_protocol  u32 process id | u16 own version | u16 version that was found
//!   12 unavailable     text reason
//!   13 closed          nothing
//!
//!   text: u32 length, UTF-8
//! ```
//!
//! Decoding never panics, whatever the bytes.

use crate::outcome::{CallError, Refusal};
use gapless_agent::monotonic::saturating_ns;
use gapless_wire::fields::{FieldError, FieldReader, FieldWriter};
use std::time::Duration;

/// The longest text is truncated first, and a payload or process ids without room are dropped. Longer than `length_max`
/// only if the fixed fields, 13 bytes at most, have no room.
pub(crate) fn write_ended(error: &CallError, length_max: usize, into: &mut Vec<u8>) {
    let (start, mut parts) = (into.len(), ErrorParts::of(error));
    parts.write(error, into);
    let over = (into.len() - start).saturating_sub(length_max);
    if over > 0 {
        into.truncate(start);
        parts.shorten(over);
        parts.write(error, into);
    }
}

struct ErrorParts<'a> {
    texts: [&'a str; 3],
    payload: &'a [u8],
    processes: &'a [u32],
}

impl<'a> ErrorParts<'a> {
    fn of(error: &'a CallError) -> Self {
        let texts: [&str; 3] = match error {
            CallError::NoRoute { reason, .. }
            | CallError::Busy { reason, .. }
            | CallError::NotBegun { reason, .. }
            | CallError::Unknown { reason, .. }
            | CallError::BadMessage { reason, .. }
            | CallError::Panicked { reason, .. }
            | CallError::CannotForward { reason, .. }
            | CallError::Unavailable { reason, .. } => [reason, "", ""],
            CallError::Refused { refusal, .. } => [&refusal.text, "", ""],
            CallError::Mismatch { caller, instance, difference, .. } => [caller, instance, difference],
            CallError::TimedOut { .. } | CallError::OtherProtocol { .. } | CallError::Closed => [""; 3],
        };
        let payload = if let CallError::Refused { refusal, .. } = error { &*refusal.payload } else { &[] };
        let processes = if let CallError::TimedOut { not_taken_by, .. } = error { &**not_taken_by } else { &[] };
        Self { texts, payload, processes: &processes[..processes.len().min(u16::MAX.into())] }
    }

    fn shorten(&mut self, mut over: usize) {
        let processes = self.processes.len().saturating_sub(over.div_ceil(4));
        over = over.saturating_sub((self.processes.len() - processes) * 4);
        self.processes = &self.processes[..processes];
        if over > self.texts.iter().map(|text| text.len()).sum() {
            over = over.saturating_sub(self.payload.len());
            self.payload = &[];
        }
        while over > 0
            && let Some(longest) = self.texts.iter_mut().max_by_key(|text| text.len())
            && !longest.is_empty()
        {
            let length = longest.floor_char_boundary(longest.len().saturating_sub(over));
            over = over.saturating_sub(longest.len() - length);
            *longest = &longest[..length];
        }
    }

    fn write(&self, error: &CallError, into: &mut Vec<u8>) {
        let mut out = FieldWriter::new(into);
        let [first, second, third] = self.texts;
        match error {
            CallError::NoRoute { .. } => put_text(out.u8(1), first),
            CallError::Busy { .. } => put_text(out.u8(2), first),
            CallError::NotBegun { attempts, .. } => put_text(out.u8(3).u32(*attempts), first),
            CallError::Unknown { attempts, .. } => put_text(out.u8(4).u32(*attempts), first),
            CallError::Refused { refusal, .. } => {
                put_text(out.u8(5).u32(refusal.code), first);
                out.u32(self.payload.len() as u32).bytes(self.payload);
            }
            CallError::TimedOut { after, begun, .. } => {
                out.u8(6).u64(saturating_ns(*after)).u8((*begun).into()).u16(self.processes.len() as u16);
                for process_id in self.processes {
                    out.u32(*process_id);
                }
            }
            CallError::Mismatch { .. } => {
                put_text(out.u8(7), first);
                put_text(&mut out, second);
                put_text(&mut out, third);
            }
            CallError::BadMessage { .. } => put_text(out.u8(8), first),
            CallError::Panicked { .. } => put_text(out.u8(9), first),
            CallError::CannotForward { .. } => put_text(out.u8(10), first),
            CallError::OtherProtocol { process_id, own, found, .. } => {
                out.u8(11).u32(*process_id).u16(*own).u16(*found);
            }
            CallError::Unavailable { .. } => put_text(out.u8(12), first),
            CallError::Closed => {
                out.u8(13);
            }
        }
    }
}

fn put_text(out: &mut FieldWriter<'_>, text: &str) {
    out.u32(text.len() as u32).bytes(text.as_bytes());
}

/// `None` for malformed bytes.
pub(crate) fn read_ended(route: &str, body: &[u8]) -> Option<CallError> {
    let mut fields = FieldReader::new(body);
    let error = read(route.to_owned(), &mut fields).ok()?;
    fields.rest().is_empty().then_some(error)
}

fn read(route: String, fields: &mut FieldReader<'_>) -> Result<CallError, FieldError> {
    Ok(match fields.u8("the kind")? {
        1 => CallError::NoRoute { route, reason: text(fields)? },
        2 => CallError::Busy { route, reason: text(fields)? },
        3 => CallError::NotBegun { route, attempts: fields.u32("the attempts")?, reason: text(fields)? },
        4 => CallError::Unknown { route, attempts: fields.u32("the attempts")?, reason: text(fields)? },
        5 => {
            let (code, text) = (fields.u32("the code")?, text(fields)?);
            let length = fields.u32("the length of the payload")? as usize;
            let payload = fields.bytes(length, "the payload")?.to_vec();
            CallError::Refused { route, refusal: Refusal { code, text, payload } }
        }
        6 => {
            let after = Duration::from_nanos(fields.u64("the time")?);
            let begun = match fields.u8("whether it had begun")? {
                0 => false,
                1 => true,
                _ => return Err(FieldError::Value { what: "whether it had begun" }),
            };
            let count = fields.u16("the count of processes")?;
            // Grows only with the entries present; the count is not trusted.
            let mut not_taken_by = Vec::new();
            for _ in 0..count {
                not_taken_by.push(fields.u32("a process")?);
            }
            CallError::TimedOut { route, after, begun, not_taken_by }
        }
        7 => CallError::Mismatch { route, caller: text(fields)?, instance: text(fields)?, difference: text(fields)? },
        8 => CallError::BadMessage { route, reason: text(fields)? },
        9 => CallError::Panicked { route, reason: text(fields)? },
        10 => CallError::CannotForward { route, reason: text(fields)? },
        11 => CallError::OtherProtocol {
            route,
            process_id: fields.u32("the process")?,
            own: fields.u16("the own version")?,
            found: fields.u16("the version")?,
        },
        12 => CallError::Unavailable { route, reason: text(fields)? },
        13 => CallError::Closed,
        _ => return Err(FieldError::Value { what: "the kind" }),
    })
}

fn text(fields: &mut FieldReader<'_>) -> Result<String, FieldError> {
    let length = fields.u32("the length of a text")? as usize;
    let bytes = fields.bytes(length, "a text")?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| FieldError::Value { what: "a text" })
}

/// Reads and writes the body of an ended call, for the fuzzer.
#[doc(hidden)]
#[must_use]
pub fn ended_again(body: &[u8]) -> Option<Vec<u8>> {
    let mut again = Vec::new();
    write_ended(&read_ended("route", body)?, usize::MAX, &mut again);
    Some(again)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors() -> Vec<CallError> {
        let (route, reason, attempts) = (|| "route".to_owned(), || "zu spät".to_owned(), 258);
        let refusal = Refusal { code: 7, text: reason(), payload: vec![1, 2, 3] };
        let (after, not_taken_by) = (Duration::from_nanos(1 << 40), vec![1, u32::MAX]);
        vec![
            CallError::NoRoute { route: route(), reason: reason() },
            CallError::Busy { route: route(), reason: reason() },
            CallError::NotBegun { route: route(), attempts, reason: reason() },
            CallError::Unknown { route: route(), attempts, reason: reason() },
            CallError::Refused { route: route(), refusal },
            CallError::TimedOut { route: route(), after, begun: false, not_taken_by },
            CallError::Mismatch { route: route(), caller: reason(), instance: "b".to_owned(), difference: reason() },
            CallError::BadMessage { route: route(), reason: reason() },
            CallError::Panicked { route: route(), reason: reason() },
            CallError::CannotForward { route: route(), reason: reason() },
            CallError::OtherProtocol { route: route(), process_id: 1, own: 2, found: 3 },
            CallError::Unavailable { route: route(), reason: reason() },
            CallError::Closed,
        ]
    }

    fn written(error: &CallError, length_max: usize) -> Vec<u8> {
        let mut body = vec![9];
        write_ended(error, length_max, &mut body);
        assert_eq!(body.remove(0), 9, "it is appended");
        body
    }

    #[test]
    fn errors_survive_a_round_trip() {
        for error in errors() {
            let body = written(&error, usize::MAX);
            assert_eq!(read_ended("route", &body).as_ref(), Some(&error));
            for cut in 0..body.len() {
                assert_eq!(read_ended("route", &body[..cut]), None, "{} cut at {cut}", error.kind());
            }
            assert_eq!(read_ended("route", &[&body[..], &[0]].concat()), None, "{}", error.kind());
        }
        for none in [&[][..], &[0], &[14], &[6, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0], &[1, 1, 0, 0, 0, 0xff]] {
            assert_eq!(read_ended("route", none), None, "{none:?}");
        }
    }

    #[test]
    fn a_long_error_keeps_its_kind() {
        for error in errors() {
            let whole = written(&error, usize::MAX).len();
            for length_max in 0..=whole {
                let body = written(&error, length_max);
                assert!(body.len() <= length_max.max(13), "{} in {length_max}: {}", error.kind(), body.len());
                let read = read_ended("route", &body).expect("it has its form");
                assert_eq!((read.kind(), read == error), (error.kind(), length_max == whole || body.len() == whole));
            }
        }
    }

    #[test]
    fn payload_outlives_the_text() {
        let refusal = Refusal { code: 7, text: "zu spät".to_owned(), payload: vec![1, 2, 3] };
        let error = CallError::Refused { route: "route".to_owned(), refusal };
        for (length_max, text, payload_length) in [(24, "zu spät", 3), (22, "zu sp", 3), (16, "", 3), (15, "zu", 0)] {
            let read = read_ended("route", &written(&error, length_max));
            let Some(CallError::Refused { refusal, .. }) = read else { panic!("{read:?}") };
            assert_eq!((&*refusal.text, refusal.payload.len()), (text, payload_length), "{length_max}");
        }
    }
}
