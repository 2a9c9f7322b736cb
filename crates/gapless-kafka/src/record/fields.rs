//! Texts of headers: numbers, types, encodings.

use super::SegmentPlace;
use gapless_message::Encoding;
use gapless_message::described::TypeDescription;
use gapless_rpc::{InstanceQuery, Priority};

const TYPE_NAME_LENGTH_MAX: usize = 512;
/// Segments of a payload at most.
pub const SEGMENTS_MAX: u32 = 1 << 14;

pub(crate) const ENCODINGS: [(&str, Encoding); 5] = [
    ("bytes", Encoding::Bytes),
    ("postcard", Encoding::Postcard),
    ("sbe", Encoding::Sbe),
    ("protobuf", Encoding::Protobuf),
    ("json", Encoding::Json),
];

pub(super) const PRIORITIES: [(&str, Priority); 4] =
    [("urgent", Priority::Urgent), ("high", Priority::High), ("normal", Priority::Normal), ("low", Priority::Low)];

pub(super) const QUERIES: [(&str, InstanceQuery); 3] =
    [("ping", InstanceQuery::Ping), ("info", InstanceQuery::Info), ("statistics", InstanceQuery::Statistics)];

pub(crate) fn value_of<T: Copy>(list: &[(&str, T)], name: &str) -> Option<T> {
    list.iter().find(|(each, _)| *each == name).map(|(_, value)| *value)
}

pub(crate) fn name_of<T: PartialEq>(list: &[(&'static str, T)], value: &T) -> &'static str {
    list.iter().find(|(_, each)| each == value).map_or("", |(name, _)| name)
}

/// 16 lower-case hexadecimal digits.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == 16 && text.bytes().all(is_digit)).then(|| u64::from_str_radix(text, 16).ok())?
}

pub(super) fn decimal(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `INDEX/COUNT/BYTES`, of 2 to [`SEGMENTS_MAX`] segments.
pub(super) fn segment(text: &str) -> Option<SegmentPlace> {
    let mut parts = text.splitn(3, '/').map(decimal);
    let (index, count, total_bytes) = (parts.next()??, parts.next()??, parts.next()??);
    let (index, count) = (u32::try_from(index).ok()?, u32::try_from(count).ok()?);
    let is_possible = (2..=SEGMENTS_MAX).contains(&count) && index < count && u64::from(count) <= total_bytes;
    is_possible.then_some(SegmentPlace { index, count, total_bytes })
}

/// `VERSION FINGERPRINT ENCODING NAME`.
pub(super) fn described(text: &str) -> Option<TypeDescription> {
    let mut parts = text.splitn(4, ' ');
    let version = u32::try_from(decimal(parts.next()?)?).ok()?;
    let fingerprint = hexadecimal(parts.next()?)?;
    let encoding = value_of(&ENCODINGS, parts.next()?)?;
    let name = parts.next().filter(|name| name.len() <= TYPE_NAME_LENGTH_MAX && !name.contains(char::is_control))?;
    Some(TypeDescription { name: name.to_owned(), fingerprint, encoding, version })
}

pub(super) fn description(described: &TypeDescription) -> String {
    let TypeDescription { name, fingerprint, encoding, version } = described;
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let end = (0..=TYPE_NAME_LENGTH_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{version} {fingerprint:016x} {} {}", name_of(&ENCODINGS, encoding), &name[..end])
}
