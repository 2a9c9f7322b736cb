//! `gapless call`: one call of a route, JSON to its handler and JSON back.

use super::domain::{DomainArguments, about_options, ended, request, seconds};
use super::{Outcome, Usage, closed_is_fine};
use clap::Args;
use gapless_rpc::{CallOptions, Caller, CallerOptions, Headers, Json, Message, Reach};
use std::io::{self, Write as _};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The route
    route: String,

    /// The request: JSON, @FILE, or - for standard input
    #[arg(value_name = "JSON|@FILE|-", default_value = "null", allow_hyphen_values = true)]
    request: String,

    #[command(flatten)]
    domain: DomainArguments,

    /// Wait so long for the reply
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,

    /// Wait so long for somebody who serves the route, as a part of the timeout
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,

    /// Send the request as it is, and print the reply as it comes: for routes that take bytes
    #[arg(long)]
    bytes: bool,

    /// A header that goes with the request; as often as needed
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "NAME=VALUE is expected".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let request = request(&arguments.request)?;
    if arguments.bytes {
        return print(&call::<Vec<u8>>(arguments, request)?, false);
    }
    let json = Json::new(request).map_err(|error| Usage(format!("the request is no {error}")))?;
    print(call(arguments, json)?.text().trim_ascii_end(), true)
}

fn call<M: Message>(arguments: &Arguments, request: M) -> Result<M, Box<dyn std::error::Error>> {
    let headers = arguments
        .header
        .iter()
        .fold(Headers::default(), |headers, (name, value)| headers.with(name.clone(), value.as_bytes().to_vec()));
    let call = CallOptions {
        timeout: Some(arguments.timeout),
        wait_for_route: arguments.wait,
        headers,
        ..CallOptions::default()
    };
    let options = CallerOptions { call, reach: Reach::Machine, ..CallerOptions::default() };
    let domain = arguments.domain.open()?;
    let caller: Caller<M, M> = domain.caller_with(&arguments.route, options).map_err(about_options)?;
    caller.call(request).map_err(ended)
}

fn print(reply: &[u8], is_line: bool) -> Outcome {
    let mut stdout = io::stdout().lock();
    let end: &[u8] = if is_line { b"\n" } else { b"" };
    closed_is_fine(stdout.write_all(reply).and_then(|()| stdout.write_all(end)).and_then(|()| stdout.flush()))?;
    Ok(())
}
