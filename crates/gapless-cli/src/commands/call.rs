//! `gapless call`: one call of a route, JSON to its handler and JSON back.

use super::call_end::{as_json, in_one_line};
use super::domain::{DomainArguments, exit_error, options_error, seconds};
use super::request::{RequestArguments, header, headers, json_request, request, route};
use super::{CommandResult, closed_is_fine};
use crate::standard_streams;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Headers, Message, Priority, Reach, Retry};
use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: RequestArguments,

    #[command(flatten)]
    domain: DomainArguments,

    /// Seconds to wait for the reply
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Duration,

    /// Seconds to wait for an instance of the route, within the timeout
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    wait: Option<Duration>,

    /// Send and print raw bytes, for routes that take bytes
    #[arg(long)]
    bytes: bool,

    /// Header of the request; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,

    /// Key of the call: calls of one key go to one instance while it takes requests
    #[arg(long, value_name = "NUMBER", value_parser = key, allow_hyphen_values = true)]
    key: Option<u64>,

    /// Priority among waiting requests
    #[arg(long, value_name = "CLASS", default_value = "normal", value_parser = PossibleValuesParser::new(PRIORITIES).map(|name| priority(&name)))]
    priority: Priority,

    /// Retry policy after the death of the instance
    #[arg(long, value_name = "WHEN", default_value = "not-begun", value_parser = PossibleValuesParser::new(RETRIES).map(|name| retry(&name)))]
    retry: Retry,

    /// Print one JSON object: the reply, or the error with kind, code and payload
    #[arg(long, conflicts_with = "bytes")]
    json: bool,
}

const PRIORITIES: [&str; 4] = ["urgent", "high", "normal", "low"];
const RETRIES: [&str; 3] = ["never", "not-begun", "always"];

fn key(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("0 to {} are possible", u64::MAX))
}

fn priority(name: &str) -> Priority {
    match name {
        "urgent" => Priority::Urgent,
        "high" => Priority::High,
        "low" => Priority::Low,
        _ => Priority::Normal,
    }
}

fn retry(name: &str) -> Retry {
    match name {
        "never" => Retry::Never,
        "always" => Retry::Always,
        _ => Retry::NotBegun,
    }
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    // A call whose reply cannot be printed is not made.
    standard_streams::check_output()?;
    route(&arguments.asked.route)?;
    if arguments.bytes {
        let request = request(&arguments.asked.request)?;
        let headers = headers(&arguments.header)?;
        return print(&call::<Vec<u8>>(arguments, request, headers)?, false);
    }
    let request = json_request(&arguments.asked.request)?;
    let headers = headers(&arguments.header)?;
    let reply = call(arguments, request, headers)?;
    if arguments.json {
        return print(&object_of(reply.text()), true);
    }
    print(reply.text().trim_ascii_end(), true)
}

fn call<M: Message>(arguments: &Arguments, request: M, headers: Headers) -> Result<M, Box<dyn Error>> {
    let wait = arguments.wait.map(|wait| wait.min(arguments.timeout));
    // The wait for the domain counts towards both limits.
    let (domain, waited) = arguments.domain.open_within(wait.unwrap_or_default())?;
    let call = CallOptions {
        timeout: Some(arguments.timeout.saturating_sub(waited)),
        wait_for_route: wait.map(|wait| wait.saturating_sub(waited)),
        headers,
        key: arguments.key,
        priority: arguments.priority,
        retry: arguments.retry,
        ..CallOptions::default()
    };
    let options = CallerOptions { call, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let caller: Caller<M, M> = domain.caller_with(&arguments.asked.route, options).map_err(options_error)?;
    caller.call(request).map_err(|error| no_reply(arguments, &error))
}

fn no_reply(arguments: &Arguments, error: &CallError) -> Box<dyn Error> {
    if arguments.json
        && let Err(unprinted) = print(as_json(error).to_string().as_bytes(), true)
    {
        return unprinted;
    }
    exit_error(in_one_line(&arguments.asked.route, error, arguments.wait.is_none()))
}

/// The reply is not parsed, since its numbers may have any length.
fn object_of(reply: &[u8]) -> Vec<u8> {
    [b"{\"reply\":", reply.trim_ascii(), b"}"].concat()
}

fn print(reply: &[u8], is_line: bool) -> CommandResult {
    let mut stdout = io::stdout().lock();
    let end: &[u8] = if is_line { b"\n" } else { b"" };
    closed_is_fine(stdout.write_all(reply).and_then(|()| stdout.write_all(end)).and_then(|()| stdout.flush()))?;
    Ok(())
}
