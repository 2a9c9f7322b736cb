//! A table as texts, for each way of drawing.

#[cfg(feature = "tables")]
mod lined;
#[cfg(any(test, not(feature = "tables")))]
mod plain;

use std::fmt;

use super::TableStyle;
use crate::Row;
#[cfg(feature = "tables")]
use lined::draw;
#[cfg(not(feature = "tables"))]
use plain::draw;

/// A column of a table with a line for each row of a report: its head, and the text of a line.
pub type Column = (&'static str, fn(&Row) -> String);

/// A head and rows of texts; its `Display` draws it, without a line feed at its end.
///
/// ```
/// use gapless_report::table::{Table, TableStyle};
///
/// let mut table = Table::new(TableStyle::Markdown, &["what", "bytes"], 1);
/// table.add_row(&["frame".to_owned(), "64".to_owned()]);
/// assert!(table.to_string().starts_with("| what "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub(super) style: TableStyle,
    pub(super) head: Vec<String>,
    /// How many columns from the first hold texts; the others hold numbers and end at their right.
    pub(super) text_columns: usize,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head, of which all but the first columns hold numbers.
    #[must_use]
    pub fn new(style: TableStyle, head: &[&str], text_columns: usize) -> Self {
        let head = head.iter().map(|&text| text.to_owned()).collect();
        Self { style, head, text_columns, rows: Vec::new() }
    }

    /// A table of these columns with a line for each of `rows`; all but the first columns hold numbers.
    #[must_use]
    pub fn of_rows(style: TableStyle, rows: &[&Row], text_columns: usize, columns: &[Column]) -> Self {
        let head: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        let mut table = Self::new(style, &head, text_columns);
        let line = |row: &&Row| columns.iter().map(|(_, cell)| cell(row)).collect();
        table.rows = rows.iter().map(line).collect();
        table
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not a cell for each column of the head.
    pub fn add_row(&mut self, cells: &[String]) {
        assert_eq!(cells.len(), self.head.len(), "cells of a row under the head {:?}", self.head);
        self.rows.push(cells.to_vec());
    }

    /// Whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&draw(self))
    }
}
