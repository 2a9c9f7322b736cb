//! [`DomainArguments`]: the domain that the commands for calls speak in. Only `serve` makes one; looking and calling make nothing.

use super::{Ended, Usage};
use clap::Args;
use gapless_rpc::{Domain, DomainOptions, RpcError};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct DomainArguments {
    /// The domain, by its name; without a word the one that GAPLESS_DOMAIN names, else "default"
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// The domain's directory, if it has one of its own
    #[arg(long, value_name = "PATH", conflicts_with = "domain")]
    directory: Option<PathBuf>,
}

/// How many domains an error names.
const NAMED_MAX: usize = 10;
/// Between two looks for a domain that is waited for.
const LOOK: Duration = Duration::from_millis(20);

impl DomainArguments {
    /// Opens the domain, or makes it.
    pub(crate) fn open_or_make(&self) -> Result<Domain, Box<dyn Error>> {
        let opened = match &self.directory {
            Some(path) => Domain::open_directory(path, DomainOptions::default()),
            None => Domain::open(&self.name()?, DomainOptions::default()),
        };
        opened.map_err(about_options)
    }

    /// Opens a domain that is there.
    ///
    /// # Errors
    /// One that is not there, with those that are; one that cannot be opened.
    pub(crate) fn open(&self) -> Result<Domain, Box<dyn Error>> {
        Ok(self.open_within(Duration::ZERO)?.0)
    }

    /// As [`DomainArguments::open`]; waits so long for somebody who makes it. The time that it took to come is there, too.
    pub(crate) fn open_within(&self, wait: Duration) -> Result<(Domain, Duration), Box<dyn Error>> {
        let name = if self.directory.is_some() { None } else { Some(self.name()?) };
        let path = match (&self.directory, &name) {
            (Some(path), _) => path.clone(),
            (None, name) => Domain::directory_of(name.as_deref().unwrap_or_default()).map_err(about_options)?,
        };
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        while !is_there(&path) {
            if waited >= wait {
                return Err(none(name.as_deref(), &path));
            }
            std::thread::sleep(LOOK);
            waited = begun.elapsed();
        }
        Ok((self.open_or_make()?, waited))
    }

    /// The name that is meant where no directory is given.
    fn name(&self) -> Result<String, Box<dyn Error>> {
        match (&self.domain, std::env::var_os("GAPLESS_DOMAIN")) {
            (Some(name), _) => Ok(name.clone()),
            // Not clap's: an option of the environment would contradict --directory.
            (None, Some(name)) => {
                let name = name.to_string_lossy();
                let checked = Domain::directory_of(&name).map(|_| name.clone().into_owned());
                checked.map_err(|error| Usage(format!("GAPLESS_DOMAIN: {error}")).into())
            }
            (None, None) => Ok("default".to_owned()),
        }
    }
}

/// Whether something is there; what it is, opening says.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// There is no such domain. It ends as a call of a route that nobody serves: the domain may come with its first server.
pub(crate) fn none(name: Option<&str>, path: &Path) -> Box<dyn Error> {
    let Some(name) = name else {
        return ended(format!("{}: there is no such directory, so nobody serves there", path.display()));
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
    ended(format!("there is no domain {name} in {}: {there_are}", parent.display()))
}

/// What is wrong with the options ends the program with 2.
pub(crate) fn about_options(error: RpcError) -> Box<dyn Error> {
    match error {
        RpcError::RouteName { .. } | RpcError::Option { .. } => Box::new(Usage(error.to_string())),
        error => Box::new(error),
    }
}

/// How a command for calls ended without what it was to bring; the program ends with 1.
pub(crate) fn ended(reason: impl ToString) -> Box<dyn Error> {
    Box::new(Ended { code: 1, reason: reason.to_string() })
}

/// Seconds of an option.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "0.001 to 86400 seconds are possible".to_owned())
}
