//! Every text has a limit; the first of repeated headers counts; unknown headers are ignored.

use super::fields::{self, ENCODINGS, PRIORITIES, QUERIES};
use super::names::{self, BridgeId};
use super::writing::{CALLER_LENGTH_MAX, REFUSAL_TEXT_LENGTH_MAX};
use super::{EnvelopeContent, PROTOCOL_VERSION, RecordEnvelope, RecordHeader, RecordSender, ReplyHead, RequestHead};
use gapless_message::headers::HEADERS_LENGTH_MAX;
use gapless_message::route_name;
use gapless_rpc::{Headers, TraceContext};

/// Bytes of a correlation at most.
pub const CORRELATION_LENGTH_MAX: usize = 128;
const VALUE_LENGTH_MAX: usize = 1 << 10;
const SEGMENT_ALLOWED: &str = "INDEX/COUNT/BYTES is allowed, of 2 to 16384 segments";
const SHOWN_MAX: usize = 64;

/// A record that breaks the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MalformedRecord {
    /// The header, the found and the allowed value.
    pub reason: String,
    /// Another protocol version that the record names.
    pub protocol: Option<u16>,
    /// The sender, as far as it can be told of the mistake; of a reply, as far as its call can be found.
    pub sender: Option<Box<RecordSender>>,
    /// The record is a reply: its sender is told nothing, and its call ends.
    pub is_reply: bool,
}

struct HeaderReader<'a>(&'a [RecordHeader]);

type HeaderRefusal = String;

impl<'a> HeaderReader<'a> {
    fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_slice())
    }

    fn text(&self, name: &str, length_max: usize) -> Result<Option<&'a str>, HeaderRefusal> {
        let Some(bytes) = self.bytes(name) else { return Ok(None) };
        if bytes.len() > length_max {
            return Err(format!("{name}: {} bytes were found; at most {length_max} are allowed", bytes.len()));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(refused(name, bytes, "UTF-8 is allowed")),
        }
    }

    fn value<T>(
        &self,
        name: &str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, HeaderRefusal> {
        let Some(text) = self.text(name, VALUE_LENGTH_MAX)? else { return Ok(None) };
        read(text).map(Some).ok_or_else(|| refused(name, text.as_bytes(), allowed))
    }

    fn number(&self, name: &str, max: u64) -> Result<Option<u64>, HeaderRefusal> {
        let Some(text) = self.text(name, VALUE_LENGTH_MAX)? else { return Ok(None) };
        let number = fields::decimal(text).filter(|number| *number <= max);
        let allowed = || format!("a whole number up to {max} is allowed");
        number.map(Some).ok_or_else(|| refused(name, text.as_bytes(), &allowed()))
    }

    fn hexadecimal(&self, name: &str) -> Result<Option<u64>, HeaderRefusal> {
        self.value(name, "16 hexadecimal digits, in lower case, are allowed", fields::hexadecimal)
    }

    fn choice<T: Copy>(&self, name: &str, list: &[(&str, T)]) -> Result<Option<T>, HeaderRefusal> {
        let allowed = || list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let Some(text) = self.text(name, VALUE_LENGTH_MAX)? else { return Ok(None) };
        let value = fields::value_of(list, text);
        value.map(Some).ok_or_else(|| refused(name, text.as_bytes(), &format!("{} are allowed", allowed())))
    }
}

fn refused(name: &str, found: &[u8], allowed: &str) -> HeaderRefusal {
    let text = String::from_utf8_lossy(found);
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    format!("{name}: {shown:?} was found; {allowed}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    Request,
    Reply,
    Cancel,
    Bundle,
    Mark,
    Ping,
    Pong,
    Discarded,
}

const KINDS: [(&str, RecordKind); 8] = [
    ("request", RecordKind::Request),
    ("reply", RecordKind::Reply),
    ("cancel", RecordKind::Cancel),
    ("bundle", RecordKind::Bundle),
    ("mark", RecordKind::Mark),
    ("ping", RecordKind::Ping),
    ("pong", RecordKind::Pong),
    ("discarded", RecordKind::Discarded),
];

/// Reads the headers of an inbox's record.
///
/// # Errors
/// [`MalformedRecord`], with the sender of a request that can be answered all the same.
pub fn read(headers: &[RecordHeader]) -> Result<RecordEnvelope, MalformedRecord> {
    let found = HeaderReader(headers);
    let malformed = |reason| MalformedRecord { reason, protocol: None, sender: None, is_reply: false };
    let protocol = found.number(names::PROTOCOL, u16::MAX.into()).map_err(malformed)?;
    let protocol = protocol.unwrap_or(PROTOCOL_VERSION.into()) as u16;
    let kind = found.choice(names::KIND, &KINDS).map_err(malformed);
    let sender = sender_of(&found).map_err(malformed);
    if protocol != PROTOCOL_VERSION {
        let reason =
            format!("the record has version {protocol} of the protocol; this bridge speaks version {PROTOCOL_VERSION}");
        let is_reply = matches!(kind, Ok(Some(RecordKind::Reply)));
        let sender = sender.ok().filter(|_| is_reply || matches!(kind, Ok(Some(RecordKind::Request)))).map(Box::new);
        return Err(MalformedRecord { reason, protocol: Some(protocol), sender, is_reply });
    }
    let kind = kind?.ok_or_else(|| malformed(format!("{}: missing", names::KIND)))?;
    let sender = sender?;
    let answered = |reason| {
        let is_of_call = matches!(kind, RecordKind::Request | RecordKind::Reply) && !sender.correlation.is_empty();
        let sender = is_of_call.then(|| Box::new(sender.clone()));
        MalformedRecord { reason, protocol: None, sender, is_reply: kind == RecordKind::Reply }
    };
    let needs_correlation =
        !matches!(kind, RecordKind::Bundle | RecordKind::Mark | RecordKind::Ping | RecordKind::Pong);
    if needs_correlation && sender.correlation.is_empty() {
        return Err(malformed(format!("{}: missing", names::CORRELATION)));
    }
    let to = found.hexadecimal(names::TO).map_err(answered)?;
    let place = found.value(names::SEGMENT, SEGMENT_ALLOWED, fields::segment).map_err(answered)?;
    let content = match (kind, place) {
        (RecordKind::Request, Some(place)) if place.index > 0 => EnvelopeContent::RequestSegment(place),
        (RecordKind::Reply, Some(place)) if place.index > 0 => EnvelopeContent::ReplySegment(place),
        (RecordKind::Request, place) => {
            let head = request_head(&found).map_err(answered)?;
            EnvelopeContent::Request(Box::new(head), place)
        }
        (RecordKind::Reply, place) => EnvelopeContent::Reply(reply_head(&found).map_err(answered)?, place),
        (RecordKind::Cancel, _) => EnvelopeContent::Cancel,
        (RecordKind::Bundle, _) => EnvelopeContent::Bundle,
        (RecordKind::Mark, _) => {
            let caller = found.text(names::CALLER, CALLER_LENGTH_MAX).map_err(malformed)?;
            EnvelopeContent::Mark(caller.unwrap_or_default().to_owned())
        }
        (RecordKind::Ping, _) => EnvelopeContent::Ping,
        (RecordKind::Pong, _) => EnvelopeContent::Pong,
        (RecordKind::Discarded, _) => EnvelopeContent::Discarded,
    };
    Ok(RecordEnvelope { sender, to, content })
}

pub(crate) fn read_sender(headers: &[RecordHeader]) -> Option<(BridgeId, &str)> {
    let found = HeaderReader(headers);
    let sender = found.text(names::FROM, VALUE_LENGTH_MAX).ok()??.parse().ok()?;
    Some((sender, found.text(names::CORRELATION, CORRELATION_LENGTH_MAX).ok()?.unwrap_or_default()))
}

fn sender_of(found: &HeaderReader<'_>) -> Result<RecordSender, HeaderRefusal> {
    let correlation = found.text(names::CORRELATION, CORRELATION_LENGTH_MAX)?.unwrap_or_default();
    if correlation.contains(char::is_control) {
        return Err(refused(
            names::CORRELATION,
            correlation.as_bytes(),
            "a text without control characters is allowed",
        ));
    }
    let from = found.value(names::FROM, "NAME@INCARNATION is allowed", |text| text.parse::<BridgeId>().ok())?;
    let reply_topic = found.value(names::REPLY_TOPIC, "the name of a topic is allowed", |text| {
        names::is_topic(text).then(|| text.to_owned())
    })?;
    let program = if from.is_none() && reply_topic.is_none() { caller(found)? } else { String::new() };
    Ok(RecordSender { correlation: correlation.to_owned(), from, reply_topic, program })
}

fn request_head(found: &HeaderReader<'_>) -> Result<RequestHead, HeaderRefusal> {
    let route = found.text(names::ROUTE, VALUE_LENGTH_MAX)?.ok_or_else(|| format!("{}: missing", names::ROUTE))?;
    route_name::check_own(route).map_err(|error| format!("{}: {error}", names::ROUTE))?;
    let described = |name| found.value(name, "VERSION FINGERPRINT ENCODING NAME is allowed", fields::described);
    let request_type = described(names::REQUEST_TYPE)?;
    let fingerprint = found.hexadecimal(names::FINGERPRINT)?;
    let type_fingerprint = request_type.as_ref().map_or(0, |described| described.fingerprint);
    let traces = [names::TRACE_PARENT, names::TRACE_STATE].map(|name| {
        // A malformed trace counts as absent, as its recommendation asks.
        found.bytes(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
    });
    Ok(RequestHead {
        route: route.to_owned(),
        instance: found.hexadecimal(names::INSTANCE)?,
        query: found.choice(names::QUERY, &QUERIES)?,
        priority: found.choice(names::PRIORITY, &PRIORITIES)?.unwrap_or_default(),
        key: found.hexadecimal(names::KEY)?,
        time_left_ms: found.number(names::TIME_LEFT, u64::MAX / 1_000_000)?,
        deadline_ms: found.number(names::DEADLINE, i64::MAX as u64)?.map(|deadline_ms| deadline_ms as i64),
        attempt: found.number(names::ATTEMPT, u8::MAX.into())?.unwrap_or(1).max(1) as u8,
        hops: found.number(names::HOPS, u8::MAX.into())?.unwrap_or(0) as u8,
        trace: TraceContext::from_headers(traces[0], traces[1]),
        encoding: found.choice(names::ENCODING, &ENCODINGS)?.unwrap_or_default(),
        fingerprint: fingerprint.unwrap_or(type_fingerprint),
        request_type,
        reply_type: described(names::REPLY_TYPE)?,
        is_one_way: found.choice(names::ONE_WAY, &[("true", true), ("false", false)])?.unwrap_or(false),
        caller: caller(found)?,
        headers: application_headers(found)?,
    })
}

fn caller(found: &HeaderReader<'_>) -> Result<String, HeaderRefusal> {
    let text = found.text(names::CALLER, CALLER_LENGTH_MAX)?.unwrap_or_default();
    Ok(text.chars().filter(|c| !c.is_control()).collect())
}

fn application_headers(found: &HeaderReader<'_>) -> Result<Headers, HeaderRefusal> {
    let mut headers = Headers::default();
    let mut length = 0;
    for (name, value) in found.0 {
        let Some(name) = name.strip_prefix(names::APPLICATION_PREFIX) else { continue };
        length += 6 + name.len() + value.len();
        if length > HEADERS_LENGTH_MAX || name.len() > VALUE_LENGTH_MAX {
            return Err(format!(
                "headers {}…: more than {HEADERS_LENGTH_MAX} bytes, or a name of more than {VALUE_LENGTH_MAX}",
                names::APPLICATION_PREFIX
            ));
        }
        headers = headers.with(name, value.clone());
    }
    Ok(headers)
}

fn reply_head(found: &HeaderReader<'_>) -> Result<ReplyHead, HeaderRefusal> {
    let status = found.text(names::STATUS, VALUE_LENGTH_MAX)?;
    Ok(match status {
        Some("reply") => ReplyHead::Reply,
        Some("refused") => ReplyHead::Refused {
            code: found.number(names::REFUSAL_CODE, u32::MAX.into())?.unwrap_or(0) as u32,
            text: found.text(names::REFUSAL_TEXT, REFUSAL_TEXT_LENGTH_MAX)?.unwrap_or_default().to_owned(),
        },
        Some("ended") => ReplyHead::Failed,
        other => {
            let found = other.unwrap_or_default().as_bytes();
            return Err(refused(names::STATUS, found, "reply, refused, ended are allowed"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::RecordWriter;
    use super::*;
    use gapless_message::Encoding;
    use gapless_message::described::TypeDescription;
    use gapless_rpc::{InstanceQuery, Priority};
    use std::borrow::Cow;

    fn sender() -> BridgeId {
        BridgeId { name: "a-1".into(), incarnation: 0xfeed }
    }

    fn full() -> RequestHead {
        let described = |name: &str, version| TypeDescription {
            name: name.to_owned(),
            fingerprint: 77,
            encoding: Encoding::Postcard,
            version,
        };
        RequestHead {
            route: "shop/price".to_owned(),
            instance: Some(u64::MAX),
            query: Some(InstanceQuery::Statistics),
            priority: Priority::Urgent,
            key: Some(0),
            time_left_ms: Some(0),
            deadline_ms: Some(i64::MAX),
            attempt: 3,
            hops: 2,
            trace: TraceContext::new(7, 8, 1).with_state("vendor=x"),
            encoding: Encoding::Json,
            fingerprint: 78,
            request_type: Some(described("Order <u8, u16>", 2)),
            reply_type: Some(described("", 0)),
            is_one_way: true,
            caller: "machine/process".to_owned(),
            headers: Headers::default().with("tenant", "blue").with("", "").with("tenant", vec![0, 255]),
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let defaults = RequestHead { route: "a".to_owned(), attempt: 1, ..RequestHead::default() };
        for head in [full(), defaults] {
            let record = RecordWriter::new(&sender()).request("feed:7", 9, &head, None);
            let read = read(&record.headers).unwrap();
            let content = EnvelopeContent::Request(Box::new(head), None);
            let correlation = "feed:7".to_owned();
            let sender = RecordSender { correlation, from: Some(sender()), ..RecordSender::default() };
            let expected = RecordEnvelope { sender, to: Some(9), content };
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn replies_and_segments_round_trip() {
        let writer = RecordWriter::new(&sender());
        let place = |index| fields::segment(&format!("{index}/3/70")).unwrap();
        let refused = ReplyHead::Refused { code: 7, text: "zu spät".to_owned() };
        for (record, content) in [
            (writer.reply("c", None, &ReplyHead::Reply, None), EnvelopeContent::Reply(ReplyHead::Reply, None)),
            (writer.reply("c", None, &refused, Some(place(0))), EnvelopeContent::Reply(refused, Some(place(0)))),
            (writer.reply("c", None, &ReplyHead::Failed, None), EnvelopeContent::Reply(ReplyHead::Failed, None)),
            (writer.segment(true, "c", None, place(2)), EnvelopeContent::RequestSegment(place(2))),
            (writer.segment(false, "c", None, place(1)), EnvelopeContent::ReplySegment(place(1))),
            (writer.control("cancel", "c", None), EnvelopeContent::Cancel),
            (writer.control("discarded", "c", None), EnvelopeContent::Discarded),
        ] {
            assert_eq!(read(&record.headers).map(|envelope| envelope.content), Ok(content));
        }
        let mark = read(&writer.mark("machine/7").headers).unwrap();
        assert_eq!((mark.sender.from, mark.content), (Some(sender()), EnvelopeContent::Mark("machine/7".into())));
    }

    #[test]
    fn a_foreign_request_needs_few_headers() {
        let header = |name: &'static str, value: &str| (Cow::Borrowed(name), value.as_bytes().to_vec());
        let headers = [
            header(names::KIND, "request"),
            header(names::ROUTE, "calculator/add"),
            header(names::CORRELATION, "order 7"),
            header(names::ENCODING, "json"),
            header(names::REPLY_TOPIC, "gapless.reply.x"),
            header("x-request-id", "of somebody else"),
        ];
        let envelope = read(&headers).unwrap();
        let EnvelopeContent::Request(head, None) = envelope.content else { panic!("another kind") };
        let defaults = RequestHead::default();
        let expected =
            RequestHead { route: "calculator/add".to_owned(), encoding: Encoding::Json, attempt: 1, ..defaults };
        assert_eq!((*head, envelope.sender.from, envelope.to), (expected, None, None));
        assert_eq!(envelope.sender.reply_topic.as_deref(), Some("gapless.reply.x"));
    }

    #[test]
    fn each_refusal_names_its_header() {
        let record = RecordWriter::new(&sender()).request("feed:7", 9, &full(), None);
        let long = "x".repeat(VALUE_LENGTH_MAX + 1);
        for (name, value) in [
            (names::PROTOCOL, "x"),
            (names::KIND, "lease"),
            (names::CORRELATION, "a\nb"),
            (names::FROM, "a@7"),
            (names::FROM, "a b@0000000000000007"),
            (names::TO, "7"),
            (names::ROUTE, "a//b"),
            (names::ROUTE, ".notices/7/main"),
            (names::ROUTE, &long),
            (names::REPLY_TOPIC, "a/b"),
            (names::INSTANCE, "+00000000000000f"),
            (names::QUERY, "x"),
            (names::PRIORITY, "Urgent"),
            (names::KEY, ""),
            (names::TIME_LEFT, "-1"),
            (names::TIME_LEFT, "99999999999999999999"),
            (names::DEADLINE, "9223372036854775808"),
            (names::ATTEMPT, "256"),
            (names::HOPS, "1.0"),
            (names::ENCODING, "xml"),
            (names::FINGERPRINT, "0x"),
            (names::REQUEST_TYPE, "1 2 3"),
            (names::REPLY_TYPE, "x 0000000000000000 json A"),
            (names::ONE_WAY, "1"),
            (names::CALLER, &long),
            (names::SEGMENT, "2/2/70"),
            (names::SEGMENT, "0/1/70"),
            (names::SEGMENT, "0/71/70"),
            (names::SEGMENT, "0/16385/16777216"),
        ] {
            let mut headers = record.headers.clone();
            headers.retain(|(each, _)| each != name);
            headers.push((Cow::Owned(name.to_owned()), value.as_bytes().to_vec()));
            let error = read(&headers).unwrap_err();
            assert!(error.reason.starts_with(&format!("{name}: ")) && error.reason.len() < 400, "{name}: {error}");
            let is_answered =
                ![names::PROTOCOL, names::KIND, names::CORRELATION, names::FROM, names::REPLY_TOPIC].contains(&name);
            assert_eq!(error.sender.is_some(), is_answered, "{name}");
        }
        let mut headers = record.headers;
        headers.push((Cow::Borrowed("h-long"), vec![0; HEADERS_LENGTH_MAX]));
        assert!(read(&headers).unwrap_err().reason.starts_with("headers h-…: more than"));
    }

    #[test]
    fn unreadable_replies_name_their_calls() {
        let refused = ReplyHead::Refused { code: 7, text: String::new() };
        let whole = RecordWriter::new(&sender()).reply("feed:7", Some(9), &refused, None);
        for (name, value) in [
            (names::STATUS, "fine"),
            (names::REFUSAL_CODE, "-1"),
            (names::TO, "9"),
            (names::SEGMENT, "0/16385/16777216"),
            (names::PROTOCOL, "2"),
        ] {
            let mut headers = whole.headers.clone();
            headers.retain(|(each, _)| each != name);
            headers.push((Cow::Borrowed(name), value.as_bytes().to_vec()));
            let error = read(&headers).unwrap_err();
            let found = error.sender.unwrap_or_else(|| panic!("{name}: no sender"));
            assert_eq!((&*found.correlation, found.from, error.is_reply), ("feed:7", Some(sender()), true), "{name}");
        }
        let mut longest = whole.headers.clone();
        longest.push((Cow::Borrowed(names::SEGMENT), b"0/16384/16777216".to_vec()));
        assert!(read(&longest).is_ok());
    }

    #[test]
    fn only_anonymous_programs_have_names() {
        let header = |name: &'static str, value: &str| (Cow::Borrowed(name), value.as_bytes().to_vec());
        let mut headers =
            vec![header(names::KIND, "cancel"), header(names::CORRELATION, "7"), header(names::CALLER, "m1/till")];
        assert_eq!(read(&headers).unwrap().sender.program, "m1/till");
        headers.push(header(names::REPLY_TOPIC, "gapless.reply.x"));
        assert_eq!(read(&headers).unwrap().sender.program, "");
    }

    #[test]
    fn headers_of_a_client_are_the_same() {
        let record = RecordWriter::new(&sender()).request("feed:7", 9, &full(), None);
        for (name, value) in &record.headers {
            let header = super::super::header(name.as_bytes(), Some(value)).unwrap();
            assert_eq!(header, (name.clone(), value.clone()));
            assert_eq!(matches!(header.0, Cow::Borrowed(_)), !name.starts_with("h-"), "{name}");
        }
        for other in [&b"x-other"[..], b"gapless-future", b"\xff"] {
            assert_eq!(super::super::header(other, None), None);
        }
        assert_eq!(super::super::header(b"h-x", None), Some((Cow::Borrowed("h-x"), Vec::new())));
    }

    #[test]
    fn another_version_names_both() {
        let mut record = RecordWriter::new(&sender()).request("feed:7", 9, &full(), None);
        record.headers[0].1 = b"2".to_vec();
        let error = read(&record.headers).unwrap_err();
        assert_eq!(error.protocol, Some(2));
        assert!(error.reason.contains("version 2") && error.reason.contains("version 1"), "{error}");
        assert_eq!(error.sender.unwrap().from, Some(sender()));
    }
}
