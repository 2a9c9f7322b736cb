//! In the place of `excel` where the feature `workbooks` is not built: nothing is written.

use std::path::Path;

use super::CellAddress;
use crate::{Report, ReportError, Result};

/// Would write a new workbook.
///
/// # Errors
/// Always: this build has no workbooks.
pub fn create(_path: &Path, _report: &Report) -> Result<()> {
    Err(ReportError::Feature("workbooks"))
}

/// Would write `value` into a cell of an existing workbook.
///
/// # Errors
/// Always: this build has no workbooks.
pub fn write_cell(_path: &Path, _cell: CellAddress, _value: f64) -> Result<()> {
    Err(ReportError::Feature("workbooks"))
}

/// Would do everything that [`write_cell`] does but for writing.
///
/// # Errors
/// Always: this build has no workbooks.
pub fn check_cell(_path: &Path, _cell: CellAddress) -> Result<()> {
    Err(ReportError::Feature("workbooks"))
}

#[cfg(test)]
mod tests {
    use super::super::check;

    #[test]
    fn a_workbook_is_refused_before_the_run() {
        let directory = tempfile::tempdir().unwrap();
        let error = check(&directory.path().join("new.xlsx"), None).unwrap_err();
        assert_eq!(error.to_string(), "this build has no workbooks: enable the feature `workbooks`");
        assert!(error.is_about_options());
    }
}
