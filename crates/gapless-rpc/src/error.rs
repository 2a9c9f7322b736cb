//! What can go wrong apart from calls: with domains, routes and the machine.

use gapless_log::LogError;
use gapless_message::route_name::RouteNameError;
use gapless_overflow::OptionsError;
#[cfg(not(loom))]
use gapless_registry::RegistryError;

/// What can go wrong apart from calls.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
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
    /// This process serves the route already.
    #[error("this process serves the route {route} already")]
    Served {
        /// The route.
        route: String,
    },
    /// The operating system refused.
    #[error("{action}: {source}")]
    System {
        /// What was being done, with the path where there is one.
        action: String,
        /// Its reason.
        source: std::io::Error,
    },
    /// Memory that cannot be made or opened.
    #[error(transparent)]
    Memory(#[from] LogError),
    /// A process at the other end broke the protocol.
    #[error("process {process_id}: {reason}")]
    Protocol {
        /// Whose bytes they were.
        process_id: u32,
        /// What was expected, and what was found.
        reason: String,
    },
}

impl From<OptionsError> for RpcError {
    fn from(error: OptionsError) -> Self {
        match error {
            OptionsError::Option { option, reason } => Self::Option { option, reason },
            OptionsError::Directory { path, source } => {
                Self::System { action: format!("look for the directory {}", path.display()), source }
            }
        }
    }
}

#[cfg(not(loom))]
impl From<RegistryError> for RpcError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::RouteName(error) => Self::RouteName(error),
            RegistryError::Option { option, reason } => Self::Option { option, reason },
            RegistryError::Domain { path, reason } => Self::Domain { path, reason },
            RegistryError::System { action, source } => Self::System { action, source },
            RegistryError::Protocol { process_id, reason } => Self::Protocol { process_id, reason },
            RegistryError::Dead { process_id } => {
                Self::Protocol { process_id, reason: "it is dead already".to_owned() }
            }
            RegistryError::OtherNamespace => {
                let action = "identifying a process of the domain".to_owned();
                Self::System { action, source: std::io::Error::other(error) }
            }
        }
    }
}

#[cfg(not(loom))]
impl RpcError {
    /// For `map_err`: what the operating system refused.
    pub(crate) fn system<E: Into<std::io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }
}
