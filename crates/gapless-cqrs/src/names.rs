//! [`TypeNames`]: what the numbers of types in a stream are called, in a file beside the journal, for people and tools. Nothing that runs reads it:
//! a file that is missing or damaged costs the names.
//!
//! ```text
//! { "format": 1,
//!   "aggregates": [ { "name": "account", "key": 2460416341, "id": "number:8" }, … ],
//!   "messages": [ { "name": "AccountEvent", "key": …, "role": "event", "encoding": "postcard",
//!                   "versions": [ { "version": 1, "shape": "AccountEvent v1 enum {Opened, Deposited(u64)}" }, … ] }, … ] }
//! ```
//! What a host's model no longer has stays in it: its events stay in the stream, too.

use crate::identity::{IdForm, TypeKey};
use crate::transaction::RecordedEvent;
use gapless_journal::replace_file;
use gapless_message::{Encoding, Message, shaped};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const FORMAT: u64 = 1;
/// What is longer is no such file.
const LENGTH_MAX: u64 = 16 << 20;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    /// It asks for something.
    Command,
    /// It has happened.
    Event,
    /// An aggregate or a handler refuses with it.
    Refusal,
    /// A handler answers with it.
    Reply,
}

/// A type of aggregates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAggregate {
    /// Its name.
    pub name: String,
    /// How its identifiers are written.
    pub id: IdForm,
}

/// A type of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMessage {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: MessageRole,
    /// How its bytes are written.
    pub encoding: Encoding,
    /// The shapes of its versions, as far as programs that have run here knew them.
    pub shapes: BTreeMap<u32, String>,
}

impl NamedMessage {
    /// Of a type, as this program knows it.
    #[must_use]
    pub fn of<M: Message>(role: MessageRole) -> Self {
        let shapes = BTreeMap::from([(M::VERSION, M::shape())]);
        Self { name: M::TYPE_NAME.to_owned(), role, encoding: M::ENCODING, shapes }
    }
}

/// See the head of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeNames {
    /// Types of aggregates by the numbers of their names.
    pub aggregates: BTreeMap<TypeKey, NamedAggregate>,
    /// Types of messages by the numbers of their names.
    pub messages: BTreeMap<TypeKey, NamedMessage>,
}

impl TypeNames {
    /// The name of the file, in the directory of the stream.
    pub const FILE_NAME: &str = "types.json";

    pub(crate) fn add_aggregate(&mut self, name: &str, id: IdForm) {
        self.aggregates.insert(TypeKey::of(name), NamedAggregate { name: name.to_owned(), id });
    }

    pub(crate) fn add_message<M: Message>(&mut self, role: MessageRole) {
        let message = NamedMessage::of::<M>(role);
        self.messages.entry(TypeKey::of(M::TYPE_NAME)).or_insert(message);
    }

    /// What an event says, as JSON; `None` where its version's shape is not known, or its bytes are not as that says.
    #[must_use]
    pub fn json_of(&self, event: &RecordedEvent<'_>) -> Option<String> {
        let named = self.messages.get(&event.event)?;
        match named.encoding {
            Encoding::Postcard => shaped::json_of(named.shapes.get(&event.version)?, event.payload).ok(),
            Encoding::Json => std::str::from_utf8(event.payload).ok().map(str::to_owned),
            Encoding::Bytes | Encoding::Sbe | Encoding::Protobuf => None,
        }
    }

    /// Takes in what these do not have.
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

    /// Puts them into the file at `path`, with what it has beside; nothing is written where it has them all.
    pub(crate) fn put(mut self, path: &Path) -> io::Result<()> {
        let before = Self::read(path);
        if let Ok(before) = &before {
            self.complete(before.clone());
        }
        if before.is_ok_and(|before| before == self) {
            return Ok(());
        }
        let mut bytes = serde_json::to_vec_pretty(&self.to_json())?;
        bytes.push(b'\n');
        replace_file(path, path.with_extension("json.new"), &bytes)
    }

    /// What the file at `path` says.
    ///
    /// # Errors
    /// There is none; it cannot be read; it is damaged.
    pub fn read(path: &Path) -> io::Result<Self> {
        let damaged = |what: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > LENGTH_MAX {
            return Err(damaged(format!("it has {length} bytes; names of types have {LENGTH_MAX} at most")));
        }
        let value = serde_json::from_slice(&std::fs::read(path).map_err(failed)?)
            .map_err(|error| damaged(error.to_string()))?;
        Self::from_json(&value).ok_or_else(|| damaged("it is no list of types, or of another version".to_owned()))
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

/// A name, which must be that of its number.
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
        CommandModel::new().aggregate::<Account>().names().clone()
    }

    #[test]
    fn names_are_read_as_they_were_put_and_those_of_before_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TypeNames::FILE_NAME);
        let mut older = TypeNames::default();
        older.add_aggregate("customer", String::FORM);
        let mut event = NamedMessage::of::<AccountEvent>(MessageRole::Event);
        event.shapes = BTreeMap::from([(7, "an older program's".to_owned())]);
        older.messages.insert(TypeKey::of(&event.name), event);
        older.put(&path).unwrap();
        names().put(&path).unwrap();
        let read = TypeNames::read(&path).unwrap();
        assert_eq!(read.aggregates[&TypeKey::of(Account::NAME)].id, u64::FORM);
        assert_eq!(read.aggregates[&TypeKey::of("customer")].name, "customer");
        let event = &read.messages[&TypeKey::of("AccountEvent")];
        assert_eq!((event.role, event.encoding), (MessageRole::Event, Encoding::Postcard));
        assert!(event.shapes[&1].starts_with("AccountEvent v1 enum {Opened, ") && event.shapes.contains_key(&7));
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        names().put(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), written, "nothing is new");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_the_next_host_writes_it_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TypeNames::FILE_NAME);
        for damaged in [
            "",
            "{}",
            "[1]",
            r#"{"format": 2}"#,
            r#"{"format":1,"aggregates":[{"name":"a","key":1,"id":"text"}],"messages":[]}"#,
        ] {
            std::fs::write(&path, damaged).unwrap();
            let error = TypeNames::read(&path).unwrap_err().to_string();
            assert!(error.contains("types.json: "), "{error}");
            names().put(&path).unwrap();
            assert_eq!(TypeNames::read(&path).unwrap(), names());
        }
    }
}
