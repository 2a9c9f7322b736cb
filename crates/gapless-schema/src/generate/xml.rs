//! Reads schema files as XML, follows `xi:include`, and gives elements and attributes with their places.
//!
//! Nothing here knows SBE.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::FromStr;

use roxmltree::{Document, Node, ParsingOptions};

use super::error::{Location, SchemaError, SchemaSource};

pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Elements, attributes and texts in a file.
const NODES_MAX: u32 = 1_000_000;
/// Group in group in group is three.
const DEPTH_MAX: usize = 64;
const FILES_MAX: usize = 256;

/// The schema itself comes before its includes.
pub(crate) fn load(path: &Path) -> Result<Vec<Rc<SchemaSource>>, SchemaError> {
    let text = read(path)?;
    load_text(path, text)
}

/// `path` is the name of `text` and the base of its includes.
pub(crate) fn load_text(path: &Path, text: String) -> Result<Vec<Rc<SchemaSource>>, SchemaError> {
    let mut seen: HashSet<PathBuf> = HashSet::from([path.to_owned()]);
    let mut paths = vec![path.to_owned()];
    let mut sources = vec![Rc::new(SchemaSource { name: path.display().to_string(), text })];
    let mut next = 0;
    while next < sources.len() {
        let includes = includes(&sources[next])?;
        for (href, place) in includes {
            let file = paths[next].parent().unwrap_or(Path::new("")).join(&href);
            if !seen.insert(file.clone()) {
                continue;
            }
            if sources.len() >= FILES_MAX {
                return Err(place.error("too many files are included", format!("at most {FILES_MAX}")));
            }
            let text = read(&file).map_err(|error| place.error(format!("{error}"), "a readable file in href"))?;
            sources.push(Rc::new(SchemaSource { name: file.display().to_string(), text }));
            paths.push(file);
        }
        next += 1;
    }
    Ok(sources)
}

fn read(path: &Path) -> Result<String, SchemaError> {
    let failed = |source| SchemaError::File { file: path.to_owned(), expected: "a readable schema in UTF-8", source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        // A device has no length and no end; a pipe may block forever.
        return Err(failed(std::io::Error::other("it is not a file")));
    }
    let found_bytes = metadata.len();
    if found_bytes > FILE_BYTES_MAX {
        return Err(SchemaError::TooLarge { file: path.to_owned(), found_bytes, limit_bytes: FILE_BYTES_MAX });
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    // Generated files of the kernel report no length.
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn includes(source: &Rc<SchemaSource>) -> Result<Vec<(String, Location)>, SchemaError> {
    let document = parse(source)?;
    let root = Element::root(&document, source);
    let mut found = Vec::new();
    for child in root.children().filter(|child| child.name() == "include") {
        found.push((child.required("href")?.to_owned(), child.location()));
    }
    Ok(found)
}

pub(crate) fn parse(source: &Rc<SchemaSource>) -> Result<Document<'_>, SchemaError> {
    if source.text.len() as u64 > FILE_BYTES_MAX {
        let file = PathBuf::from(&source.name);
        return Err(SchemaError::TooLarge { file, found_bytes: source.text.len() as u64, limit_bytes: FILE_BYTES_MAX });
    }
    check_depth(source)?;
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(&source.text, options).map_err(|error| {
        let location = Location { source: source.clone(), byte: error_position(&source.text, &error) };
        // The parser quotes its input with line breaks; an error must be one line.
        let error = error.to_string().replace(char::is_control, " ");
        location.error(format!("malformed XML: {error}"), "well-formed XML without a document type")
    })
}

fn error_position(text: &str, error: &roxmltree::Error) -> usize {
    use roxmltree::Error::{NoRootNode, UnclosedRootNode, UnexpectedEndOfStream};
    // The parser gives no place for these; they are at the end.
    if matches!(error, NoRootNode | UnclosedRootNode | UnexpectedEndOfStream) {
        return text.len();
    }
    let place = error.pos();
    let start: usize = text.split_inclusive('\n').take(place.row as usize - 1).map(str::len).sum();
    let column = text[start..].char_indices().nth(place.col as usize - 1);
    column.map_or(text.len(), |(offset, _)| start + offset)
}

/// The parser recurses. The count of tags is approximate: text that looks like a tag is skipped.
fn check_depth(source: &Rc<SchemaSource>) -> Result<(), SchemaError> {
    let text = source.text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'<') {
        at += found;
        let rest = &source.text.as_bytes()[at..];
        let end = |mark: &[u8]| rest.windows(mark.len()).position(|window| window == mark).map(|end| end + mark.len());
        let length = if rest.starts_with(b"<!--") {
            end(b"-->")
        } else if rest.starts_with(b"<![CDATA[") {
            end(b"]]>")
        } else {
            let length = tag_length(rest);
            if rest.starts_with(b"</") {
                depth = depth.saturating_sub(1);
            } else if !rest.starts_with(b"<?") && !rest.starts_with(b"<!") {
                let closed = length.is_some_and(|length| rest[..length].ends_with(b"/>"));
                depth += usize::from(!closed);
            }
            length
        };
        if depth > DEPTH_MAX {
            let location = Location { source: source.clone(), byte: at };
            return Err(location.error("elements are nested too deeply", format!("at most {DEPTH_MAX} levels")));
        }
        match length {
            Some(length) => at += length,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// A `>` within quotes does not end it.
fn tag_length(rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (index, byte) in rest.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(index + 1),
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
    }
    None
}

#[derive(Clone)]
pub(crate) struct Element<'d> {
    pub node: Node<'d, 'd>,
    pub source: Rc<SchemaSource>,
}

impl<'d> Element<'d> {
    pub(crate) fn root(document: &'d Document<'d>, source: &Rc<SchemaSource>) -> Self {
        Self { node: document.root_element(), source: source.clone() }
    }

    pub(crate) fn name(&self) -> &'d str {
        self.node.tag_name().name()
    }

    pub(crate) fn location(&self) -> Location {
        self.at(self.node.range().start)
    }

    pub(crate) fn at(&self, byte: usize) -> Location {
        Location { source: self.source.clone(), byte }
    }

    /// Place of the element if it has no such attribute.
    pub(crate) fn attribute_location(&self, name: &str) -> Location {
        match self.node.attribute_node(name) {
            Some(attribute) => self.at(attribute.range().start),
            None => self.location(),
        }
    }

    pub(crate) fn error(&self, problem: impl Into<String>, expected: impl Into<String>) -> SchemaError {
        self.location().error(problem, expected)
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = Element<'d>> + use<'d> {
        let source = self.source.clone();
        self.node.children().filter(Node::is_element).map(move |node| Element { node, source: source.clone() })
    }

    /// Trimmed: in the schema of SBE schemas it is an `xs:token`.
    pub(crate) fn text(&self) -> &'d str {
        self.node.text().unwrap_or("").trim()
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&'d str> {
        self.node.attribute(name)
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'d str, SchemaError> {
        self.attribute(name)
            .ok_or_else(|| self.error(format!("<{}> has no attribute {name:?}", self.name()), format!("{name}=\"…\"")))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, SchemaError> {
        match self.attribute(name) {
            None => Ok(None),
            Some(text) => match text.trim().parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.attribute_location(name).error(format!("{name} is {text:?}"), expected)),
            },
        }
    }

    pub(crate) fn symbol(&self) -> Result<String, SchemaError> {
        let name = self.required("name")?;
        let mut characters = name.chars();
        let good = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
            && name.contains(|character: char| character.is_ascii_alphanumeric());
        if good {
            return Ok(name.to_owned());
        }
        Err(self
            .attribute_location("name")
            .error(format!("the name {name:?} is not a symbolic name"), "a letter or _, then letters, digits or _"))
    }
}
