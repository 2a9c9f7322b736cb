use gapless_message::route_name::RouteNameError;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// An invalid name of a route.
    #[error(transparent)]
    RouteName(#[from] RouteNameError),
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// A directory that cannot be used as a domain, or no longer.
    #[error("{} cannot be used as a domain: {reason}", .path.display())]
    Domain { path: std::path::PathBuf, reason: String },
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// A peer violated the protocol.
    #[error("process {process_id}: {reason}")]
    Protocol { process_id: u32, reason: String },
    /// A child of the dead peer may still have its socket.
    #[error("process {process_id}: it is dead already")]
    Dead { process_id: u32 },
    /// A peer has no process id in this namespace.
    #[error("{}", OTHER_NAMESPACE)]
    OtherNamespace,
}

/// The death of a process in another namespace could not be seen.
const OTHER_NAMESPACE: &str =
    "it lives in another process namespace, as of another container, and such processes do not call each other";

impl RegistryError {
    pub(crate) fn system<E: Into<std::io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }
}
