//! The shared functions of the readers of a workbook's parts: attributes, positions, and replacements within a text.

use quick_xml::Reader;
use quick_xml::events::BytesStart;

pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok().flatten()?;
    Some(attribute.value.into_owned())
}

pub(super) fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

pub(super) fn damaged(error: quick_xml::Error) -> String {
    format!("is damaged: {error}")
}

#[derive(Debug)]
pub(super) struct Splice {
    begin: usize,
    end: usize,
    text: String,
}

impl Splice {
    pub(super) fn new(begin: usize, end: usize, text: String) -> Self {
        Self { begin, end, text }
    }
}

/// Order does not matter.
///
/// # Errors
/// Two splices overlap.
pub(super) fn apply(text: &str, mut splices: Vec<Splice>) -> Result<String, String> {
    splices.sort_by_key(|splice| splice.begin);
    let mut result = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for splice in splices {
        let kept = text.get(done..splice.begin);
        result.push_str(kept.ok_or("is damaged: rows or cells lie inside each other")?);
        result.push_str(&splice.text);
        done = splice.end;
    }
    result.push_str(&text[done..]);
    Ok(result)
}

/// `x:` of `x:sheetData`, nothing of `sheetData`.
pub(super) fn prefix_of(name: &str) -> &str {
    name.find(':').map_or("", |colon| &name[..=colon])
}
