//! One number into one cell of an existing workbook.
//!
//! The sheet's text is changed in the one place only, and every other part is copied as it is stored,
//! compressed bytes and all. Two parts may have to change with it: the list of formula cells, if a
//! formula is replaced, and the request to calculate again, if there are formulas that may depend on the cell.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::package::{Package, Replacement};
use crate::workbook::CellAddress;
use crate::{BenchError, Result};

/// Writes `value` into a cell of the workbook's first sheet. Style, charts, other sheets and everything else stay.
///
/// The new file takes the place of the old one in one step, with its permissions; a symbolic link stays one.
///
/// # Errors
/// When the file is not a workbook, is read-only, is open in another program, or when the cell belongs to
/// a formula that other cells share; when `value` is not finite; when the file cannot be written.
pub fn write_cell(path: &Path, cell: CellAddress, value: f64) -> Result<()> {
    if !value.is_finite() {
        return Err(BenchError::workbook(path, format!("{value} is not a number that a cell can hold")));
    }
    let source = OpenWorkbook::open(path)?;
    let replacements = source.replacements(cell, value)?;
    let bytes = source.rewritten(&replacements)?;
    source.replace_with(&bytes)
}

/// Does everything that [`write_cell`] does but for writing, so that a long run does not end in an error.
///
/// # Errors
/// As [`write_cell`].
pub fn check_cell(path: &Path, cell: CellAddress) -> Result<()> {
    let source = OpenWorkbook::open(path)?;
    let replacements = source.replacements(cell, 0.0)?;
    source.rewritten(&replacements).map(drop)
}

/// A workbook that is there, may be written and is not open elsewhere.
struct OpenWorkbook {
    /// Path as the user named it, for messages.
    path: PathBuf,
    /// After symbolic links are resolved.
    real_path: PathBuf,
    bytes: Vec<u8>,
    /// Holds the lock until the new file is in place.
    file: File,
}

/// A workbook that is larger was not made by hand.
const FILE_BYTES_MAX: u64 = 1 << 30;

impl OpenWorkbook {
    fn open(path: &Path) -> Result<Self> {
        let error = |reason: &str| BenchError::workbook(path, reason);
        let real_path = path.canonicalize().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                error("is not there; a cell can only be written into an existing workbook (leave --output-cell out for a new one)")
            }
            _ => BenchError::io("open", path, source),
        })?;
        let metadata = std::fs::metadata(&real_path).map_err(|source| BenchError::io("open", path, source))?;
        if !metadata.is_file() {
            return Err(error("is not a file"));
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(error("is larger than 1 GiB; expected a workbook"));
        }
        if metadata.permissions().readonly() {
            return Err(error("is read-only; make it writable or choose another file"));
        }
        refuse_open_elsewhere(path, &real_path)?;
        // Opened for writing too, although it is replaced: a user who may not write the file may not replace it.
        let file = File::options()
            .read(true)
            .write(true)
            .open(&real_path)
            .map_err(|source| BenchError::io("open for writing", path, source))?;
        // Any other error comes from a file system without locks: there no process has locked it.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(error("is locked by another program; close it there and try again"));
        }
        let bytes = std::fs::read(&real_path).map_err(|source| BenchError::io("read", path, source))?;
        Ok(Self { path: path.to_owned(), real_path, bytes, file })
    }

    fn archive(&self) -> Result<ZipArchive<Cursor<&[u8]>>> {
        ZipArchive::new(Cursor::new(self.bytes.as_slice())).map_err(|error| {
            BenchError::workbook(&self.path, format!("is not an Excel workbook (.xlsx or .xlsm): {error}"))
        })
    }

    fn replacements(&self, cell: CellAddress, value: f64) -> Result<Vec<Replacement>> {
        let mut package = Package::new(self.archive()?);
        package.set_cell(cell, value).map_err(|reason| BenchError::workbook(&self.path, reason))
    }

    /// The whole file with some parts replaced or left out and all others as they were stored, in their order.
    fn rewritten(&self, replacements: &[Replacement]) -> Result<Vec<u8>> {
        let failed = |error: zip::result::ZipError| BenchError::workbook(&self.path, error.to_string());
        let mut archive = self.archive()?;
        let mut writer = ZipWriter::new(Cursor::new(Vec::with_capacity(self.bytes.len() + 4096)));
        writer.set_raw_comment(archive.comment().into()).map_err(failed)?;
        for index in 0..archive.len() {
            let part = archive.by_index_raw(index).map_err(failed)?;
            match replacements.iter().find(|replacement| part.name_raw() == replacement.name.as_bytes()) {
                None => writer.raw_copy_file(part).map_err(failed)?,
                Some(Replacement { text: None, .. }) => (),
                Some(Replacement { name, text: Some(text) }) => {
                    let mut options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
                    if let Some(time) = part.last_modified() {
                        options = options.last_modified_time(time);
                    }
                    drop(part);
                    writer.start_file(name, options).map_err(failed)?;
                    writer.write_all(text.as_bytes()).map_err(|source| BenchError::io("write", &self.path, source))?;
                }
            }
        }
        Ok(writer.finish().map_err(failed)?.into_inner())
    }

    fn replace_with(self, bytes: &[u8]) -> Result<()> {
        let name = self.real_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let temporary = self.real_path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        // Written like a journal's durable files, but made exclusively: another program may be editing the same workbook. Nothing
        // is synced after the rename: a workbook can be written again.
        let written = (|| {
            let mut file = File::options().write(true).create_new(true).open(&temporary)?;
            file.write_all(bytes)?;
            file.set_permissions(self.file.metadata()?.permissions())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &self.real_path)
        })();
        written.map_err(|source: std::io::Error| {
            // The new file is removed again; if that fails, nothing more can be done.
            let _ = std::fs::remove_file(&temporary);
            BenchError::io("replace", &self.path, source)
        })
    }
}

/// Office programs leave a file next to a workbook that they have open; they lock nothing that Linux would tell.
fn refuse_open_elsewhere(path: &Path, real_path: &Path) -> Result<()> {
    let name = real_path.file_name().unwrap_or_default().to_string_lossy();
    for lock in [format!("~${name}"), format!(".~lock.{name}#")] {
        let lock = real_path.with_file_name(lock);
        if lock.exists() {
            return Err(BenchError::workbook(
                path,
                format!("is open in another program ({} is there); close it there and try again", lock.display()),
            ));
        }
    }
    Ok(())
}
