//! A table with lines around its cells.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, ContentArrangement};

use super::Table;
use crate::table::TableStyle;

pub(super) fn draw(table: &Table) -> String {
    let mut lined = comfy_table::Table::new();
    match table.style {
        TableStyle::Terminal => lined.load_style(UTF8_FULL_CONDENSED),
        TableStyle::Markdown => lined.load_style(ASCII_MARKDOWN),
    };
    // A figure that is broken over two lines is misread; a wide table is only wide.
    lined.set_content_arrangement(ContentArrangement::Disabled);
    lined.set_header(&table.head);
    for column in lined.column_iter_mut().skip(table.text_columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for cells in &table.rows {
        lined.add_row(cells);
    }
    lined.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_the_same_without_the_feature() {
        let mut table = Table::new(TableStyle::Markdown, &["was", "p50 µs", "× floor"], 1);
        table.add_row(&["a long name", "1,234.5", "–"].map(str::to_owned));
        table.add_row(&["b", "9", "≥ 2.50"].map(str::to_owned));
        assert_eq!(draw(&table), super::super::plain::draw(&table));
    }

    #[test]
    fn on_a_terminal_there_are_lines() {
        let mut table = Table::new(TableStyle::Terminal, &["what", "ns"], 1);
        table.add_row(&["clock", "25"].map(str::to_owned));
        let text = draw(&table);
        assert!(text.contains("│ clock ┆ 25 │"), "{text}");
    }
}
