//! Finds a cell in a sheet's text and changes its value. Only positions of the event stream are used, so all other
//! bytes stay. Rows and cells may omit their numbers (then they follow the one before), and names may have any prefix.

use super::xml::{Splice, apply, prefix_of};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::xml::{attribute, damaged, position};
use crate::workbook::CellAddress;

#[derive(Debug)]
pub(super) struct SheetEdit {
    pub(super) text: String,
    pub(super) formula_removed: bool,
}

#[derive(Default)]
struct SheetScan {
    splices: Vec<Splice>,
    prefix: String,
    in_data: bool,
    row: u32,
    column: u32,
    /// Tag of the open row, if it is the cell's.
    target_row_tag: Option<(usize, usize)>,
    old_cell: Option<OldCell>,
    placed: bool,
    formula_removed: bool,
}

struct OldCell {
    begin: usize,
    tag: String,
}

pub(super) fn set_cell(text: &str, cell: CellAddress, value: f64) -> Result<SheetEdit, String> {
    let mut scan = SheetScan::default();
    let mut reader = Reader::from_str(text);
    loop {
        let begin = position(&reader);
        let event = reader.read_event().map_err(damaged)?;
        let span = (begin, position(&reader));
        match event {
            Event::Start(tag) => scan.open(text, cell, value, span, &tag, false)?,
            Event::Empty(tag) => scan.open(text, cell, value, span, &tag, true)?,
            Event::End(tag) => scan.close(cell, value, span, tag.local_name().as_ref()),
            Event::Eof => break,
            _ => (),
        }
    }
    if !scan.placed {
        return Err("its first sheet has no place for cells (sheetData)".into());
    }
    Ok(SheetEdit { text: apply(text, scan.splices)?, formula_removed: scan.formula_removed })
}

impl SheetScan {
    fn open(
        &mut self,
        text: &str,
        cell: CellAddress,
        value: f64,
        span: (usize, usize),
        tag: &BytesStart<'_>,
        is_empty: bool,
    ) -> Result<(), String> {
        let local_name = tag.local_name();
        match local_name.as_ref() {
            "dimension" if !self.in_data => self.widen_dimension(text, cell, span, tag),
            "sheetData" => {
                self.prefix = prefix_of(tag.name().as_ref()).to_owned();
                if is_empty {
                    let row = self.new_row(cell, value);
                    let name = format!("{}sheetData", self.prefix);
                    self.splice(span.0, span.1, format!("{}{row}</{name}>", opened(&text[span.0..span.1])));
                } else {
                    self.in_data = true;
                }
            }
            "row" if self.in_data => {
                self.row = number(tag, "r").unwrap_or(self.row + 1);
                self.column = 0;
                if self.row > cell.row() && !self.placed {
                    let row = self.new_row(cell, value);
                    self.splice(span.0, span.0, row);
                } else if self.row == cell.row() && !self.placed {
                    let tag_text = with_span(&text[span.0..span.1], tag, cell.column());
                    if is_empty {
                        let new = self.new_cell(cell, value);
                        let end = format!("</{}row>", self.prefix);
                        self.splice(span.0, span.1, format!("{}{new}{end}", opened(&tag_text)));
                    } else {
                        if tag_text != text[span.0..span.1] {
                            self.splices.push(Splice::new(span.0, span.1, tag_text));
                        }
                        self.target_row_tag = Some(span);
                    }
                }
            }
            "c" if self.target_row_tag.is_some() => {
                let named = attribute(tag, "r").and_then(|name| CellAddress::from_excel_name(&name));
                self.column = named.map_or(self.column + 1, CellAddress::column);
                if self.column > cell.column() && !self.placed {
                    let new = self.new_cell(cell, value);
                    self.splice(span.0, span.0, new);
                } else if self.column == cell.column() && !self.placed {
                    let tag = self.cell_tag(tag, cell);
                    if is_empty {
                        let content = self.content(value);
                        self.splice(span.0, span.1, format!("{tag}{content}"));
                    } else {
                        self.old_cell = Some(OldCell { begin: span.0, tag });
                    }
                }
            }
            "f" if self.old_cell.is_some() => {
                let shared = attribute(tag, "ref").is_some();
                if shared {
                    return Err(format!(
                        "cell {cell} ({}) holds a formula that other cells share; choose another cell",
                        cell.excel_name()
                    ));
                }
                self.formula_removed = true;
            }
            _ => (),
        }
        Ok(())
    }

    fn close(&mut self, cell: CellAddress, value: f64, span: (usize, usize), name: &str) {
        match name {
            "c" => {
                if let Some(old) = self.old_cell.take() {
                    let content = self.content(value);
                    self.splice(old.begin, span.1, format!("{}{content}", old.tag));
                }
            }
            "row" if self.target_row_tag.take().is_some() && !self.placed => {
                let new = self.new_cell(cell, value);
                self.splice(span.0, span.0, new);
            }
            "sheetData" if self.in_data => {
                self.in_data = false;
                if !self.placed {
                    let row = self.new_row(cell, value);
                    self.splice(span.0, span.0, row);
                }
            }
            _ => (),
        }
    }

    fn splice(&mut self, begin: usize, end: usize, text: String) {
        self.splices.push(Splice::new(begin, end, text));
        self.placed = true;
    }

    fn new_row(&self, cell: CellAddress, value: f64) -> String {
        let (prefix, row) = (&self.prefix, cell.row());
        format!("<{prefix}row r=\"{row}\">{}</{prefix}row>", self.new_cell(cell, value))
    }

    fn new_cell(&self, cell: CellAddress, value: f64) -> String {
        format!("<{}c r=\"{}\">{}", self.prefix, cell.excel_name(), self.content(value))
    }

    fn content(&self, value: f64) -> String {
        let prefix = &self.prefix;
        format!("<{prefix}v>{value}</{prefix}v></{prefix}c>")
    }

    /// Drops the old value's type and metadata; the style stays.
    fn cell_tag(&self, tag: &BytesStart<'_>, cell: CellAddress) -> String {
        let mut text = format!("<{}c", self.prefix);
        let mut is_named = false;
        for attribute in tag.attributes().flatten() {
            let name = attribute.key.as_ref();
            if !["t", "cm", "vm"].contains(&name) {
                is_named |= name == "r";
                // Still escaped; only the quotes may have differed.
                text += &format!(" {name}=\"{}\"", attribute.value.replace('"', "&quot;"));
            }
        }
        if !is_named {
            text += &format!(" r=\"{}\"", cell.excel_name());
        }
        text + ">"
    }

    /// The stated area must hold the cell.
    fn widen_dimension(&mut self, text: &str, cell: CellAddress, span: (usize, usize), tag: &BytesStart<'_>) {
        let Some(area) = attribute(tag, "ref") else { return };
        let (first, last) = area.split_once(':').unwrap_or((&area, &area));
        let (Some(first), Some(last)) = (CellAddress::from_excel_name(first), CellAddress::from_excel_name(last))
        else {
            return;
        };
        let new_first = CellAddress { row: first.row.min(cell.row), column: first.column.min(cell.column) };
        let new_last = CellAddress { row: last.row.max(cell.row), column: last.column.max(cell.column) };
        if (new_first, new_last) != (first, last) {
            let new_area = format!("{}:{}", new_first.excel_name(), new_last.excel_name());
            self.splices.push(Splice::new(span.0, span.1, text[span.0..span.1].replacen(&area, &new_area, 1)));
        }
    }
}

/// `<row/>` → `<row>`.
fn opened(tag: &str) -> String {
    let inner = tag.strip_suffix("/>").or_else(|| tag.strip_suffix('>')).unwrap_or(tag);
    format!("{}>", inner.trim_end())
}

/// A row's tag whose hint of used columns, if it has one, covers `column`.
fn with_span(text: &str, tag: &BytesStart<'_>, column: u32) -> String {
    let Some(spans) = attribute(tag, "spans") else { return text.to_owned() };
    let covers = spans.split_ascii_whitespace().any(|span| {
        let (first, last) = span.split_once(':').unwrap_or((span, span));
        matches!((first.parse::<u32>(), last.parse::<u32>()), (Ok(first), Ok(last)) if (first..=last).contains(&column))
    });
    if covers {
        text.to_owned()
    } else {
        text.replacen(&format!("\"{spans}\""), &format!("\"{}\"", widened(&spans, column)), 1)
    }
}

fn widened(spans: &str, column: u32) -> String {
    let columns = spans.split([' ', ':']).filter_map(|number| number.parse().ok()).chain([column]);
    let (first, last) =
        columns.fold((column, column), |(first, last), column: u32| (first.min(column), last.max(column)));
    format!("{first}:{last}")
}

fn number(tag: &BytesStart<'_>, name: &str) -> Option<u32> {
    attribute(tag, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(data: &str, cell: &str) -> String {
        let sheet = format!("<worksheet><sheetData>{data}</sheetData></worksheet>");
        let edited = set_cell(&sheet, cell.parse().unwrap(), 1.5).unwrap().text;
        let inner = edited.strip_prefix("<worksheet><sheetData>").unwrap();
        inner.strip_suffix("</sheetData></worksheet>").unwrap().to_owned()
    }

    #[test]
    fn replaced_cell_keeps_only_its_style() {
        let data =
            r#"<row r="2"><c r="A2"/><c r="B2" s='7' t="s" cm="1"><f>A1</f><v>3</v></c><c r="C2"><v>1</v></c></row>"#;
        let expected = r#"<row r="2"><c r="A2"/><c r="B2" s="7"><v>1.5</v></c><c r="C2"><v>1</v></c></row>"#;
        assert_eq!(set(data, "2-2"), expected);
        assert_eq!(
            set(r#"<row r="2"><c r="B2" s="7"/></row>"#, "2-2"),
            r#"<row r="2"><c r="B2" s="7"><v>1.5</v></c></row>"#
        );
    }

    #[test]
    fn rows_inside_each_other_are_damage() {
        let sheet = r#"<worksheet><sheetData><row r="1"><c r="A1"><v>0</v><row r="3"><c r="B3"><f>A1</f></c></row><row r="3"><c r="B3"><v>2</v></c></row></c></row></sheetData></worksheet>"#;
        let reason = set_cell(sheet, "1-1".parse().unwrap(), 1.5).map(|edit| edit.text).unwrap_err();
        assert_eq!(reason, "is damaged: rows or cells lie inside each other");
    }

    #[test]
    fn a_missing_cell_is_put_in_order() {
        let data = r#"<row r="1"><c r="B1"><v>1</v></c><c r="D1"/></row>"#;
        assert_eq!(set(data, "1-1"), r#"<row r="1"><c r="A1"><v>1.5</v></c><c r="B1"><v>1</v></c><c r="D1"/></row>"#);
        assert_eq!(set(data, "1-3"), r#"<row r="1"><c r="B1"><v>1</v></c><c r="C1"><v>1.5</v></c><c r="D1"/></row>"#);
        assert_eq!(set(data, "1-27"), r#"<row r="1"><c r="B1"><v>1</v></c><c r="D1"/><c r="AA1"><v>1.5</v></c></row>"#);
    }

    #[test]
    fn a_missing_row_is_put_in_order() {
        let data = r#"<row r="2"/><row r="5" ht="20"/>"#;
        let row = |number| format!(r#"<row r="{number}"><c r="A{number}"><v>1.5</v></c></row>"#);
        assert_eq!(set(data, "1-1"), row(1) + data);
        assert_eq!(set(data, "3-1"), format!(r#"<row r="2"/>{}<row r="5" ht="20"/>"#, row(3)));
        assert_eq!(set(data, "9-1"), data.to_owned() + &row(9));
        assert_eq!(set(data, "5-1"), r#"<row r="2"/><row r="5" ht="20"><c r="A5"><v>1.5</v></c></row>"#);
        assert_eq!(set("", "1-1"), row(1));
    }

    #[test]
    fn unnumbered_rows_and_cells_count() {
        let data = "<row><c/></row><row><c/><c s=\"1\"/></row>";
        assert_eq!(set(data, "2-2"), "<row><c/></row><row><c/><c s=\"1\" r=\"B2\"><v>1.5</v></c></row>");
    }

    #[test]
    fn empty_sheet_with_prefix_is_edited() {
        let sheet = r#"<x:worksheet><x:dimension ref="B2"/><x:sheetData/></x:worksheet>"#;
        let edited = set_cell(sheet, "3-1".parse().unwrap(), 2.0).unwrap();
        let expected = r#"<x:worksheet><x:dimension ref="A2:B3"/><x:sheetData><x:row r="3"><x:c r="A3"><x:v>2</x:v></x:c></x:row></x:sheetData></x:worksheet>"#;
        assert_eq!(edited.text, expected);
        assert!(!edited.formula_removed);
    }

    #[test]
    fn column_hint_covers_new_cell() {
        assert_eq!(
            set(r#"<row r="1" spans="2:3"><c r="B1"/></row>"#, "1-5"),
            r#"<row r="1" spans="2:5"><c r="B1"/><c r="E1"><v>1.5</v></c></row>"#
        );
        assert_eq!(
            set(r#"<row r="1" spans="1:9"/>"#, "1-5"),
            r#"<row r="1" spans="1:9"><c r="E1"><v>1.5</v></c></row>"#
        );
    }

    #[test]
    fn a_shared_formula_is_not_torn_out() {
        let sheet = r#"<worksheet><sheetData><row r="1"><c r="A1"><f t="shared" ref="A1:A9" si="0">B1</f></c></row></sheetData></worksheet>"#;
        let error = set_cell(sheet, "1-1".parse().unwrap(), 1.0).unwrap_err();
        assert!(error.contains("A1") && error.contains("share"), "{error}");
    }

    #[test]
    fn what_is_no_sheet_is_refused() {
        let cell = "1-1".parse().unwrap();
        assert!(set_cell("<worksheet/>", cell, 1.0).unwrap_err().contains("sheetData"));
        assert!(set_cell("<worksheet><sheetData></worksheet>", cell, 1.0).is_err());
        assert!(set_cell("no XML <", cell, 1.0).is_err());
    }
}
