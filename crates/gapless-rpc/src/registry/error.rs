//! Errors of a domain.

use gapless_message::route_name::RouteNameError;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The name of a route is invalid.
    #[error(transparent)]
    RouteName(#[from] RouteNameError),
    /// Correct the option.
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// The directory cannot be used as a domain, or no longer.
    #[error("{} cannot be used as a domain: {reason}", .path.display())]
    Domain { path: std::path::PathBuf, reason: String },
    /// The operating system refused.
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// The peer broke the protocol.
    #[error("process {process_id}: {reason}")]
    Protocol { process_id: u32, reason: String },
    /// A child of the dead peer may still have its socket.
    #[error("process {process_id}: it is dead already")]
    Dead { process_id: u32 },
    /// The peer has no process id in this namespace.
    #[error("{}", OTHER_NAMESPACE)]
    OtherNamespace,
}

/// The death of a process in another namespace could not be seen.
const OTHER_NAMESPACE: &str =
    "it is in another process namespace, such as that of another container, and such processes do not call each other";

impl RegistryError {
    pub(crate) fn system<E: Into<std::io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }
}
