//! A frame as a line or as a JSON object.

use crate::printable::escaped;
use clap::Args;
use gapless_stream::logger::{encoding_name, hexadecimal, kind_name, utc};
use gapless_wire::control::TimerFired;
use gapless_wire::descriptor::UNHANDLED_FLAG;
use gapless_wire::mark::{FaultRules, Mark};
use gapless_wire::{Fragment, Frame, Kind};
use serde_json::{Map, Value, json};

/// Output format of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(super) struct FrameForm {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Print the payload, as hexadecimal digits
    #[arg(long)]
    payload: bool,
}

impl FrameForm {
    pub(super) fn line(self, frame: &Frame<'_>) -> String {
        if self.json { self.object(frame).to_string() } else { self.text(frame) }
    }

    fn text(self, frame: &Frame<'_>) -> String {
        let (schema, template) = schema_and_template(frame);
        let mut line = format!(
            "{} {} {} session {} seq {} schema {schema}:{template} {} bytes",
            frame.sequence(),
            utc(frame.timestamp_ns()),
            kind_name(frame.kind()),
            frame.session(),
            frame.session_seq(),
            frame.length(),
        );
        let Fragment { index, count } = frame.fragment();
        if count > 1 {
            line += &format!(" fragment {} of {count}", index + 1);
        }
        if is_unhandled(frame) {
            line += " unhandled";
        }
        match timer_of(frame) {
            Some(TimerFired { timer, deadline_ns: 0 }) => line += &format!(" timer {timer} taken back"),
            Some(TimerFired { timer, deadline_ns }) => line += &format!(" timer {timer} due {}", utc(deadline_ns)),
            None => {}
        }
        if let Some(mark) = mark_of(frame) {
            line += &format!(" {mark}");
        }
        if self.payload {
            line.push(' ');
            line += &hexadecimal(frame.payload());
        }
        line
    }

    fn object(self, frame: &Frame<'_>) -> Value {
        let (schema, template) = schema_and_template(frame);
        let mut object = Map::new();
        for (key, value) in [
            ("sequence", json!(frame.sequence())),
            ("timestamp_ns", json!(frame.timestamp_ns())),
            ("time", json!(utc(frame.timestamp_ns()))),
            ("kind", json!(kind_name(frame.kind()))),
            ("session", json!(frame.session())),
            ("session_seq", json!(frame.session_seq())),
            ("schema_id", json!(schema)),
            ("template_id", json!(template)),
            ("encoding", json!(encoding_name(frame.encoding()))),
            ("length", json!(frame.length())),
        ] {
            object.insert(key.to_owned(), value);
        }
        let Fragment { index, count } = frame.fragment();
        if count > 1 {
            object.insert("fragment".to_owned(), json!({"index": index, "count": count}));
        }
        if is_unhandled(frame) {
            object.insert("unhandled".to_owned(), json!(true));
        }
        if let Some(TimerFired { timer, deadline_ns }) = timer_of(frame) {
            object.insert("timer".to_owned(), json!(timer));
            object.insert("deadline_ns".to_owned(), json!(deadline_ns));
        }
        if let Some(mark) = mark_of(frame) {
            object.insert("mark".to_owned(), json!(mark));
        }
        if self.payload {
            object.insert("payload".to_owned(), json!(hexadecimal(frame.payload())));
        }
        Value::Object(object)
    }
}

/// Whether the leader's program had no handler for the typed command.
fn is_unhandled(frame: &Frame<'_>) -> bool {
    frame.flags() & UNHANDLED_FLAG != 0
}

fn timer_of(frame: &Frame<'_>) -> Option<TimerFired> {
    let is_timer = matches!(frame.kind(), Kind::Timer | Kind::TimerRequest);
    TimerFired::from_bytes(frame.payload()).filter(|_| is_timer)
}

fn mark_of(frame: &Frame<'_>) -> Option<String> {
    let mark = Mark::from_bytes(frame.payload()).filter(|_| frame.kind() == Kind::Mark)?;
    Some(match mark {
        Mark::FeedBegan { feed_session } => format!("feed {feed_session} began"),
        Mark::FeedEnded { feed_session } => format!("feed {feed_session} ended"),
        Mark::Halted { reason } => format!("halted: {}", escaped(reason)),
        Mark::Resumed => "resumed".to_owned(),
        Mark::ServiceVersion { version } => format!("service version {version}"),
        Mark::Skipped { sequence } => format!("skips {sequence}"),
        Mark::FaultRules(FaultRules { panic_is_dead_letter, unhandled_stops }) => {
            let word = |is_dead_letter| if is_dead_letter { "dead letter" } else { "stop" };
            format!("panic: {}, unhandled: {}", word(panic_is_dead_letter), word(!unhandled_stops))
        }
    })
}

fn schema_and_template(frame: &Frame<'_>) -> (u32, u32) {
    (frame.schema() >> 16, frame.schema() & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_wire::{Encoding, FrameHeader, FrameWriter, HEADER_LENGTH};

    #[test]
    fn unhandled_command_is_marked() {
        for (flag, is_marked) in [(0, false), (UNHANDLED_FLAG, true)] {
            let mut bytes = vec![0; HEADER_LENGTH];
            let flags = Encoding::Postcard.flags() | flag;
            let header = FrameHeader { kind: Kind::Command, sequence: 7, flags, ..FrameHeader::default() };
            FrameWriter::new(&mut bytes).finish(&header, 0);
            let frame = Frame::parse(&bytes).expect("it is a frame");
            let [text, json] = [false, true].map(|json| FrameForm { json, payload: false }.line(&frame));
            assert_eq!(text.ends_with(" bytes unhandled"), is_marked, "{text}");
            assert_eq!(json.contains("\"unhandled\":true"), is_marked, "{json}");
            assert!(json.contains("\"encoding\":\"postcard\""), "{json}");
        }
    }
}
