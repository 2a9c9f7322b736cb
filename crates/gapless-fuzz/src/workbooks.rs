//! Target for Excel workbooks: a cell is written and can be written again, or there is an error.

use crate::input::{FuzzInput, assert_says_something, scratch};
use gapless_measure::workbook::{CellAddress, check_cell, write_cell};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub const PARTS: [&str; 6] = [
    "[Content_Types].xml",
    "_rels/.rels",
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
    "xl/calcChain.xml",
    "xl/worksheets/sheet1.xml",
];

const AS_IT_IS: u8 = 1;

/// The input is a list of parts, each a u16 length and the text, so that the archive's own checksums do not hide the
/// text. The first byte may ask for the rest as the file itself.
pub fn workbook(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let (row, column) = (1 + u32::from(input.byte()), 1 + u32::from(input.byte()));
    let cell = CellAddress::new(row, column).expect("small numbers are a cell");
    let file = if mode & AS_IT_IS == 0 { packed(&mut input) } else { input.rest().to_vec() };
    let directory = scratch();
    let path = directory.path().join("book.xlsx");
    std::fs::write(&path, &file).expect("a file can be written");
    let checked = check_cell(&path, cell);
    assert_eq!(std::fs::read(&path).expect("it is there"), file, "a check changes nothing");
    let written = write_cell(&path, cell, 1.5);
    assert_eq!(checked.is_ok(), written.is_ok(), "the check says what the writing will: {checked:?}, {written:?}");
    match written {
        Ok(()) => write_cell(&path, cell, -2.25).expect("a cell that was written can be written again"),
        Err(error) => {
            assert_says_something(&error);
            assert_eq!(std::fs::read(&path).expect("it is there"), file, "a workbook that is refused stays as it is");
        }
    }
}

fn packed(input: &mut FuzzInput<'_>) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for name in PARTS {
        if input.is_empty() {
            break;
        }
        let length = usize::from(input.u16());
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        archive.start_file(name, options).expect("a part can be begun");
        archive.write_all(input.bytes(length)).expect("memory can be written");
    }
    archive.finish().expect("memory can be written").into_inner()
}
