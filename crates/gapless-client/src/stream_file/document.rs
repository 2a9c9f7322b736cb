//! [`Document`]: a TOML text that knows the line of each of its keys. Every refusal names file, line, key, the found
//! and the allowed value.

use super::key_lines::KeyLines;
use super::units;
use crate::ClientError;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// A text and where its keys stand in it.
pub struct Document<'a> {
    text: &'a str,
    lines: RefCell<KeyLines>,
}

/// A table of the document, of which each key is taken once; those that nobody has asked for are refused.
pub struct Table<'a> {
    document: &'a Document<'a>,
    /// Empty for the document itself.
    name: String,
    /// Where it stands, if it is there: of several with one name each has its own place.
    offset: Option<usize>,
    entries: Vec<(String, Value<'a>)>,
    asked: Vec<&'static str>,
}

/// A value of the document.
pub struct Value<'a> {
    document: &'a Document<'a>,
    /// The full name of its key.
    key: String,
    offset: usize,
    value: DeValue<'a>,
}

impl<'a> Document<'a> {
    /// The document `text`, which `name` is the file of.
    #[must_use]
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { text, lines: RefCell::new(KeyLines::new(name)) }
    }

    /// Its tables.
    ///
    /// # Errors
    /// It is no TOML at all.
    pub fn tables(&'a self) -> Result<Table<'a>, ClientError> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let reason: Vec<&str> = error.message().lines().map(str::trim).collect();
            self.refuse_at(offset, reason.join("; "))
        })?;
        Ok(Table::new(self, String::new(), Some(0), parsed.into_inner()))
    }

    /// Refuses what is wrong with `key`, at its line: a value that does not go together with others. A key that is
    /// not there is shown at its table, or at the first line.
    #[must_use]
    pub fn refuse(&self, key: &str, reason: impl std::fmt::Display) -> ClientError {
        self.lines.borrow().refuse(key, reason)
    }

    /// Whether `key`, by its full name, is there.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.lines.borrow().has(key)
    }

    /// The lines of the keys, for values that are refused when the text is gone.
    #[must_use]
    pub fn into_lines(self) -> KeyLines {
        self.lines.into_inner()
    }

    fn refuse_at(&self, offset: usize, reason: String) -> ClientError {
        self.lines.borrow().refuse_at(self.line(offset), reason)
    }

    /// The line that `offset` is in.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

impl<'a> Table<'a> {
    fn new(document: &'a Document<'a>, name: String, offset: Option<usize>, table: DeTable<'a>) -> Self {
        let mut entries = Vec::new();
        for (key, value) in table {
            let offset = key.span().start;
            let short = key.into_inner().into_owned();
            let key = full_name(&name, &short);
            document.lines.borrow_mut().insert(key.clone(), document.line(offset));
            entries.push((short, Value { document, key, offset, value: value.into_inner() }));
        }
        Self { document, name, offset, entries, asked: Vec::new() }
    }

    /// The value of `key`, if it is there.
    pub fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.asked.push(key);
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.swap_remove(index).1)
    }

    /// The table `key`, empty if it is not there.
    ///
    /// # Errors
    /// It is something else.
    pub fn table(&mut self, key: &'static str) -> Result<Self, ClientError> {
        match self.take(key) {
            Some(value) => value.table(),
            None => Ok(Self::new(self.document, self.full_name(key), None, DeTable::new())),
        }
    }

    /// The table `key`, empty if it is not there or is something else; beside it the refusal of that.
    pub fn table_or_refusal(&mut self, key: &'static str) -> (Self, Option<ClientError>) {
        let empty = Self::new(self.document, self.full_name(key), None, DeTable::new());
        match self.take(key).map(Value::table) {
            Some(Ok(table)) => (table, None),
            Some(Err(refusal)) => (empty, Some(refusal)),
            None => (empty, None),
        }
    }

    /// The tables of the list `key`, none if it is not there.
    ///
    /// # Errors
    /// It is something else.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Self>, ClientError> {
        let Some(list) = self.take(key) else { return Ok(Vec::new()) };
        list.list()?.into_iter().map(Value::table).collect()
    }

    /// Its values, by their names, which nobody knows before; in the order of the file.
    #[must_use]
    pub fn named_values(self) -> Vec<(String, Value<'a>)> {
        let mut entries = self.entries;
        entries.sort_by_key(|(_, value)| value.offset);
        entries
    }

    /// Its tables, by their names, which nobody knows before; in the order of the file.
    ///
    /// # Errors
    /// One is something else.
    pub fn named_tables(self) -> Result<Vec<(String, Self)>, ClientError> {
        self.named_values().into_iter().map(|(name, value)| value.table().map(|table| (name, table))).collect()
    }

    /// Sets `place` to the value that `read` makes of that of `key`, if it is there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn set<T>(
        &mut self,
        key: &'static str,
        place: &mut T,
        read: impl FnOnce(&Value<'a>) -> Result<T, ClientError>,
    ) -> Result<(), ClientError> {
        if let Some(value) = self.take(key) {
            *place = read(&value)?;
        }
        Ok(())
    }

    /// The value that `read` makes of `key`, if it is there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'a>) -> Result<T, ClientError>,
    ) -> Result<Option<T>, ClientError> {
        self.take(key).map(|value| read(&value)).transpose()
    }

    /// Refuses keys that [`Table::take`] was never called with.
    ///
    /// # Errors
    /// There is one; the first by its place.
    pub fn end(self) -> Result<(), ClientError> {
        self.unknown().into_iter().next().map_or(Ok(()), Err)
    }

    /// The refusals of all keys that [`Table::take`] was never called with, by their place.
    #[must_use]
    pub fn unknown(mut self) -> Vec<ClientError> {
        self.entries.sort_by_key(|(_, value)| value.offset);
        let place = if self.name.is_empty() { "here".to_owned() } else { format!("in [{}]", self.name) };
        let allowed = self.asked.join(", ");
        let refuse = |(_, value): &(_, Value<'_>)| value.refuse(format!("unknown; {allowed} are allowed {place}"));
        self.entries.iter().map(refuse).collect()
    }

    /// Refuses that `key` is not there.
    #[must_use]
    pub fn missing(&self, key: &str, expected: &str) -> ClientError {
        let (key, reason) = (self.full_name(key), format!("missing; {expected} is expected"));
        match self.offset {
            Some(offset) => self.document.refuse_at(offset, format!("{key}: {reason}")),
            None => self.document.refuse(&key, reason),
        }
    }

    fn full_name(&self, key: &str) -> String {
        full_name(&self.name, key)
    }
}

fn full_name(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

impl<'a> Value<'a> {
    /// The found and the allowed value.
    #[must_use]
    pub fn expected(&self, allowed: impl std::fmt::Display) -> ClientError {
        self.refuse(format!("{} was found; {allowed}", self.found()))
    }

    /// Refuses it for `reason`.
    #[must_use]
    pub fn refuse(&self, reason: impl std::fmt::Display) -> ClientError {
        self.document.refuse_at(self.offset, format!("{}: {reason}", self.key))
    }

    fn found(&self) -> String {
        match &self.value {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(is) => is.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// A table.
    ///
    /// # Errors
    /// It is none.
    pub fn table(self) -> Result<Table<'a>, ClientError> {
        match self.value {
            DeValue::Table(table) => Ok(Table::new(self.document, self.key, Some(self.offset), table)),
            _ => Err(self.expected("a table is allowed")),
        }
    }

    /// Whether it is a text.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    /// Whether it is a list.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// The values of a list.
    ///
    /// # Errors
    /// It is none.
    pub fn list(self) -> Result<Vec<Self>, ClientError> {
        let Self { document, key, offset, value } = self;
        let DeValue::Array(values) = value else {
            return Err(Self { document, key, offset, value }.expected("a list is allowed"));
        };
        let each = values.into_iter().map(|value| {
            let offset = value.span().start;
            Self { document, key: key.clone(), offset, value: value.into_inner() }
        });
        Ok(each.collect())
    }

    /// A text.
    ///
    /// # Errors
    /// It is none.
    pub fn text(&self) -> Result<&str, ClientError> {
        match &self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected("a text in quotation marks is allowed")),
        }
    }

    /// A text that `read` understands; its error says what is allowed.
    ///
    /// # Errors
    /// It is no text, or not such a one.
    pub fn read<T, E: std::fmt::Display>(&self, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, ClientError> {
        read(self.text()?).map_err(|reason| self.refuse(reason))
    }

    /// One of a few names.
    ///
    /// # Errors
    /// It is none.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ClientError> {
        let chosen = match &self.value {
            DeValue::String(text) => choices.iter().find(|(name, _)| name == text),
            _ => None,
        };
        let names = || choices.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        chosen.map(|(_, value)| *value).ok_or_else(|| self.expected(format!("{} are allowed", names())))
    }

    /// True or false.
    ///
    /// # Errors
    /// It is none.
    pub fn switch(&self) -> Result<bool, ClientError> {
        match self.value {
            DeValue::Boolean(is) => Ok(is),
            _ => Err(self.expected("true and false are allowed")),
        }
    }

    /// A whole number in `range`.
    ///
    /// # Errors
    /// It is none.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Result<u64, ClientError> {
        let (first, last) = (range.start(), range.end());
        self.number()
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.expected(format!("whole numbers from {first} to {last} are allowed")))
    }

    /// A whole number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match &self.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// A number of bytes in `range`.
    ///
    /// # Errors
    /// It is none.
    pub fn size(&self, range: RangeInclusive<u64>) -> Result<u64, ClientError> {
        let bytes = match &self.value {
            DeValue::String(text) => units::size(text),
            _ => self.number(),
        };
        let bytes = bytes.ok_or_else(|| self.expected(format!("{} is allowed", units::SIZE_EXPECTED)))?;
        if range.contains(&bytes) {
            return Ok(bytes);
        }
        let (first, last) = (units::size_text(*range.start()), units::size_text(*range.end()));
        Err(self.expected(format!("{first} to {last} are allowed")))
    }

    /// A duration in `range`.
    ///
    /// # Errors
    /// It is none.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Result<Duration, ClientError> {
        let duration = match &self.value {
            DeValue::String(text) => units::duration(text),
            DeValue::Float(number) => units::duration(&number.to_string()),
            _ => self.number().and_then(|seconds| units::duration(&seconds.to_string())),
        };
        let duration = duration.ok_or_else(|| self.expected(format!("{} is allowed", units::DURATION_EXPECTED)))?;
        if range.contains(&duration) {
            return Ok(duration);
        }
        let (first, last) = (units::duration_text(*range.start()), units::duration_text(*range.end()));
        if matches!(self.value, DeValue::String(_)) {
            return Err(self.expected(format!("{first} to {last} are allowed")));
        }
        // Most who write a plain number here mean another unit.
        let found = self.found();
        Err(self.refuse(format!(
            "{found}, which is {found} s, was found; {first} to {last} are allowed, with their unit, as in \"300 ms\""
        )))
    }

    /// An address with a port.
    ///
    /// # Errors
    /// It is none.
    pub fn address(&self) -> Result<SocketAddr, ClientError> {
        let refused = || self.expected("an IP address with a port is allowed, such as \"192.0.2.7:4001\"");
        let address: SocketAddr = self.text()?.parse().map_err(|_| refused())?;
        if address.port() == 0 { Err(refused()) } else { Ok(address) }
    }
}
