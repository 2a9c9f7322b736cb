//! What a call takes from the command line: its route, its request and its headers. What is wrong with them ends the program with 2, before
//! anything is sent.

use super::Usage;
use crate::standard_streams;
use gapless_rpc::{Headers, Json, route_name};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;

/// Bytes of a request at most, with its headers.
const REQUEST_LENGTH_MAX: usize = 16 << 20;

/// Checks a route's name.
pub(crate) fn route(name: &str) -> Result<(), Usage> {
    route_name::check(name).map_err(|error| Usage(error.to_string()))
}

/// A request: the text itself, `@FILE`, or `-` for standard input, to its end.
pub(crate) fn request(argument: &OsStr) -> Result<Vec<u8>, Usage> {
    let mut bytes = Vec::new();
    // One byte more shows that there is too much.
    let readable = REQUEST_LENGTH_MAX as u64 + 1;
    let read = match argument.as_bytes() {
        [b'@', path @ ..] => {
            File::open(OsStr::from_bytes(path)).and_then(|file| file.take(readable).read_to_end(&mut bytes))
        }
        b"-" => {
            standard_streams::check_input().and_then(|()| io::stdin().lock().take(readable).read_to_end(&mut bytes))
        }
        text => return Ok(text.to_vec()),
    };
    let place = if argument == "-" { OsStr::new("standard input") } else { argument }.display();
    read.map_err(|error| Usage(format!("{place}: {error}")))?;
    if bytes.len() > REQUEST_LENGTH_MAX {
        return Err(Usage(format!("{place}: more than the 16 MiB that a request has at most")));
    }
    Ok(bytes)
}

/// A request that is JSON.
pub(crate) fn json_request(argument: &OsStr) -> Result<Json, Usage> {
    Json::new(request(argument)?).map_err(|error| {
        // A word that is no JSON and names a file is meant as one.
        let is_file = std::path::Path::new(argument).is_file();
        let tip = if is_file { format!("; @{} sends the file", argument.display()) } else { String::new() };
        Usage(format!("the request is no {error}{tip}"))
    })
}

/// `NAME=VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "NAME=VALUE is expected".to_owned())
}

/// The headers of a request of so many bytes.
pub(crate) fn headers(pairs: &[(String, String)], request_length: usize) -> Result<Headers, Usage> {
    let add =
        |headers: Headers, (name, value): &(String, String)| headers.with(name.clone(), value.as_bytes().to_vec());
    let headers = pairs.iter().fold(Headers::default(), add);
    let mut encoded = Vec::new();
    headers.encode(&mut encoded).map_err(|error| Usage(format!("--header: {error}")))?;
    let length = encoded.len().next_multiple_of(8) + request_length;
    if length > REQUEST_LENGTH_MAX {
        let reason = format!("the request and its headers have {length} bytes; at most 16 MiB are possible");
        return Err(Usage(reason));
    }
    Ok(headers)
}
