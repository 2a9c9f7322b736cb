//! The cost of writing: into the page cache, onto the device, in sequence.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate};

use super::sampling::FloorEffort;
use crate::FloorRow;
use crate::{BenchError, Result};

/// Samples walk through a file of this size again and again.
const FILE_BYTES: u64 = 16 << 20;

/// Writes at ascending offsets of a preallocated, zeroed file.
pub(super) fn write_one(effort: &FloorEffort, directory: &Path, payload: usize, sync: bool) -> Result<FloorRow> {
    let payload = payload.max(1);
    let (file, path) = scratch_file(directory)?;
    preallocate(&file, &path)?;
    let positions = (FILE_BYTES / payload as u64).max(1);
    let histogram = effort.on_one_thread(|| {
        let bytes = vec![1; payload];
        let mut index = 0;
        effort.sample(|| {
            file.write_all_at(&bytes, index % positions * payload as u64)
                .map_err(|source| BenchError::io("write", &path, source))?;
            index += 1;
            if sync {
                file.sync_data().map_err(|source| BenchError::io("sync", &path, source))?;
            }
            Ok(())
        })
    })?;
    let mut row = effort.latency_row(payload, &histogram)?;
    row.cpus.iter_mut().for_each(|cpus| cpus.truncate(1));
    Ok(row)
}

pub(super) fn sequential(effort: &FloorEffort, directory: &Path, sync: bool) -> Result<FloorRow> {
    const CHUNK: usize = 1 << 20;
    const CHUNKS_MAX: u64 = 64;
    let (mut file, path) = scratch_file(directory)?;
    let (rate, written) = effort.on_one_thread(|| {
        let bytes = vec![1; CHUNK];
        let begin = Instant::now();
        let mut written = 0;
        for _ in 0..CHUNKS_MAX {
            file.write_all(&bytes).map_err(|source| BenchError::io("write", &path, source))?;
            written += CHUNK as u64;
            if begin.elapsed() > effort.time_limit {
                break;
            }
        }
        if sync {
            file.sync_data().map_err(|source| BenchError::io("sync", &path, source))?;
        }
        Ok((written as f64 / begin.elapsed().as_secs_f64(), written))
    })?;
    let mut row = effort.row(CHUNK);
    row.cpus.iter_mut().for_each(|cpus| cpus.truncate(1));
    Ok(FloorRow { bytes_per_s: Some(rate.round()), samples: Some(written / CHUNK as u64), ..row })
}

/// A file without a name goes away with its handle, also when the process is killed.
fn scratch_file(directory: &Path) -> Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".gapless-floor-{}-{number}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(|source| BenchError::io("create", &path, source))?;
    std::fs::remove_file(&path).map_err(|source| BenchError::io("remove", &path, source))?;
    Ok((file, path))
}

/// Allocates blocks and zeroes them, so that a sample changes no metadata.
fn preallocate(file: &File, path: &Path) -> Result<()> {
    // Optional: the zeros allocate as well.
    let _ = fallocate(file, FallocateFlags::empty(), 0, FILE_BYTES);
    let zeros = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < FILE_BYTES {
        file.write_all_at(&zeros, offset).map_err(|source| BenchError::io("write", path, source))?;
        offset += zeros.len() as u64;
    }
    file.sync_all().map_err(|source| BenchError::io("sync", path, source))
}
