//! | module | what lives there |
//! |---|---|
//! | this | where a cell is, and whether results can be written |
//! | `create` | a new workbook |
//! | `edit` | one cell of an existing workbook; every other part stays byte for byte |
//! | `package` | the parts of a workbook: which sheet is the first, which other parts must change |
//! | `sheet` | where in the text of a sheet a cell is or belongs |
//! | `xml` | attributes, positions, and replacements within a text |
//!
//! A file is replaced as a whole or not at all.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::{BenchError, Result, output_file};

mod create;
mod edit;
mod package;
mod sheet;
mod xml;

pub use create::create;
pub use edit::{check_cell, write_cell};

/// Written `ROW-COL`, both from 1: `5-3` is row 5, column 3, Excel's C5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CellAddress {
    row: u32,
    column: u32,
}

const ROW_MAX: u32 = 1_048_576;
const COLUMN_MAX: u32 = 16_384;

impl CellAddress {
    /// Numbers from 1; `None` outside Excel's limits (1,048,576 rows, 16,384 columns).
    #[must_use]
    pub fn new(row: u32, column: u32) -> Option<Self> {
        ((1..=ROW_MAX).contains(&row) && (1..=COLUMN_MAX).contains(&column)).then_some(Self { row, column })
    }

    #[must_use]
    pub fn row(self) -> u32 {
        self.row
    }

    #[must_use]
    pub fn column(self) -> u32 {
        self.column
    }

    #[must_use]
    pub fn excel_name(self) -> String {
        let mut letters = Vec::new();
        let mut column = self.column;
        while column > 0 {
            letters.push(char::from(b'A' + ((column - 1) % 26) as u8));
            column = (column - 1) / 26;
        }
        letters.iter().rev().collect::<String>() + &self.row.to_string()
    }

    /// `$` signs allowed.
    fn from_excel_name(name: &str) -> Option<Self> {
        let name = name.replace('$', "");
        let digits_at = name.find(|c: char| c.is_ascii_digit())?;
        let (letters, digits) = name.split_at(digits_at);
        if letters.is_empty() || letters.len() > 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut column = 0;
        for letter in letters.bytes() {
            let letter = letter.to_ascii_uppercase();
            column = column * 26 + u32::from(letter.is_ascii_uppercase().then(|| letter - b'A')?) + 1;
        }
        Self::new(digits.parse().ok()?, column)
    }
}

impl FromStr for CellAddress {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let expected = || {
            format!("expected ROW-COL, both from 1, up to {ROW_MAX}-{COLUMN_MAX}; 5-3 is row 5, column 3, Excel's C5")
        };
        let (row, column) = text.split_once('-').ok_or_else(expected)?;
        let number = |digits: &str| -> Option<u32> {
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        number(row).zip(number(column)).and_then(|(row, column)| Self::new(row, column)).ok_or_else(expected)
    }
}

impl fmt::Display for CellAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.row, self.column)
    }
}

/// Checks before a long run: with a cell, the workbook must be writable and have the cell free; without one, the file
/// must not exist.
///
/// # Errors
/// When the results could not be written.
pub fn check(path: &Path, cell: Option<CellAddress>) -> Result<()> {
    if let Some(cell) = cell {
        return check_cell(path, cell);
    }
    if path.exists() {
        return Err(BenchError::workbook(
            path,
            "is already there and would be lost; choose another name, or name a cell to write to (--output-cell ROW-COL)",
        ));
    }
    output_file(path.to_owned()).map_err(|reason| BenchError::workbook(path, reason))?;
    Ok(())
}

#[cfg(test)]
mod tests;
