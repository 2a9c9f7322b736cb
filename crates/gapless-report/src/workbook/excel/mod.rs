//! The files: a new workbook, or one cell of an existing one. A file is replaced as a whole or not at all.
//!
//! | module | what lives there |
//! |---|---|
//! | `create` | a new workbook |
//! | `edit` | one cell of an existing workbook; every other part stays byte for byte |
//! | `package` | the parts of a workbook: which sheet is the first, which other parts must change |
//! | `sheet` | where in the text of a sheet a cell is or belongs |
//! | `xml` | attributes, positions, and replacements within a text |

mod create;
mod edit;
mod package;
mod sheet;
mod xml;

pub use create::create;
pub use edit::{check_cell, write_cell};
