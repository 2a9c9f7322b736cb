//! Mutual TLS over TCP: [`MutualTls`], the certificates, and [`TlsSocket`], bytes over it. Built with the feature
//! `tls`, because its cryptography needs a C compiler; without it the types exist and have no value.
//!
//! Only TLS 1.3. Both sides prove their identity by a certificate that the authority has signed and that is for their
//! DNS name; both sides of a connection require it.

#[cfg(feature = "tls")]
mod certificates;
#[cfg(feature = "tls")]
mod names;
#[cfg(feature = "tls")]
mod socket;
#[cfg(feature = "tls")]
pub use certificates::MutualTls;
/// The library, for tests with foreign peers.
#[cfg(feature = "tls")]
pub use rustls;
#[cfg(feature = "tls")]
pub use socket::TlsSocket;

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(not(feature = "tls"))]
pub use absent::{MutualTls, TlsSocket};

mod error;
pub use error::TlsError;
