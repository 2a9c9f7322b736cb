//! `gapless call`: one call of a route, JSON to its handler and JSON back.

use super::call_end::in_one_line;
use super::domain::{DomainArguments, about_options, ended, seconds};
use super::request::{header, headers, json_request, request, route};
use super::{Outcome, closed_is_fine};
use crate::standard_streams;
use clap::Args;
use gapless_rpc::{CallOptions, Caller, CallerOptions, Headers, Message, Reach};
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The route
    route: String,

    /// The request: JSON, @FILE, or - for standard input
    #[arg(value_name = "JSON|@FILE|-", default_value = "null", allow_negative_numbers = true)]
    request: OsString,

    #[command(flatten)]
    domain: DomainArguments,

    /// Wait so long for the reply
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Duration,

    /// Wait so long for somebody who serves the route, as a part of the timeout
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    wait: Option<Duration>,

    /// Send the request as it is, and print the reply as it comes: for routes that take bytes
    #[arg(long)]
    bytes: bool,

    /// A header that goes with the request; as often as needed
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    // Looked at first: a call whose reply nobody gets is not made.
    standard_streams::check_output()?;
    route(&arguments.route)?;
    if arguments.bytes {
        let request = request(&arguments.request)?;
        let headers = headers(&arguments.header, request.len())?;
        return print(&call::<Vec<u8>>(arguments, request, headers)?, false);
    }
    let request = json_request(&arguments.request)?;
    let headers = headers(&arguments.header, request.text().len())?;
    print(call(arguments, request, headers)?.text().trim_ascii_end(), true)
}

fn call<M: Message>(arguments: &Arguments, request: M, headers: Headers) -> Result<M, Box<dyn Error>> {
    let wait = arguments.wait.map(|wait| wait.min(arguments.timeout));
    // The time that was waited for the domain is a part of both.
    let (domain, waited) = arguments.domain.open_within(wait.unwrap_or_default())?;
    let call = CallOptions {
        timeout: Some(arguments.timeout.saturating_sub(waited)),
        wait_for_route: wait.map(|wait| wait.saturating_sub(waited)),
        headers,
        ..CallOptions::default()
    };
    let options = CallerOptions { call, reach: Reach::Machine, ..CallerOptions::default() };
    let caller: Caller<M, M> = domain.caller_with(&arguments.route, options).map_err(about_options)?;
    caller.call(request).map_err(|error| ended(in_one_line(&arguments.route, &error, wait.is_none())))
}

fn print(reply: &[u8], is_line: bool) -> Outcome {
    let mut stdout = io::stdout().lock();
    let end: &[u8] = if is_line { b"\n" } else { b"" };
    closed_is_fine(stdout.write_all(reply).and_then(|()| stdout.write_all(end)).and_then(|()| stdout.flush()))?;
    Ok(())
}
