//! Files for bytes that recovery removes from a journal, as `SEGMENT.cut-1`, `SEGMENT.cut-2` …: a removed segment
//! renamed, or removed bytes at their old positions, with a hole before them. Only the operator deletes them.

use gapless_agent::checked_file;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::descriptor::{CUT_INFIX, segment_name};
use crate::disk::sync_directory;
use crate::error::JournalError;

fn free_name(directory: &Path, first_sequence: u64) -> PathBuf {
    let name = |number: u64| directory.join(format!("{}{CUT_INFIX}{number}", segment_name(first_sequence)));
    (1..).map(name).find(|path| !path.exists()).expect("a directory has fewer files")
}

pub(crate) fn set_segment_aside(directory: &Path, path: &Path, first_sequence: u64) -> Result<PathBuf, JournalError> {
    let cut = free_name(directory, first_sequence);
    checked_file::rename(path, &cut).map_err(|error| JournalError::io("rename", path, error))?;
    sync_directory(directory)?;
    Ok(cut)
}

pub(crate) fn copy_tail(
    directory: &Path,
    segment: &File,
    first_sequence: u64,
    (from, to): (u64, u64),
) -> Result<PathBuf, JournalError> {
    let cut = free_name(directory, first_sequence);
    let copy = || -> std::io::Result<()> {
        let file = checked_file::create_new(&cut, 0o600)?;
        let mut buffer = vec![0; (to - from).min(1 << 20) as usize];
        let mut position = from;
        while position < to {
            let piece = buffer.len().min((to - position) as usize);
            segment.read_exact_at(&mut buffer[..piece], position)?;
            file.write_all_at(&buffer[..piece], position)?;
            position += piece as u64;
        }
        file.sync_all()
    };
    copy().map_err(|error| {
        // A partial copy is useless; its source is still in place.
        let _removed = checked_file::remove(&cut);
        JournalError::io("copy what is cut into", &cut, error)
    })?;
    sync_directory(directory)?;
    Ok(cut)
}

pub(crate) fn bytes_on_device(cuts: &[PathBuf]) -> u64 {
    // `blocks` is always in units of 512 bytes.
    cuts.iter().filter_map(|path| std::fs::metadata(path).ok()).map(|metadata| metadata.blocks() * 512).sum()
}
