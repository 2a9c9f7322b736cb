//! The domain of the commands for calls. Only `serve` creates one; calling and looking create nothing.

use super::domain_directory::{lacks_owner_permissions, reason_against, reason_not_a_domain, reason_not_searched};
use super::{ExitError, UsageError};
use clap::Args;
use gapless_rpc::domain::{DOMAIN_VARIABLE, DomainLocation};
use gapless_rpc::{Domain, DomainOptions, RpcError};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct DomainArguments {
    /// Domain: a name or an absolute path [default: GAPLESS_DOMAIN, else "default"]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// Directory of the domain, if it has one of its own
    #[arg(long, value_name = "PATH", conflicts_with = "domain")]
    directory: Option<PathBuf>,
}

const NAMED_MAX: usize = 10;
/// Most commands that only call or look have ended before.
const WATCH_AFTER: Duration = Duration::from_millis(50);
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(20);

impl DomainArguments {
    pub(crate) fn open_or_create(&self) -> Result<Domain, Box<dyn Error>> {
        self.open_with(DomainOptions::default())
    }

    fn open_with(&self, options: DomainOptions) -> Result<Domain, Box<dyn Error>> {
        if let Some(reason) = reason_not_a_domain(&self.path()?) {
            return Err(exit_error(reason));
        }
        let opened = match self.place()? {
            DomainLocation::Path(path) => Domain::open_directory(path, options),
            DomainLocation::Named(name) => Domain::open(&name, options),
        };
        opened.map_err(options_error)
    }

    /// Changes nothing. The error of a missing domain names the existing ones.
    pub(crate) fn open(&self) -> Result<Domain, Box<dyn Error>> {
        Ok(self.open_within(Duration::ZERO)?.0)
    }

    /// Waits for the domain to appear. Also returns the time waited.
    pub(crate) fn open_within(&self, wait: Duration) -> Result<(Domain, Duration), Box<dyn Error>> {
        let name = match self.place()? {
            DomainLocation::Named(name) => Some(name),
            DomainLocation::Path(_) => None,
        };
        let path = self.path()?;
        let parent = name.as_ref().and_then(|_| path.parent());
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        // A new directory gets its mode a moment later.
        while !has_domain(&path) || parent.is_some_and(lacks_owner_permissions) || lacks_owner_permissions(&path) {
            if waited >= wait {
                break;
            }
            std::thread::sleep(ATTEMPT_INTERVAL);
            waited = begun.elapsed();
        }
        if let Some(reason) = parent.and_then(reason_not_searched).or_else(|| reason_against(&path)) {
            return Err(exit_error(reason));
        }
        if !has_domain(&path) {
            return Err(self.missing_domain(name.as_deref(), &path));
        }
        Ok((self.open_with(DomainOptions { watch_after: WATCH_AFTER, ..DomainOptions::default() })?, waited))
    }

    pub(crate) fn path(&self) -> Result<PathBuf, Box<dyn Error>> {
        path_of(self.place()?)
    }

    fn place(&self) -> Result<DomainLocation, Box<dyn Error>> {
        match (&self.directory, &self.domain) {
            (Some(path), _) => Ok(DomainLocation::Path(path.clone())),
            (None, Some(name)) => Ok(place_of(name)),
            (None, None) => Ok(domain_of_environment()?.unwrap_or_else(|| DomainLocation::Named("default".to_owned()))),
        }
    }

    /// Lists the domains of supervisors in this folder if none was named.
    fn missing_domain(&self, name: Option<&str>, path: &Path) -> Box<dyn Error> {
        let is_named = self.domain.is_some() || self.directory.is_some() || std::env::var_os(DOMAIN_VARIABLE).is_some();
        let here = if is_named { Vec::new() } else { supervisor_domains(Path::new(".")) };
        if here.is_empty() {
            return missing_domain(name, path);
        }
        let options: Vec<String> = here.iter().map(|path| format!("--directory {}", path.display())).collect();
        let (name, options) = (name.unwrap_or_default(), options.join(" or "));
        exit_error(format!("there is no domain {name}; that of the supervisor in this folder is {options}"))
    }
}

/// A name or an absolute path, as in `GAPLESS_DOMAIN`.
pub(crate) fn place_of(name: &str) -> DomainLocation {
    if name.starts_with('/') {
        DomainLocation::Path(PathBuf::from(name))
    } else {
        DomainLocation::Named(name.to_owned())
    }
}

fn supervisor_domains(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let states = entries.filter(|entry| entry.path().join("guardian.lock").exists());
    let domains = states.map(|entry| PathBuf::from(entry.file_name()).join("domain"));
    let mut found: Vec<PathBuf> = domains.filter(|path| folder.join(path).is_dir()).collect();
    found.sort();
    found.truncate(NAMED_MAX);
    found
}

pub(crate) fn path_of(place: DomainLocation) -> Result<PathBuf, Box<dyn Error>> {
    match place {
        DomainLocation::Path(path) => Ok(path),
        DomainLocation::Named(name) => Ok(Domain::directory_of(&name).map_err(options_error)?),
    }
}

/// Clap is not used: an option from the environment would conflict with --directory.
pub(crate) fn domain_of_environment() -> Result<Option<DomainLocation>, UsageError> {
    DomainLocation::from_environment().map_err(|error| UsageError(format!("{DOMAIN_VARIABLE}: {error}")))
}

fn has_domain(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Exits like a call of an unserved route: the domain may come with its first server.
pub(crate) fn missing_domain(name: Option<&str>, path: &Path) -> Box<dyn Error> {
    let Some(name) = name else {
        return exit_error(format!("{}: there is no such directory, so nobody serves there", path.display()));
    };
    let parent = path.parent().unwrap_or(path);
    let mut others: Vec<String> = std::fs::read_dir(parent).map_or_else(
        |_| Vec::new(),
        |entries| {
            let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
            names.filter(|name| Domain::directory_of(name).is_ok()).collect()
        },
    );
    others.sort();
    let more = others.len().saturating_sub(NAMED_MAX);
    others.truncate(NAMED_MAX);
    let there_are = match (others.len(), more) {
        (0, _) => "there is none yet; `gapless serve` makes one".to_owned(),
        (1, _) => format!("there is {}", others[0]),
        (_, 0) => format!("there are {}", others.join(", ")),
        (_, more) => format!("there are {} and {more} more", others.join(", ")),
    };
    exit_error(format!("there is no domain {name} in {}: {there_are}", parent.display()))
}

/// Exits with 2 for invalid options.
pub(crate) fn options_error(error: RpcError) -> Box<dyn Error> {
    match error {
        RpcError::RouteName { .. } | RpcError::Option { .. } => Box::new(UsageError(error.to_string())),
        error => Box::new(error),
    }
}

pub(crate) fn exit_error(reason: impl ToString) -> Box<dyn Error> {
    Box::new(ExitError { code: 1, reason: reason.to_string() })
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "0.001 to 86400 seconds are possible".to_owned())
}
