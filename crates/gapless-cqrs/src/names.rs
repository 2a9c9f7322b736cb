//! [`TypeNames`]: names and layouts of the types in a stream, in a file next to the journal, for people and tools. A
//! starting host compares it with its own events; without a valid file the check and the names are missing.
//!
//! ```text
//! { "format": 1,
//!   "aggregates": [ { "name": "account", "key": 2460416341, "id": "number:8" }, … ],
//!   "messages": [ { "name": "AccountEvent", "key": …, "role": "event", "encoding": "postcard",
//!                   "versions": [ { "version": 1, "shape": "AccountEvent v1 enum {Opened, Deposited(u64)}" }, … ] }, … ] }
//! ```
//!
//! Types that a host's model no longer has stay in the file, because their events stay in the stream.

use crate::error::TypesError;
use crate::identity::{IdForm, TypeKey};
use crate::transaction::RecordedEvent;
use gapless_agent::checked_file;
use gapless_journal::replace_file;
use gapless_message::difference::difference;
use gapless_message::shape::fingerprint;
use gapless_message::{Encoding, Message, OlderVersion, shaped};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const FORMAT: u64 = 1;
const LENGTH_MAX: u64 = 16 << 20;

/// Role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    Command,
    Event,
    Refusal,
    Reply,
}

/// A type of aggregates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAggregate {
    pub name: String,
    /// Text form of identifiers.
    pub id: IdForm,
}

/// A type of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMessage {
    pub name: String,
    /// Role of the messages.
    pub role: MessageRole,
    /// Encoding of the messages.
    pub encoding: Encoding,
    /// Shapes of the versions known to programs that have run here.
    pub shapes: BTreeMap<u32, String>,
}

impl NamedMessage {
    /// Describes a type of this program.
    #[must_use]
    pub fn of<M: Message>(role: MessageRole) -> Self {
        let shapes = BTreeMap::from([(M::VERSION, M::shape())]);
        Self { name: M::TYPE_NAME.to_owned(), role, encoding: M::ENCODING, shapes }
    }
}

pub(crate) struct EventLayout {
    name: &'static str,
    shape: String,
    /// Newest first; a fingerprint of 0 is not compared.
    versions: Vec<OlderVersion>,
}

impl EventLayout {
    pub const fn key(&self) -> TypeKey {
        TypeKey::of(self.name)
    }

    pub fn of<M: Message>() -> Self {
        let newest = OlderVersion { version: M::VERSION, fingerprint: M::fingerprint() };
        Self { name: M::TYPE_NAME, shape: M::shape(), versions: std::iter::once(newest).chain(M::older()).collect() }
    }

    fn check(&self, path: &Path, before: &TypeNames) -> Result<(), TypesError> {
        let Some(named) = before.messages.get(&self.key()) else { return Ok(()) };
        for OlderVersion { version, fingerprint: own } in &self.versions {
            let Some(before) = named.shapes.get(version) else { continue };
            if *own == 0 || fingerprint(before) == *own {
                continue;
            }
            let now = match *version == self.versions[0].version {
                true => {
                    let differs = difference((before, &self.shape), ("in the file", "in this program"));
                    format!("`{}` in this program ({})", self.shape, differs.unwrap_or_default())
                }
                false => "and this program reads another one".to_owned(),
            };
            let (path, before) = (path.to_owned(), before.clone());
            return Err(TypesError::LayoutChanged { path, name: self.name, version: *version, before, now });
        }
        Ok(())
    }
}

/// Names and layouts of a stream's types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeNames {
    /// Types of aggregates by key.
    pub aggregates: BTreeMap<TypeKey, NamedAggregate>,
    /// Types of messages by key.
    pub messages: BTreeMap<TypeKey, NamedMessage>,
}

impl TypeNames {
    /// File in the stream's directory.
    pub const FILE_NAME: &str = "types.json";

    pub(crate) fn add_aggregate(&mut self, name: &str, id: IdForm) {
        self.aggregates.insert(TypeKey::of(name), NamedAggregate { name: name.to_owned(), id });
    }

    /// `false` if a different type has the same name.
    pub(crate) fn add_message<M: Message>(&mut self, role: MessageRole) -> bool {
        let message = NamedMessage::of::<M>(role);
        let known = self.messages.entry(TypeKey::of(M::TYPE_NAME)).or_insert_with(|| message.clone());
        (known.encoding, &known.shapes) == (message.encoding, &message.shapes)
    }

    /// Name, or the digits of the key if unknown.
    #[must_use]
    pub fn aggregate_name(&self, key: TypeKey) -> String {
        self.aggregates.get(&key).map_or_else(|| digits_of(key), |named| named.name.clone())
    }

    /// Name, or the digits of the key if unknown.
    #[must_use]
    pub fn message_name(&self, key: TypeKey) -> String {
        self.messages.get(&key).map_or_else(|| digits_of(key), |named| named.name.clone())
    }

    /// Event as JSON; `None` if its shape is unknown or does not match.
    #[must_use]
    pub fn json_of(&self, event: &RecordedEvent<'_>) -> Option<String> {
        let named = self.messages.get(&event.event)?;
        match named.encoding {
            Encoding::Postcard => shaped::json_of(named.shapes.get(&event.version)?, event.payload).ok(),
            Encoding::Json => std::str::from_utf8(event.payload).ok().map(str::to_owned),
            Encoding::Bytes | Encoding::Sbe | Encoding::Protobuf => None,
        }
    }

    fn complete(&mut self, others: Self) {
        for (key, aggregate) in others.aggregates {
            self.aggregates.entry(key).or_insert(aggregate);
        }
        for (key, other) in others.messages {
            let message = self.messages.entry(key).or_insert_with(|| other.clone());
            for (version, shape) in other.shapes {
                message.shapes.entry(version).or_insert(shape);
            }
        }
    }

    /// Merges the names into the file at `path`, and writes it only if something is new.
    pub(crate) fn put(&self, path: &Path, events: &[EventLayout]) -> io::Result<Self> {
        let before = match Self::read(path) {
            Ok(before) => Some(before),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if TypesError::of(&error).is_some() => return Err(error),
            Err(error) => {
                tracing::warn!(
                    "{error}; it is written anew, and nobody looks whether the layouts of events have changed"
                );
                None
            }
        };
        let mut all = self.clone();
        if let Some(before) = before {
            events.iter().try_for_each(|event| event.check(path, &before)).map_err(io::Error::other)?;
            all.complete(before.clone());
            if all == before {
                return Ok(all);
            }
        }
        let mut bytes = serde_json::to_vec_pretty(&all.to_json())?;
        bytes.push(b'\n');
        replace_file(path, path.with_extension("json.new"), &bytes)?;
        Ok(all)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Missing, unreadable, damaged; [`TypesError::Newer`].
    pub fn read(path: &Path) -> io::Result<Self> {
        let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let text = checked_file::read(path, LENGTH_MAX).map_err(failed)?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        match value["format"].as_u64() {
            Some(found) if found > FORMAT => {
                let newer = TypesError::Newer { path: path.to_owned(), found, known: FORMAT };
                Err(io::Error::new(io::ErrorKind::InvalidData, newer))
            }
            _ => Self::from_json(&value).ok_or_else(|| damaged("it is no list of types".to_owned())),
        }
    }

    fn to_json(&self) -> Value {
        let aggregate = |(key, aggregate): (&TypeKey, &NamedAggregate)| json!({ "name": aggregate.name, "key": key.0, "id": text_of_form(aggregate.id) });
        let message = |(key, message): (&TypeKey, &NamedMessage)| {
            let version = |(version, shape): (&u32, &String)| json!({ "version": version, "shape": shape });
            json!({
                "name": message.name,
                "key": key.0,
                "role": word_of(&ROLES, message.role),
                "encoding": word_of(&ENCODINGS, message.encoding),
                "versions": message.shapes.iter().map(version).collect::<Vec<_>>(),
            })
        };
        json!({
            "format": FORMAT,
            "aggregates": self.aggregates.iter().map(aggregate).collect::<Vec<_>>(),
            "messages": self.messages.iter().map(message).collect::<Vec<_>>(),
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        if value["format"] != FORMAT {
            return None;
        }
        let mut names = Self::default();
        for entry in value["aggregates"].as_array()? {
            let (key, name) = key_and_name(entry.as_object()?)?;
            names.aggregates.insert(key, NamedAggregate { name, id: form_of_text(entry["id"].as_str()?)? });
        }
        for entry in value["messages"].as_array()? {
            let (key, name) = key_and_name(entry.as_object()?)?;
            let role = value_of(&ROLES, entry["role"].as_str()?)?;
            let encoding = value_of(&ENCODINGS, entry["encoding"].as_str()?)?;
            let mut shapes = BTreeMap::new();
            for version in entry["versions"].as_array()? {
                let number = u32::try_from(version["version"].as_u64()?).ok()?;
                shapes.insert(number, version["shape"].as_str()?.to_owned());
            }
            names.messages.insert(key, NamedMessage { name, role, encoding, shapes });
        }
        Some(names)
    }
}

fn digits_of(key: TypeKey) -> String {
    format!("{:#010x}", key.0)
}

fn key_and_name(entry: &Map<String, Value>) -> Option<(TypeKey, String)> {
    let name = entry.get("name")?.as_str()?;
    let key = TypeKey::of(name);
    (entry.get("key")?.as_u64()? == u64::from(key.0)).then(|| (key, name.to_owned()))
}

const ROLES: [(MessageRole, &str); 4] = [
    (MessageRole::Command, "command"),
    (MessageRole::Event, "event"),
    (MessageRole::Refusal, "refusal"),
    (MessageRole::Reply, "reply"),
];

const ENCODINGS: [(Encoding, &str); 5] = [
    (Encoding::Bytes, "bytes"),
    (Encoding::Postcard, "postcard"),
    (Encoding::Sbe, "sbe"),
    (Encoding::Protobuf, "protobuf"),
    (Encoding::Json, "json"),
];

fn word_of<T: PartialEq + Copy>(words: &[(T, &'static str)], value: T) -> &'static str {
    words.iter().find(|(of, _)| *of == value).expect("every value has a word").1
}

fn value_of<T: Copy>(words: &[(T, &str)], word: &str) -> Option<T> {
    words.iter().find(|(_, of)| *of == word).map(|(value, _)| *value)
}

fn text_of_form(form: IdForm) -> String {
    match form {
        IdForm::Text => "text".to_owned(),
        IdForm::Number { length } => format!("number:{length}"),
        IdForm::Bytes => "bytes".to_owned(),
    }
}

fn form_of_text(text: &str) -> Option<IdForm> {
    match text {
        "text" => Some(IdForm::Text),
        "bytes" => Some(IdForm::Bytes),
        number => {
            let length = number.strip_prefix("number:")?.parse().ok()?;
            (1..=16).contains(&length).then_some(IdForm::Number { length })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::AggregateId as _;
    use crate::samples::{Account, AccountEvent};
    use crate::{Aggregate as _, CommandModel};

    fn names() -> TypeNames {
        CommandModel::new().aggregate::<Account>().finish().unwrap().names
    }

    #[test]
    fn names_are_merged_into_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TypeNames::FILE_NAME);
        let mut older = TypeNames::default();
        older.add_aggregate("customer", String::FORM);
        let mut event = NamedMessage::of::<AccountEvent>(MessageRole::Event);
        event.shapes = BTreeMap::from([(7, "an older program's".to_owned())]);
        older.messages.insert(TypeKey::of(&event.name), event);
        older.put(&path, &[]).unwrap();
        let put = names().put(&path, &[EventLayout::of::<AccountEvent>()]).unwrap();
        assert_eq!(put, TypeNames::read(&path).unwrap());
        let read = TypeNames::read(&path).unwrap();
        assert_eq!(read.aggregates[&TypeKey::of(Account::NAME)].id, u64::FORM);
        assert_eq!(read.aggregates[&TypeKey::of("customer")].name, "customer");
        let event = &read.messages[&TypeKey::of("AccountEvent")];
        assert_eq!((event.role, event.encoding), (MessageRole::Event, Encoding::Postcard));
        assert!(event.shapes[&1].starts_with("AccountEvent v1 enum {Opened, ") && event.shapes.contains_key(&7));
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        names().put(&path, &[]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), written, "without news nothing is written");
    }

    #[test]
    fn damaged_file_is_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TypeNames::FILE_NAME);
        for damaged in [
            "",
            "{}",
            "[1]",
            r#"{"format": 0}"#,
            &"[".repeat(100_000),
            &format!(r#"{{"format": 1, "aggregates": {}"#, r#"{"a":"#.repeat(100_000)),
            r#"{"format":1,"aggregates":[{"name":"a","key":1,"id":"text"}],"messages":[]}"#,
        ] {
            std::fs::write(&path, damaged).unwrap();
            let error = TypeNames::read(&path).unwrap_err().to_string();
            assert!(error.contains("types.json: "), "{error}");
            names().put(&path, &[]).unwrap();
            assert_eq!(TypeNames::read(&path).unwrap(), names());
        }
    }

    #[test]
    fn newer_file_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TypeNames::FILE_NAME);
        let newer = r#"{"format": 2, "types": []}"#;
        std::fs::write(&path, newer).unwrap();
        let error = names().put(&path, &[]).unwrap_err();
        assert_eq!(TypesError::of(&error), Some(&TypesError::Newer { path: path.clone(), found: 2, known: 1 }));
        assert_eq!(std::fs::read_to_string(path).unwrap(), newer);
    }

    mod before {
        #[derive(serde::Serialize, serde::Deserialize, crate::Message)]
        #[message(crate = crate)]
        pub(super) struct Moved {
            pub from: u64,
            pub to: u64,
        }
    }

    mod swapped {
        #[derive(serde::Serialize, serde::Deserialize, crate::Message)]
        #[message(crate = crate)]
        pub(super) struct Moved {
            pub to: u64,
            pub from: u64,
        }
    }

    mod grown {
        #[derive(serde::Serialize, serde::Deserialize, crate::Message)]
        #[message(crate = crate, version = 2)]
        pub(super) struct Moved {
            pub from: u64,
            pub to: u64,
            #[serde(default)]
            #[message(since = 2)]
            pub by: u64,
        }
    }

    mod grown_and_swapped {
        #[derive(serde::Serialize, serde::Deserialize, crate::Message)]
        #[message(crate = crate, version = 2)]
        pub(super) struct Moved {
            pub to: u64,
            pub from: u64,
            #[serde(default)]
            #[message(since = 2)]
            pub by: u64,
        }
    }

    #[test]
    fn types_of_one_name_are_not_compared() {
        let model = CommandModel::new().event::<before::Moved>().event::<before::Moved>().finish().unwrap();
        assert_eq!(model.event_layouts.len(), 2);
        let model = CommandModel::new().event::<before::Moved>().event::<swapped::Moved>().finish().unwrap();
        assert!(model.event_layouts.is_empty());
    }

    #[test]
    fn changed_layout_needs_new_version() {
        fn put<M: Message>(path: &Path) -> io::Result<TypeNames> {
            let mut names = TypeNames::default();
            assert!(names.add_message::<M>(MessageRole::Event));
            names.put(path, &[EventLayout::of::<M>()])
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TypeNames::FILE_NAME);
        put::<before::Moved>(&path).unwrap();
        let written = std::fs::read(&path).unwrap();
        let error = put::<swapped::Moved>(&path).unwrap_err();
        let expected = "`Moved v1 {from: u64, to: u64}` in";
        let said = error.to_string();
        assert!(said.contains("the event Moved") && said.contains("version 1") && said.contains(expected), "{said}");
        assert!(said.contains("`Moved v1 {to: u64, from: u64}` in this program (a part of Moved is"), "{said}");
        let error = put::<grown_and_swapped::Moved>(&path).unwrap_err();
        let Some(TypesError::LayoutChanged { version: 1, before, .. }) = TypesError::of(&error) else {
            panic!("{error}")
        };
        assert_eq!(before, "Moved v1 {from: u64, to: u64}");
        assert_eq!(std::fs::read(&path).unwrap(), written);
        let both = put::<grown::Moved>(&path).unwrap();
        assert_eq!(both.messages[&TypeKey::of("Moved")].shapes.len(), 2);
        put::<before::Moved>(&path).unwrap();
        let deep = "[".repeat(100_000);
        let text = std::fs::read_to_string(&path).unwrap().replace("Moved v1 {from: u64, to: u64}", &deep);
        std::fs::write(&path, text).unwrap();
        assert!(matches!(
            TypesError::of(&put::<before::Moved>(&path).unwrap_err()),
            Some(TypesError::LayoutChanged { .. })
        ));
    }
}
