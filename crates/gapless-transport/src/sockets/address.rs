//! `Address`: address of a connection, and its text form.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const SHARED_MEMORY_PREFIX: &str = "shm:";
/// Linux's limit for a Unix socket.
const PATH_LENGTH_MAX: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Network(SocketAddr),
    /// Unix socket over which the memory is shared.
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

/// Path in `shm:/run/orders/2`; `None` for another kind of address.
///
/// # Errors
/// Fault of an invalid path.
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
    fn shared_memory_path_is_validated() {
        assert_eq!(shared_memory_path("10.0.0.1:1"), Ok(None));
        assert_eq!(shared_memory_path("shm:/run/a"), Ok(Some("/run/a".into())));
        for wrong in ["shm:", "shm:a", "shm:/", "shm:/run/", "shm:/a\0b"] {
            assert!(shared_memory_path(wrong).is_err(), "{wrong:?}");
        }
        assert!(shared_memory_path(&format!("shm:/{}", "a".repeat(PATH_LENGTH_MAX - 1))).is_ok());
        assert!(shared_memory_path(&format!("shm:/{}", "a".repeat(PATH_LENGTH_MAX))).is_err());
    }
}
