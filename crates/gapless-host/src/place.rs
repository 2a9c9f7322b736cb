//! [`Place`]: where a host keeps its stream.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Directory(PathBuf),
    /// File of a cluster's member.
    #[cfg(feature = "cluster")]
    Member(PathBuf),
    /// File of a stream of others.
    Stream(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("in memory"),
            Self::Directory(directory) => write!(f, "in directory {}", directory.display()),
            #[cfg(feature = "cluster")]
            Self::Member(file) => write!(f, "on the member of {}", file.display()),
            Self::Stream(file) => write!(f, "on the stream of {}", file.display()),
        }
    }
}
