//! A table as aligned text, for builds without the feature `tables`. Markdown has its bars all the same.

use super::Table;
use crate::table::TableStyle;

pub(super) fn draw(table: &Table) -> String {
    let lines = || std::iter::once(&table.head).chain(&table.rows);
    // Of characters: nothing that is printed here is wider than one.
    let width = |column: usize| lines().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let mut drawn: Vec<String> = lines().map(|cells| line(table, cells, &widths)).collect();
    if table.style == TableStyle::Markdown {
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        drawn.insert(1, format!("|{}|", rule.join("|")));
    }
    drawn.join("\n")
}

fn line(table: &Table, cells: &[String], widths: &[usize]) -> String {
    let padded = |(column, cell): (usize, &String)| {
        let width = widths[column];
        if column < table.text_columns { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let padded: Vec<String> = cells.iter().enumerate().map(padded).collect();
    match table.style {
        TableStyle::Terminal => padded.join("  ").trim_end().to_owned(),
        TableStyle::Markdown => format!("| {} |", padded.join(" | ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_begin_and_numbers_end_below_each_other() {
        let mut table = Table::new(TableStyle::Terminal, &["what", "µs"], 1);
        table.add_row(&["a clock", "1.25"].map(str::to_owned));
        table.add_row(&["–", "–"].map(str::to_owned));
        assert_eq!(draw(&table), "what       µs\na clock  1.25\n–           –");
        table.style = TableStyle::Markdown;
        assert_eq!(draw(&table), "| what    |   µs |\n|---------|------|\n| a clock | 1.25 |\n| –       |    – |");
    }
}
