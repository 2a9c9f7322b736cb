//! [`Address`]: where a connection goes to, or comes from. The form of addresses in text.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The prefix of an address of shared memory.
pub const SHARED_MEMORY_PREFIX: &str = "shm:";
/// The longest path of a Unix socket that Linux takes, bytes.
const PATH_LENGTH_MAX: usize = 107;

/// Where a connection goes to, or comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port.
    Network(SocketAddr),
    /// The Unix socket by which memory comes to be shared.
    SharedMemory(Arc<Path>),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::SharedMemory(path) => write!(f, "{SHARED_MEMORY_PREFIX}{}", path.display()),
        }
    }
}

/// The path in an address of shared memory, `shm:/run/orders/2`; `None` if it is another one.
///
/// # Errors
/// The error of an address that is no valid path of shared memory.
pub fn shared_memory_path(address: &str) -> Result<Option<PathBuf>, &'static str> {
    let Some(path) = address.strip_prefix(SHARED_MEMORY_PREFIX) else { return Ok(None) };
    if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
        return Err("behind shm: stands the absolute path of a socket, such as \"shm:/run/orders/member-2\"");
    }
    if path.len() > PATH_LENGTH_MAX {
        return Err("the path behind shm: has at most 107 bytes");
    }
    Ok(Some(path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_shared_memory_are_absolute_and_short() {
        assert_eq!(shared_memory_path("10.0.0.1:1"), Ok(None));
        assert_eq!(shared_memory_path("shm:/run/a"), Ok(Some("/run/a".into())));
        for wrong in ["shm:", "shm:a", "shm:/", "shm:/run/", "shm:/a\0b"] {
            assert!(shared_memory_path(wrong).is_err(), "{wrong:?}");
        }
        assert!(shared_memory_path(&format!("shm:/{}", "a".repeat(PATH_LENGTH_MAX - 1))).is_ok());
        assert!(shared_memory_path(&format!("shm:/{}", "a".repeat(PATH_LENGTH_MAX))).is_err());
    }
}
