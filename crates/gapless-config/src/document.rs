//! Every refusal names file, line, key, found value and allowed values.

use crate::error::ConfigError;
use crate::key_lines::KeyLines;
use crate::units;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

pub struct Document<'a> {
    text: &'a str,
    lines: RefCell<KeyLines>,
}

/// Each key is taken once; keys that were not taken are refused.
pub struct Table<'a> {
    document: &'a Document<'a>,
    /// Empty for the document itself.
    name: String,
    /// Position, if the table exists: tables of the same name each have their own.
    offset: Option<usize>,
    entries: Vec<(String, Value<'a>)>,
    asked: Vec<&'static str>,
}

pub struct Value<'a> {
    document: &'a Document<'a>,
    /// Full name.
    key: String,
    offset: usize,
    value: DeValue<'a>,
}

impl<'a> Document<'a> {
    #[must_use]
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { text, lines: RefCell::new(KeyLines::new(name)) }
    }

    /// Parses the text into its tables.
    ///
    /// # Errors
    /// The text is not valid TOML.
    pub fn tables(&'a self) -> Result<Table<'a>, ConfigError> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let reason: Vec<&str> = error.message().lines().map(str::trim).collect();
            self.refuse_at(offset, reason.join("; "))
        })?;
        Ok(Table::new(self, String::new(), Some(0), parsed.into_inner()))
    }

    /// Error at the line of `key`, for values that contradict each other; a missing key has the line of its table, or
    /// the first.
    #[must_use]
    pub fn refuse(&self, key: &str, reason: impl std::fmt::Display) -> ConfigError {
        self.lines.borrow().refuse(key, reason)
    }

    /// Whether `key`, by its full name, exists.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.lines.borrow().has(key)
    }

    /// Lines of the keys, for values that are refused after the text is dropped.
    #[must_use]
    pub fn into_lines(self) -> KeyLines {
        self.lines.into_inner()
    }

    fn refuse_at(&self, offset: usize, reason: String) -> ConfigError {
        self.lines.borrow().refuse_at(self.line(offset), reason)
    }

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

    pub fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.asked.push(key);
        self.take_former(key)
    }

    /// Former names are not listed as allowed in errors.
    pub fn take_former(&mut self, key: &str) -> Option<Value<'a>> {
        let index = self.entries.iter().position(|(name, _)| name == key)?;
        Some(self.entries.swap_remove(index).1)
    }

    /// Empty if `key` does not exist.
    ///
    /// # Errors
    /// The value is not a table.
    pub fn table(&mut self, key: &'static str) -> Result<Self, ConfigError> {
        match self.take(key) {
            Some(value) => value.table(),
            None => Ok(Self::new(self.document, self.full_name(key), None, DeTable::new())),
        }
    }

    /// Empty if `key` does not exist or, with the error, is not a table.
    pub fn table_or_refusal(&mut self, key: &'static str) -> (Self, Option<ConfigError>) {
        let empty = Self::new(self.document, self.full_name(key), None, DeTable::new());
        match self.take(key).map(Value::table) {
            Some(Ok(table)) => (table, None),
            Some(Err(refusal)) => (empty, Some(refusal)),
            None => (empty, None),
        }
    }

    /// The result is `None` if `key` does not exist.
    ///
    /// # Errors
    /// The value is not a list of tables.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Self>, ConfigError> {
        let Some(list) = self.take(key) else { return Ok(Vec::new()) };
        list.list()?.into_iter().map(Value::table).collect()
    }

    /// All values with their names, which are not known in advance, in the order of the file.
    #[must_use]
    pub fn named_values(self) -> Vec<(String, Value<'a>)> {
        let mut entries = self.entries;
        entries.sort_by_key(|(_, value)| value.offset);
        entries
    }

    /// All tables with their names, which are not known in advance, in the order of the file.
    ///
    /// # Errors
    /// A value is not a table.
    pub fn named_tables(self) -> Result<Vec<(String, Self)>, ConfigError> {
        self.named_values().into_iter().map(|(name, value)| value.table().map(|table| (name, table))).collect()
    }

    /// Sets `place` if `key` exists.
    ///
    /// # Errors
    /// Errors of `read`.
    pub fn set<T>(
        &mut self,
        key: &'static str,
        place: &mut T,
        read: impl FnOnce(&Value<'a>) -> Result<T, ConfigError>,
    ) -> Result<(), ConfigError> {
        if let Some(value) = self.take(key) {
            *place = read(&value)?;
        }
        Ok(())
    }

    /// Result of `read` for the value of `key`, if it exists.
    ///
    /// # Errors
    /// Errors of `read`.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'a>) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        self.take(key).map(|value| read(&value)).transpose()
    }

    /// Refuses keys never passed to [`Table::take`].
    ///
    /// # Errors
    /// The first such key by position.
    pub fn end(self) -> Result<(), ConfigError> {
        self.unknown().into_iter().next().map_or(Ok(()), Err)
    }

    /// Errors for keys never passed to [`Table::take`], by position.
    #[must_use]
    pub fn unknown(mut self) -> Vec<ConfigError> {
        self.entries.sort_by_key(|(_, value)| value.offset);
        let place = if self.name.is_empty() { "here".to_owned() } else { format!("in [{}]", self.name) };
        let allowed = self.asked.join(", ");
        let refuse = |(_, value): &(_, Value<'_>)| value.refuse(format!("unknown; {allowed} are allowed {place}"));
        self.entries.iter().map(refuse).collect()
    }

    #[must_use]
    pub fn missing(&self, key: &str, expected: &str) -> ConfigError {
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
    #[must_use]
    pub fn expected(&self, allowed: impl std::fmt::Display) -> ConfigError {
        self.refuse(format!("{} was found; {allowed}", self.found()))
    }

    #[must_use]
    pub fn refuse(&self, reason: impl std::fmt::Display) -> ConfigError {
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

    /// Value as a table.
    ///
    /// # Errors
    /// The value is not a table.
    pub fn table(self) -> Result<Table<'a>, ConfigError> {
        match self.value {
            DeValue::Table(table) => Ok(Table::new(self.document, self.key, Some(self.offset), table)),
            _ => Err(self.expected("a table is allowed")),
        }
    }

    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.value, DeValue::String(_))
    }

    #[must_use]
    pub const fn is_list(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Values of a list.
    ///
    /// # Errors
    /// The value is not a list.
    pub fn list(self) -> Result<Vec<Self>, ConfigError> {
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

    /// Value as a string.
    ///
    /// # Errors
    /// The value is not a string.
    pub fn text(&self) -> Result<&str, ConfigError> {
        match &self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected("a text in quotation marks is allowed")),
        }
    }

    /// The error of `read` states the allowed values.
    ///
    /// # Errors
    /// Not a string, or refused by `read`.
    pub fn read<T, E: std::fmt::Display>(&self, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, ConfigError> {
        read(self.text()?).map_err(|reason| self.refuse(reason))
    }

    /// One of a few names.
    ///
    /// # Errors
    /// The value is not one of these names.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ConfigError> {
        let chosen = match &self.value {
            DeValue::String(text) => choices.iter().find(|(name, _)| name == text),
            _ => None,
        };
        let names = || choices.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        chosen.map(|(_, value)| *value).ok_or_else(|| self.expected(format!("{} are allowed", names())))
    }

    /// Value as a boolean.
    ///
    /// # Errors
    /// The value is not a boolean.
    pub fn switch(&self) -> Result<bool, ConfigError> {
        match self.value {
            DeValue::Boolean(is) => Ok(is),
            _ => Err(self.expected("true and false are allowed")),
        }
    }

    /// Value as an integer in `range`.
    ///
    /// # Errors
    /// Not an integer, or out of range.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        let (first, last) = (range.start(), range.end());
        self.number()
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.expected(format!("whole numbers from {first} to {last} are allowed")))
    }

    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match &self.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// Bytes.
    ///
    /// # Errors
    /// Not a size, or out of range.
    pub fn size(&self, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
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

    /// Duration in `range`.
    ///
    /// # Errors
    /// Not a duration, or out of range.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Result<Duration, ConfigError> {
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
        // Most people who write a plain number here mean another unit.
        let found = self.found();
        Err(self.refuse(format!(
            "{found}, which is {found} s, was found; {first} to {last} are allowed, with their unit, as in \"300 ms\""
        )))
    }

    /// Address with a port.
    ///
    /// # Errors
    /// The value is not such an address.
    pub fn address(&self) -> Result<SocketAddr, ConfigError> {
        let refused = || self.expected("an IP address with a port is allowed, such as \"192.0.2.7:4001\"");
        let address: SocketAddr = self.text()?.parse().map_err(|_| refused())?;
        if address.port() == 0 { Err(refused()) } else { Ok(address) }
    }
}
