//! One number into one cell of an existing workbook. Only that place in the sheet changes; other parts are copied
//! compressed. Two may change, too: the list of formula cells, if a formula is replaced, and the request to
//! recalculate.

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

/// Writes to the first sheet. Everything else stays. The new file replaces the old one in one step, with its
/// permissions; a symbolic link stays one.
///
/// # Errors
/// When the file is not a workbook, is read-only, is open in another program; when the cell belongs to a shared
/// formula; when `value` is not finite; when the file cannot be written.
pub fn write_cell(path: &Path, cell: CellAddress, value: f64) -> Result<()> {
    if !value.is_finite() {
        return Err(BenchError::workbook(path, format!("{value} is not a number that a cell can hold")));
    }
    let source = OpenWorkbook::open(path)?;
    let replacements = source.replacements(cell, value)?;
    let bytes = source.rewritten(&replacements)?;
    source.replace_with(&bytes)
}

/// Does everything that [`write_cell`] does, except writing.
///
/// # Errors
/// As [`write_cell`].
pub fn check_cell(path: &Path, cell: CellAddress) -> Result<()> {
    let source = OpenWorkbook::open(path)?;
    let replacements = source.replacements(cell, 0.0)?;
    source.rewritten(&replacements).map(drop)
}

/// Writable and not open elsewhere.
struct OpenWorkbook {
    /// Path for messages.
    path: PathBuf,
    /// Symbolic links resolved.
    real_path: PathBuf,
    bytes: Vec<u8>,
    /// Holds the lock until the new file is in place.
    file: File,
}

/// A larger workbook was not made by hand.
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
        // Opened for writing: a user who may not write the file may not replace it.
        let file = File::options()
            .read(true)
            .write(true)
            .open(&real_path)
            .map_err(|source| BenchError::io("open for writing", path, source))?;
        // Other errors mean a file system without locks.
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

    /// Other parts as they were stored, in order.
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
        // Made exclusively: another program may be editing the workbook. Not synced after the rename: a workbook can be
        // written again.
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

/// Office programs lock nothing, but leave a file next to an open workbook.
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
