//! Mutual TLS 1.3 over TCP: both sides require a certificate of the authority for the other's DNS name. Needs the
//! feature `tls`, whose cryptography needs a C compiler; without it the types have no value.

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
