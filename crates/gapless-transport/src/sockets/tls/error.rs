//! `TlsError`: errors of setting up TLS.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is missing, unreadable, or no certificate or key of the expected form. Replace it.
    #[error("{} cannot be used for TLS: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    /// A certificate for this name cannot exist. Use a DNS name.
    #[error("{name:?} is not a DNS name, which TLS needs")]
    Name { name: String },
    /// TLS is requested in a build without it.
    #[error(
        "this build has no TLS, which the configuration asks for; build with the feature tls: cargo build --features tls"
    )]
    NotBuilt,
}
