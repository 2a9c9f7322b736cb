//! What the commands for calls share: the domain that they speak in, and how a call's end becomes an exit code.

use super::{Ended, Usage};
use clap::Args;
use gapless_rpc::{Domain, DomainOptions, RpcError};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct DomainArguments {
    /// The domain, by its name; without a word the one that GAPLESS_DOMAIN names, else "default"
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// The domain's directory, if it has one of its own
    #[arg(long, value_name = "PATH", conflicts_with = "domain")]
    directory: Option<PathBuf>,
}

impl DomainArguments {
    /// Opens the domain; it need not have been there.
    pub(crate) fn open(&self) -> Result<Domain, Box<dyn std::error::Error>> {
        let opened = match (&self.directory, &self.domain) {
            (Some(path), _) => Domain::open_directory(path, DomainOptions::default()),
            (None, Some(name)) => Domain::open(name, DomainOptions::default()),
            // Not clap's: an option of the environment would contradict --directory.
            (None, None) => {
                let name = std::env::var("GAPLESS_DOMAIN").unwrap_or_else(|_| "default".to_owned());
                Domain::open(&name, DomainOptions::default())
            }
        };
        opened.map_err(about_options)
    }
}

/// What is wrong with the options ends the program with 2.
pub(crate) fn about_options(error: RpcError) -> Box<dyn std::error::Error> {
    match error {
        RpcError::RouteName { .. } | RpcError::Option { .. } => Box::new(Usage(error.to_string())),
        error => Box::new(error),
    }
}

/// How a call ended that has no reply; the program ends with 1.
pub(crate) fn ended(reason: impl ToString) -> Box<dyn std::error::Error> {
    Box::new(Ended { code: 1, reason: reason.to_string() })
}

/// Seconds of an option.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "0.001 to 86400 seconds are possible".to_owned())
}

/// Bytes of a request at most.
const REQUEST_LENGTH_MAX: u64 = 16 << 20;

/// A request: the text itself, `@FILE`, or `-` for standard input, to its end.
pub(crate) fn request(argument: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    // One byte more shows that there is too much.
    let read = match argument.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
            file.take(REQUEST_LENGTH_MAX + 1).read_to_end(&mut bytes)
        }
        None if argument == "-" => io::stdin().lock().take(REQUEST_LENGTH_MAX + 1).read_to_end(&mut bytes),
        None => return Ok(argument.as_bytes().to_vec()),
    };
    read.map_err(|error| format!("{argument}: {error}"))?;
    if bytes.len() as u64 > REQUEST_LENGTH_MAX {
        return Err(format!("{argument}: a request has at most 16 MiB").into());
    }
    Ok(bytes)
}
