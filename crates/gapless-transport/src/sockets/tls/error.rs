//! [`TlsError`]: why there is no TLS.

use std::path::PathBuf;

/// Why connections cannot be protected as they were asked to be.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not as it has to be.
    #[error("{} cannot be used for TLS: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A certificate for this name cannot exist.
    #[error("{name:?} is no DNS name, which TLS needs")]
    Name { name: String },
    /// TLS is asked for.
    #[error(
        "this build has no TLS, which the configuration asks for; build with the feature tls: cargo build --features tls"
    )]
    NotBuilt,
}
