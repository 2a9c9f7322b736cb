//! Errors exit with 2 before anything is sent.

use super::UsageError;
use crate::printable::escaped;
use crate::standard_streams;
use clap::Args;
use gapless_rpc::{Headers, Json, route_name};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

const REQUEST_LENGTH_MAX: usize = 16 << 20;
const SAID_AFTER: Duration = Duration::from_secs(1);

/// Route and request of a call.
#[derive(Args)]
pub(crate) struct RequestArguments {
    /// Name of the route
    pub(crate) route: String,

    /// Request: JSON, @FILE, or - for standard input
    #[arg(value_name = "JSON|@FILE|-", default_value = "null", allow_negative_numbers = true)]
    pub(crate) request: OsString,
}

pub(crate) fn route(name: &str) -> Result<(), UsageError> {
    route_name::check(name).map_err(|error| UsageError(error.to_string()))
}

/// The text itself, `@FILE`, or `-` for standard input.
pub(crate) fn request(argument: &OsStr) -> Result<Vec<u8>, UsageError> {
    let mut bytes = Vec::new();
    // One more byte shows that the request is too long.
    let readable = REQUEST_LENGTH_MAX as u64 + 1;
    let place = if argument == "-" { OsStr::new("standard input") } else { argument };
    let read = match argument.as_bytes() {
        [b'@', path @ ..] => {
            // Opening a named pipe waits for a writer.
            let _waiting = Waiting::for_end_of(argument);
            File::open(OsStr::from_bytes(path)).and_then(|file| file.take(readable).read_to_end(&mut bytes))
        }
        b"-" => standard_streams::check_input().and_then(|()| {
            let _waiting = io::stdin().is_terminal().then(|| Waiting::for_end_of(place));
            io::stdin().lock().take(readable).read_to_end(&mut bytes)
        }),
        text => return Ok(text.to_vec()),
    };
    let place = place.display();
    read.map_err(|error| UsageError(format!("{place}: {error}")))?;
    if bytes.len() > REQUEST_LENGTH_MAX {
        return Err(UsageError(format!("{place}: more than the 16 MiB that a request has at most")));
    }
    Ok(bytes)
}

struct Waiting {
    _is_over: Sender<()>,
}

impl Waiting {
    fn for_end_of(place: &OsStr) -> Self {
        let (is_over, waited) = channel::<()>();
        let place = escaped(&place.to_string_lossy());
        std::thread::spawn(move || {
            if waited.recv_timeout(SAID_AFTER) == Err(RecvTimeoutError::Timeout) {
                crate::commands::to_stderr!("note: waiting for the end of {place}");
            }
        });
        Self { _is_over: is_over }
    }
}

pub(crate) fn json_request(argument: &OsStr) -> Result<Json, UsageError> {
    Json::new(request(argument)?).map_err(|error| {
        // A word that is not JSON but names a file is probably meant as `@FILE`.
        let is_file = std::path::Path::new(argument).is_file();
        let tip = if is_file { format!("; @{} sends the file", argument.display()) } else { String::new() };
        UsageError(format!("the request is no {error}{tip}"))
    })
}

pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "NAME=VALUE is expected".to_owned())
}

pub(crate) fn headers(pairs: &[(String, String)]) -> Result<Headers, UsageError> {
    let add =
        |headers: Headers, (name, value): &(String, String)| headers.with(name.clone(), value.as_bytes().to_vec());
    let headers = pairs.iter().fold(Headers::default(), add);
    headers.encode(&mut Vec::new()).map_err(|error| UsageError(format!("--header: {error}")))?;
    Ok(headers)
}
