//! `json_of`: converts a message known only by its [shape](mod@crate::shape) from postcard to JSON, for people and
//! tools.

use super::postcard_reader::{DEPTH_MAX, EMPTY_ELEMENTS_MAX};
use std::fmt::Write as _;

/// JSON of a message of that shape, as serde writes it: a variant by its name, with its content; numbers beyond 64 bits
/// as text.
///
/// ```
/// use gapless_message::shaped::json_of;
///
/// let shape = "Event v1 enum {Opened, Noted {user: String?, at: u64}}";
/// assert_eq!(json_of(shape, &[0]).unwrap(), r#""Opened""#);
/// assert_eq!(json_of(shape, b"\x01\x01\x02me\x80\x01").unwrap(), r#"{"Noted":{"user":"me","at":128}}"#);
/// assert!(json_of(shape, &[0, 0]).is_err());
/// ```
///
/// # Errors
/// The shape has opaque parts, such as those that a type describes itself, or the bytes are no such message.
pub fn json_of(shape: &str, bytes: &[u8]) -> Result<String, String> {
    let definitions: Vec<_> = definitions(shape).filter_map(ShapeDefinition::read).collect();
    let begin = definitions.first().map_or(shape, |definition| definition.name);
    let parts_left = 16 * bytes.len() as u64 + EMPTY_ELEMENTS_MAX;
    let mut reader = ShapedReader { definitions: &definitions, bytes, json: String::new(), depth: 0, parts_left };
    let rest = reader.value(begin)?;
    if !rest.is_empty() {
        return Err(format!("{begin:?} is no type"));
    }
    match reader.bytes {
        [] => Ok(reader.json),
        left => Err(format!("{} bytes stand behind it", left.len())),
    }
}

fn definitions(mut shape: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (definition, rest) = shape.split_at(type_length(shape));
        shape = rest.strip_prefix("; ").unwrap_or_default();
        (!definition.is_empty()).then_some(definition)
    })
}

/// `Name v1 {…}`, `Name v1 (…)`, `Name v1 enum {…}` or `Name v1`.
struct ShapeDefinition<'a> {
    name: &'a str,
    layout: &'a str,
}

impl<'a> ShapeDefinition<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (name, rest) = text.split_once(" v")?;
        let layout = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_one = layout.len() < rest.len() && !name.contains(['[', '(', '{', ' ']);
        is_one.then_some(Self { name, layout })
    }
}

struct ShapedReader<'a> {
    definitions: &'a [ShapeDefinition<'a>],
    bytes: &'a [u8],
    json: String,
    depth: u32,
    parts_left: u64,
}

type RestResult<'a> = Result<&'a str, String>;

fn strip_expected<'a>(text: &'a str, expected: &str) -> RestResult<'a> {
    text.strip_prefix(expected).ok_or_else(|| format!("{expected:?} is expected in the shape at {text:?}"))
}

fn type_length(text: &str) -> usize {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' if depth == 0 => return at,
            ']' | ')' | '}' => depth -= 1,
            ',' | ';' if depth == 0 => return at,
            ' ' if depth == 0 && text[at..].starts_with(" -> ") => return at,
            _ => {}
        }
    }
    text.len()
}

impl<'a> ShapedReader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(length)
            .ok_or_else(|| format!("{length} bytes are expected, {} are left", self.bytes.len()))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], String> {
        Ok(self.take(LENGTH)?.try_into().expect("so many were taken"))
    }

    fn varint(&mut self, bits: u32) -> Result<u128, String> {
        let mut number = 0_u128;
        for group in 0..bits.div_ceil(7) {
            let [byte] = self.array()?;
            let (low, shift) = (u128::from(byte & 0x7f), group * 7);
            if bits - shift < 7 && low >> (bits - shift) != 0 {
                break;
            }
            number |= low << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(format!("a number of {bits} bits is expected, a longer one was found"))
    }

    fn put(&mut self, text: &str) {
        self.json.push_str(text);
    }

    fn put_number<Number: TryInto<i64> + TryInto<u64> + std::fmt::Display + Copy>(&mut self, number: Number) {
        let is_short = TryInto::<i64>::try_into(number).is_ok() || TryInto::<u64>::try_into(number).is_ok();
        // Writing to a string cannot fail.
        let _ = if is_short { write!(self.json, "{number}") } else { write!(self.json, "\"{number}\"") };
    }

    fn put_text(&mut self, text: &str) {
        self.json.push_str(&serde_json::Value::from(text).to_string());
    }

    fn text(&mut self) -> Result<(), String> {
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| "a text is expected that is UTF-8")?;
        self.put_text(text);
        Ok(())
    }

    fn length(&mut self) -> Result<usize, String> {
        usize::try_from(self.varint(64)?).map_err(|error| error.to_string())
    }

    fn count_part(&mut self) -> Result<(), String> {
        let left = self.parts_left.checked_sub(1);
        self.parts_left = left.ok_or("it has more parts than its bytes can be")?;
        Ok(())
    }

    /// Returns the text after the type.
    fn value(&mut self, text: &'a str) -> RestResult<'a> {
        self.depth += 1;
        self.count_part()?;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} times"));
        }
        let (of_type, rest) = text.split_at(type_length(text));
        match of_type.strip_suffix('?') {
            Some(held) => match self.array()? {
                [0] => self.put("null"),
                [1] => self.whole(held)?,
                [other] => return Err(format!("0 or 1 is expected before an option, {other} was found")),
            },
            None => self.bare(of_type)?,
        }
        self.depth -= 1;
        Ok(rest)
    }

    fn whole(&mut self, of_type: &'a str) -> Result<(), String> {
        match self.value(of_type)? {
            "" => Ok(()),
            rest => Err(format!("{rest:?} stands behind a type")),
        }
    }

    fn bare(&mut self, of_type: &'a str) -> Result<(), String> {
        if let Some(inner) = of_type.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            return self.sequence(inner);
        }
        if let Some((name, inner)) = of_type.strip_suffix(')').and_then(|text| text.split_once('(')) {
            return match name {
                "" => self.tuple(inner),
                "Range" | "RangeInclusive" => {
                    self.put("{\"start\":");
                    self.whole(inner)?;
                    self.put(",\"end\":");
                    self.whole(inner)?;
                    self.put("}");
                    Ok(())
                }
                "Result" => {
                    let (ok, error) = inner.split_at(type_length(inner));
                    self.variant(&[("Ok", ok), ("Err", strip_expected(error, ", ")?)])
                }
                _ => Err(format!("{of_type:?} says nothing of its bytes")),
            };
        }
        match self.definitions.iter().find(|definition| definition.name == of_type) {
            Some(definition) => self.defined(definition.layout),
            None => self.plain(of_type),
        }
    }

    /// `T`, `T; 3` or `K -> V`, between brackets.
    fn sequence(&mut self, inner: &'a str) -> Result<(), String> {
        let (of_type, rest) = inner.split_at(type_length(inner));
        if let Some(of_value) = rest.strip_prefix(" -> ") {
            let count = self.length()?;
            return self.list(count, ['[', ']'], |reader| {
                // JSON keys are strings: a map becomes a list of pairs.
                reader.put("[");
                reader.whole(of_type)?;
                reader.put(",");
                reader.whole(of_value)?;
                reader.put("]");
                Ok(())
            });
        }
        let count = match rest.strip_prefix("; ") {
            Some(count) => count.parse().map_err(|_| format!("{count:?} is no length"))?,
            None => self.length()?,
        };
        self.list(count, ['[', ']'], |reader| reader.whole(of_type))
    }

    fn list(
        &mut self,
        count: usize,
        [open, close]: [char; 2],
        mut element: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.json.push(open);
        for index in 0..count {
            if index > 0 {
                self.put(",");
            }
            element(self)?;
        }
        self.json.push(close);
        Ok(())
    }

    /// A single type is not wrapped.
    fn tuple(&mut self, mut inner: &'a str) -> Result<(), String> {
        if inner.is_empty() {
            self.put("null");
            return Ok(());
        }
        if type_length(inner) == inner.len() {
            return self.whole(inner);
        }
        self.put("[");
        loop {
            inner = self.value(inner)?;
            if inner.is_empty() {
                break;
            }
            inner = strip_expected(inner, ", ")?;
            self.put(",");
        }
        self.put("]");
        Ok(())
    }

    fn fields(&mut self, mut inner: &'a str) -> Result<(), String> {
        self.put("{");
        while !inner.is_empty() {
            let (name, of_type) = inner.split_once(": ").ok_or_else(|| format!("{inner:?} is no field"))?;
            self.put_text(name);
            self.put(":");
            inner = self.value(of_type)?;
            if !inner.is_empty() {
                inner = strip_expected(inner, ", ")?;
                self.put(",");
            }
        }
        self.put("}");
        Ok(())
    }

    fn defined(&mut self, layout: &'a str) -> Result<(), String> {
        let between = |open: &str, close| layout.strip_prefix(open).and_then(|text| text.strip_suffix(close));
        if layout.is_empty() {
            self.put("null");
            Ok(())
        } else if let Some(inner) = between(" enum {", '}') {
            let mut variants = Vec::new();
            let mut rest = inner;
            while !rest.is_empty() {
                let (variant, behind_it) = rest.split_at(type_length(rest));
                let name_length = variant.find(['(', ' ', ':']).unwrap_or(variant.len());
                variants.push(variant.split_at(name_length));
                rest = if behind_it.is_empty() { behind_it } else { strip_expected(behind_it, ", ")? };
            }
            self.variant(&variants)
        } else if let Some(inner) = between(" {", '}') {
            self.fields(inner)
        } else if let Some(inner) = between(" (", ')').or(between("(", ')')) {
            self.tuple(inner)
        } else {
            Err(format!("{layout:?} says nothing of its bytes"))
        }
    }

    fn variant(&mut self, variants: &[(&'a str, &'a str)]) -> Result<(), String> {
        let index = self.varint(32)?;
        let found = usize::try_from(index).ok().and_then(|index| variants.get(index));
        let (name, layout) =
            *found.ok_or_else(|| format!("there are {} variants, and {index} was found", variants.len()))?;
        if layout.is_empty() {
            self.put_text(name);
            return Ok(());
        }
        self.put("{");
        self.put_text(name);
        self.put(":");
        // The content of `Result`'s variants is a type without brackets.
        if layout.starts_with(['(', ' ']) {
            self.defined(layout)?
        } else {
            self.whole(layout)?
        }
        self.put("}");
        Ok(())
    }

    fn plain(&mut self, of_type: &str) -> Result<(), String> {
        let (name, is_nonzero) = of_type.strip_suffix("!0").map_or((of_type, false), |name| (name, true));
        let begin = self.json.len();
        match name {
            "bool" => match self.array()? {
                [0] => self.put("false"),
                [1] => self.put("true"),
                [other] => return Err(format!("0 or 1 is expected for a truth value, {other} was found")),
            },
            "u8" => {
                let [byte] = self.array()?;
                self.put_number(u64::from(byte));
            }
            "i8" => {
                let number = i8::from_le_bytes(self.array()?);
                self.put_number(i64::from(number));
            }
            "u16" | "u32" | "u64" | "usize" | "u128" => {
                let number = self.varint(bits_of(name))?;
                self.put_number(number);
            }
            "i16" | "i32" | "i64" | "isize" | "i128" => {
                let number = self.varint(bits_of(name))?;
                self.put_number((number >> 1) as i128 ^ -((number & 1) as i128));
            }
            "f32" => {
                let number = f32::from_le_bytes(self.array()?);
                self.put(&serde_json::Value::from(number).to_string());
            }
            "f64" => {
                let number = f64::from_le_bytes(self.array()?);
                self.put(&serde_json::Value::from(number).to_string());
            }
            "String" | "char" | "Path" => self.text()?,
            "Duration" => return self.fields("secs: u64, nanos: u32"),
            "SystemTime" => return self.fields("secs_since_epoch: u64, nanos_since_epoch: u32"),
            "Ipv4Addr" => {
                let address = std::net::Ipv4Addr::from(self.array::<4>()?);
                self.put_text(&address.to_string());
            }
            "Ipv6Addr" => {
                let address = std::net::Ipv6Addr::from(self.array::<16>()?);
                self.put_text(&address.to_string());
            }
            _ => return Err(format!("{of_type:?} says nothing of its bytes")),
        }
        if is_nonzero && &self.json[begin..] == "0" {
            return Err("a number other than 0 is expected".to_owned());
        }
        Ok(())
    }
}

fn bits_of(name: &str) -> u32 {
    // usize and isize are written as 64 bits.
    name[1..].parse().unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::shape_of;
    use proptest::prelude::*;
    use serde::Serialize;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn json<T: Serialize + crate::Shape>(value: &T) -> String {
        json_of(&shape_of::<T>(), &postcard::to_allocvec(value).unwrap()).unwrap()
    }

    #[test]
    fn std_types_are_converted() {
        assert_eq!(json(&(true, -5_i64, u64::MAX, "é\n".to_owned())), "[true,-5,18446744073709551615,\"é\\n\"]");
        assert_eq!(json(&vec![Some((7_u8, 'x')), None]), "[[7,\"x\"],null]");
        assert_eq!(json(&[[1_i16, -1], [i16::MAX, i16::MIN]]), "[[1,-1],[32767,-32768]]");
        assert_eq!(json(&BTreeMap::from([(3_u32, vec![0.5_f64])])), "[[3,[0.5]]]");
        assert_eq!(json(&Duration::from_millis(1500)), "{\"secs\":1,\"nanos\":500000000}");
        assert_eq!(json(&(Ok::<u8, String>(1), Err::<u8, String>("no".to_owned()))), "[{\"Ok\":1},{\"Err\":\"no\"}]");
        assert_eq!(json(&(u128::MAX, i128::MIN)), format!("[\"{}\",\"{}\"]", u128::MAX, i128::MIN));
        assert_eq!(json(&(3_u16..5)), "{\"start\":3,\"end\":5}");
        assert_eq!(json(&((), Some(Some(1_u8)))), "[null,1]");
    }

    #[test]
    fn named_types_are_converted() {
        let shape = "Order v2 {id: u64, lines: [Line], kind: Kind, next: Order?}; Line v1 (i64, String?); Kind v1 enum {Plain, \
                     Gift(String), Many(u8, u8), Sent {to: String, on: Day}}; Day v1 (u16)";
        let gift = [&[5, 1, 3, 0, 1][..], b"\x02no", &[0]].concat();
        assert_eq!(
            json_of(shape, &gift).unwrap(),
            "{\"id\":5,\"lines\":[[-2,null]],\"kind\":{\"Gift\":\"no\"},\"next\":null}"
        );
        let nested = [&[1, 0, 2, 8, 9, 1][..], &[2, 0, 3, 1], b"x", &[7, 0]].concat();
        assert_eq!(
            json_of(shape, &nested).unwrap(),
            "{\"id\":1,\"lines\":[],\"kind\":{\"Many\":[8,9]},\"next\":{\"id\":2,\"lines\":[],\"kind\":{\"Sent\":{\"to\":\"x\",\
             \"on\":7}},\"next\":null}}"
        );
        assert_eq!(json_of("Shipped v1", &[]).unwrap(), "null");
    }

    #[test]
    fn opaque_shape_is_an_error() {
        for (shape, bytes) in [
            ("Price v1 {amount: i64, currency: Currency 1}", &[2, 3][..]),
            ("Event v1 enum {Old: by hand, New}", &[0, 1]),
            ("Event v1 enum {A}", &[1]),
            ("Own v1 {next: Own}", &[]),
            ("[()]", &[0xff, 0xff, 0xff, 0x7f]),
            ("u16", &[0xff, 0xff, 0x7f]),
            ("u8!0", &[0]),
            ("String", &[1, 0xff]),
            ("", &[]),
        ] {
            assert!(json_of(shape, bytes).is_err(), "{shape}");
        }
        assert_eq!(json_of("Event v1 enum {Old: by hand, New}", &[1]).unwrap(), "\"New\"");
    }

    proptest! {
        #[test]
        fn any_shape_and_bytes_are_safe(shape in "[a-z0-9A-Zv?:;, >{}()\\[\\]!-]{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(json) = json_of(&shape, &bytes) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
