//! Errors of domains, routes and the machine, as opposed to those of calls.

use crate::overflow::OptionsError;
#[cfg(not(loom))]
use crate::registry::RegistryError;
use gapless_log::LogError;
use gapless_message::route_name::RouteNameError;

/// Error of a domain, a route or the machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The name of a route is invalid. Correct it.
    #[error(transparent)]
    RouteName(#[from] RouteNameError),
    /// Correct the option.
    #[error("{option}: {reason}")]
    Option {
        option: &'static str,
        /// Value found, and values allowed.
        reason: String,
    },
    /// The directory is not usable as a domain, has another owner than before, or was opened before a fork. Open the
    /// domain again, with the right directory.
    #[error("{} cannot be used as a domain: {reason}", .path.display())]
    Domain {
        path: std::path::PathBuf,
        /// Expected and found.
        reason: String,
    },
    /// A process serves a route once. Stop serving it first, or use another name.
    #[error("this process serves the route {route} already")]
    Served { route: String },
    /// The operating system refused. Remove the cause and retry.
    #[error("{action}: {source}")]
    System {
        /// Attempted action, with the path where there is one.
        action: String,
        source: std::io::Error,
    },
    /// Shared memory cannot be made or opened.
    #[error(transparent)]
    Memory(#[from] LogError),
    /// A peer process broke the protocol, or has died. Compare the versions of both programs.
    #[error("process {process_id}: {reason}")]
    Protocol {
        process_id: u32,
        /// Expected and found.
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
    pub(crate) fn system<E: Into<std::io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Self::System { action, source: source.into() }
    }
}
