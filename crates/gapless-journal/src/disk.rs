//! [`Disk`]: what stands between a journal and its disk, so that a simulation says when the disk is full or fails. A journal on
//! a machine has none.

use crate::options::Environment;
use std::fmt;
use std::io;

/// What a disk is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWork {
    /// Room for a file.
    Allocate,
    /// To take bytes, where there is room for them.
    Write,
    /// To put on the device what it was given.
    Sync,
}

/// A disk that may refuse.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Asked before each work.
    ///
    /// # Errors
    /// What the work ends with, instead of being done.
    fn ask(&self, work: DiskWork) -> io::Result<()>;
}

impl Environment {
    /// Whether the disk does this work.
    ///
    /// # Errors
    /// What it says instead.
    #[inline]
    pub fn ask(&self, work: DiskWork) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.ask(work))
    }
}
