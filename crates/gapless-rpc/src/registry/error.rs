//! Errors of a domain.

use gapless_message::route_name::RouteNameError;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// An invalid name of a route.
    #[error(transparent)]
    RouteName(#[from] RouteNameError),
    #[error("{option}: {reason}")]
    Option {
        option: &'static str,
        /// The value found, and the range allowed.
        reason: String,
    },
    /// A directory that cannot be used as a domain, or no longer.
    #[error("{} cannot be used as a domain: {reason}", .path.display())]
    Domain {
        path: std::path::PathBuf,
        /// Expected and found.
        reason: String,
    },
    #[error("{action}: {source}")]
    System {
        /// The attempted action, with the path if there is one.
        action: String,
        source: std::io::Error,
    },
    /// A peer violated the protocol.
    #[error("process {process_id}: {reason}")]
    Protocol {
        process_id: u32,
        /// Expected and found.
        reason: String,
    },
    /// A peer is dead already, though a child of it may have its socket.
    #[error("process {process_id}: it is dead already")]
    Dead { process_id: u32 },
    /// A peer has no process id in this namespace.
    #[error("{}", OTHER_NAMESPACE)]
    OtherNamespace,
}

/// Reason for which a process of another process namespace is neither called nor accepted: its death could not be seen.
const OTHER_NAMESPACE: &str =
    "it lives in another process namespace, as of another container, and such processes do not call each other";

impl RegistryError {
    /// For `map_err`: wraps an error of the operating system.
    pub(crate) fn system<E: Into<std::io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }
}
