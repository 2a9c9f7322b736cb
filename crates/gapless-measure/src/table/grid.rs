//! A table as texts, and its drawing.

use std::fmt;

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, ContentArrangement};

use super::TableStyle;
use crate::Row;

/// Head, and text of a cell.
pub type RowColumn = (&'static str, fn(&Row) -> String);

/// A head and rows of texts; its `Display` draws it, without a line feed at its end.
///
/// ```
/// use gapless_measure::table::{TextTable, TableStyle};
///
/// let mut table = TextTable::new(TableStyle::Markdown, &["what", "bytes"], 1);
/// table.add_row(&["frame".to_owned(), "64".to_owned()]);
/// assert!(table.to_string().starts_with("| what "));
/// ```
#[derive(Debug)]
pub struct TextTable {
    style: TableStyle,
    head: Vec<String>,
    /// Leading columns of text; the others hold numbers and are right-aligned.
    text_columns: usize,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Columns after the first `text_columns` hold numbers.
    #[must_use]
    pub fn new(style: TableStyle, head: &[&str], text_columns: usize) -> Self {
        let head = head.iter().map(|&text| text.to_owned()).collect();
        Self { style, head, text_columns, rows: Vec::new() }
    }

    /// Columns after the first `text_columns` hold numbers.
    #[must_use]
    pub fn of_rows(style: TableStyle, rows: &[&Row], text_columns: usize, columns: &[RowColumn]) -> Self {
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

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lined = comfy_table::Table::new();
        match self.style {
            TableStyle::Terminal => lined.load_style(UTF8_FULL_CONDENSED),
            TableStyle::Markdown => lined.load_style(ASCII_MARKDOWN),
        };
        // A figure broken over two lines is misread.
        lined.set_content_arrangement(ContentArrangement::Disabled);
        lined.set_header(&self.head);
        for column in lined.column_iter_mut().skip(self.text_columns) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for cells in &self.rows {
            lined.add_row(cells);
        }
        formatter.write_str(&lined.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(style: TableStyle) -> String {
        let mut table = TextTable::new(style, &["what", "p50 µs"], 1);
        table.add_row(&["a clock", "1.25"].map(str::to_owned));
        table.add_row(&["–", "–"].map(str::to_owned));
        table.to_string()
    }

    #[test]
    fn markdown_aligns_texts_and_numbers() {
        let expected = "| what    | p50 µs |\n|---------|--------|\n| a clock |   1.25 |\n| –       |      – |";
        assert_eq!(table(TableStyle::Markdown), expected);
    }

    #[test]
    fn a_terminal_gets_lines() {
        let text = table(TableStyle::Terminal);
        assert!(text.contains("│ a clock ┆   1.25 │"), "{text}");
    }
}
