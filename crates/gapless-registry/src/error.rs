//! What can go wrong with a domain.

use gapless_message::route_name::RouteNameError;

/// What can go wrong with a domain.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A name that no route can have.
    #[error(transparent)]
    RouteName(#[from] RouteNameError),
    /// A value out of range.
    #[error("{option}: {reason}")]
    Option {
        /// The option.
        option: &'static str,
        /// What was found, and what is allowed.
        reason: String,
    },
    /// A directory that cannot be used as a domain, or no longer.
    #[error("{} cannot be used as a domain: {reason}", .path.display())]
    Domain {
        /// The directory.
        path: std::path::PathBuf,
        /// What was expected, and what was found.
        reason: String,
    },
    /// The operating system refused.
    #[error("{action}: {source}")]
    System {
        /// What was being done, with the path where there is one.
        action: String,
        /// Its reason.
        source: std::io::Error,
    },
    /// A process at the other end broke the protocol.
    #[error("process {process_id}: {reason}")]
    Protocol {
        /// Whose bytes they were.
        process_id: u32,
        /// What was expected, and what was found.
        reason: String,
    },
    /// A process at the other end is dead already, though a child of it may have its socket.
    #[error("process {process_id}: it is dead already")]
    Dead {
        /// Its number.
        process_id: u32,
    },
    /// A process at the other end has no number here.
    #[error("{}", OTHER_NAMESPACE)]
    OtherNamespace,
}

/// Why a process of another process namespace is neither called nor let in: nobody would see its death.
const OTHER_NAMESPACE: &str =
    "it lives in another process namespace, as of another container, and such processes do not call each other";

impl RegistryError {
    /// For `map_err`: what the operating system refused.
    pub(crate) fn system<E: Into<std::io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }
}
