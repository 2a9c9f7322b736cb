//! The domain named by the environment of a process.

use super::opening::{Domain, DomainOptions};
use crate::error::RpcError;
use crate::registry::DomainLocation;

impl Domain {
    /// Opens the domain that the variable `GAPLESS_DOMAIN` names (a directory if it begins with a slash), which a
    /// supervisor sets; without it, this user's domain `default_name`.
    ///
    /// # Errors
    /// Like [`Domain::open`].
    pub fn open_from_environment(default_name: &str, options: DomainOptions) -> Result<Self, RpcError> {
        match DomainLocation::from_environment()? {
            Some(DomainLocation::Named(name)) => Self::open(&name, options),
            Some(DomainLocation::Path(path)) => Self::open_directory(path, options),
            None => Self::open(default_name, options),
        }
    }
}
