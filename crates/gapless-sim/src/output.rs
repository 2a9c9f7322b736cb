//! `HandlerOutput`: the output of a handler, compared between folds and printed in reports.

use crate::trace::hash_of;
use gapless_client::polled::MessageType;
use gapless_stream::logger::utc;
use gapless_wire::Encoding;
use serde::{Deserialize, Serialize};

pub(crate) type Describe<'a> = dyn Fn(MessageType, &[u8]) -> String + 'a;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HandlerOutput {
    Message {
        /// Kind and addressee.
        what: String,
        schema: u32,
        /// Encoding, as in a frame's flags.
        flags: u16,
        payload: OutputPayload,
    },
    TimerSet {
        timer: u64,
        deadline_ns: u64,
    },
    TimerTakenBack {
        timer: u64,
        deadline_ns: u64,
    },
    /// Text of a refusal or a dead letter.
    Words(String),
}

/// Equal if length and hash are equal: the bytes are only for the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OutputPayload {
    length: usize,
    hash: u64,
    /// `None` if the run had too many bytes to keep.
    bytes: Option<Vec<u8>>,
}

impl PartialEq for OutputPayload {
    fn eq(&self, other: &Self) -> bool {
        (self.length, self.hash) == (other.length, other.hash)
    }
}

impl Eq for OutputPayload {}

impl HandlerOutput {
    pub(crate) fn message(what: String, schema: u32, encoding: Encoding, payload: &[u8]) -> Self {
        let payload = OutputPayload { length: payload.len(), hash: hash_of(payload), bytes: Some(payload.to_vec()) };
        Self::Message { what, schema, flags: encoding.flags(), payload }
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        self.bytes().map_or(0, <[u8]>::len)
    }

    pub(crate) fn forget_bytes(&mut self) {
        if let Self::Message { payload, .. } = self {
            payload.bytes = None;
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Message { payload, .. } => payload.bytes.as_deref(),
            _ => None,
        }
    }

    fn text(&self, describe: &Describe<'_>) -> String {
        match self {
            Self::Message { what, schema, flags, payload } => {
                let message_type = MessageType { schema: *schema, encoding: Encoding::from_flags(*flags) };
                let described = payload.bytes.as_ref().map(|bytes| describe(message_type, bytes));
                let unknown = || format!("{} bytes with the hash {:016x}", payload.length, payload.hash);
                format!("{what}: {}", described.unwrap_or_else(unknown))
            }
            Self::TimerSet { timer, deadline_ns } => format!("timer {timer} is set to {}", utc(*deadline_ns)),
            Self::TimerTakenBack { timer, deadline_ns } => {
                format!("timer {timer} is taken back, which was due at {}", utc(*deadline_ns))
            }
            Self::Words(words) => words.clone(),
        }
    }
}

/// The first difference, one side below the other. Each line begins with a line feed.
pub(crate) fn side_by_side(describe: &Describe<'_>, outputs: [&[HandlerOutput]; 2], sides: [&str; 2]) -> String {
    let at = outputs[0].iter().zip(outputs[1]).take_while(|(one, other)| one == other).count();
    let firsts = outputs.map(|outputs| outputs.get(at));
    let [one, other] = firsts.map(|first| first.map_or_else(|| "nothing".to_owned(), |first| first.text(describe)));
    let width = sides.map(|side| side.chars().count()).into_iter().max().unwrap_or_default() + 1;
    let line = |side: &str, text: &str| format!("\n  {:width$} {text}", format!("{side}:"));
    let lines = line(sides[0], &one) + &line(sides[1], &other);
    if one != other {
        let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        return format!("{lines}\n  {:width$} {:same$}^", "", "");
    }
    // Equal texts mean that the payloads differ.
    let parted = match firsts.map(|first| first.and_then(HandlerOutput::bytes)) {
        [Some(one), Some(other)] => first_difference(one, other, sides),
        _ => "somewhere".to_owned(),
    };
    format!("{lines}\n  they part {parted}")
}

pub(crate) fn first_difference(run: &[u8], again: &[u8], [one, other]: [&str; 2]) -> String {
    let at = run.iter().zip(again).take_while(|(one, other)| one == other).count();
    let shown = |bytes: &[u8]| {
        let rest = bytes.get(at..).unwrap_or_default();
        let hex: Vec<_> = rest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let more = if rest.len() > 16 { " …" } else { "" };
        if hex.is_empty() {
            format!("nothing ({} bytes in all)", bytes.len())
        } else {
            format!("{}{more}", hex.join(" "))
        }
    };
    format!("at byte {at} of {}: {one} {}, {other} {}", run.len(), shown(run), shown(again))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let text: String = bytes.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > 64 { "…" } else { "" };
    format!("{} bytes {text}{more}", bytes.len())
}

pub(crate) fn describe_bytes(schema: u32, name: Option<&str>, payload: &[u8]) -> String {
    let name = name.map(|name| format!("{name} (")).unwrap_or_default();
    let end = if name.is_empty() { "" } else { ")" };
    format!("{name}schema {} template {}{end}, {}", schema >> 16, schema & 0xffff, hex(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(payload: &[u8]) -> HandlerOutput {
        HandlerOutput::message("reply".to_owned(), 9 << 16 | 1, Encoding::Opaque, payload)
    }

    fn described(outputs: [&[HandlerOutput]; 2]) -> String {
        // Leaves out the third byte.
        let describe = |_, payload: &[u8]| format!("Sum {{ of: {}, is: {} }}", payload[0], payload[1]);
        side_by_side(&describe, outputs, ["here", "over there"])
    }

    #[test]
    fn differing_fields_are_marked() {
        let timer = HandlerOutput::TimerSet { timer: 10, deadline_ns: 1_700_000_000_000_000_000 };
        let one = [timer.clone(), reply(&[1, 7, 0])];
        assert_eq!(
            described([&one, &[timer.clone(), reply(&[1, 8, 0])]]),
            "\n  here:       reply: Sum { of: 1, is: 7 }\
             \n  over there: reply: Sum { of: 1, is: 8 }\
             \n                                      ^"
        );
        assert_eq!(
            described([&one, &[]]),
            "\n  here:       timer 10 is set to 2023-11-14T22:13:20.000000000Z\n  over there: nothing\n              ^"
        );
        let same = described([&one, &[timer, reply(&[1, 7, 3])]]);
        assert!(same.ends_with("\n  they part at byte 2 of 3: here 00, over there 03"), "{same}");
    }

    #[test]
    fn dropped_bytes_are_still_compared() {
        let (mut one, other) = (reply(b"long"), reply(b"song"));
        one.forget_bytes();
        assert_eq!((one.kept_bytes(), other.kept_bytes()), (0, 4));
        assert!(one == reply(b"long") && one != other);
        let told = described([&[one], &[other]]);
        assert!(told.starts_with("\n  here:       reply: 4 bytes with the hash "), "{told}");
    }
}
