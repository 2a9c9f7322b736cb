//! `gapless broadcast`: calls every copy of a route; an outcome for each.

use super::call_end::{as_json, in_one_line};
use super::domain::{DomainArguments, about_options, ended, seconds};
use super::request::{RequestArguments, json_request, route};
use super::{Outcome, is_printed};
use crate::standard_streams;
use clap::Args;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Json, Reach};
use std::fmt::Write as _;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: RequestArguments,

    #[command(flatten)]
    domain: DomainArguments,

    /// Wait so long for the replies
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Duration,

    /// Print a JSON object for each copy: its process, and its reply or error
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    // Looked at first: a call whose reply nobody gets is not made.
    standard_streams::check_output()?;
    route(&arguments.asked.route)?;
    let request = json_request(&arguments.asked.request)?;
    let call = CallOptions { timeout: Some(arguments.timeout), ..CallOptions::default() };
    let options = CallerOptions { call, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let domain = arguments.domain.open()?;
    let caller: Caller<Json, Json> = domain.caller_with(&arguments.asked.route, options).map_err(about_options)?;
    let outcomes = caller.broadcast(&request);
    let outcomes = outcomes.map_err(|error| ended(in_one_line(&arguments.asked.route, &error, false)))?;
    let mut text = String::new();
    for (process_id, outcome) in &outcomes {
        // Writing to a string cannot fail.
        let _ = if arguments.json {
            writeln!(text, "{}", as_object(*process_id, outcome))
        } else {
            match outcome {
                Ok(reply) => writeln!(text, "{process_id} {}", without_breaks(reply)),
                Err(error) => {
                    writeln!(text, "{process_id} error: {}", in_one_line(&arguments.asked.route, error, false))
                }
            }
        };
    }
    is_printed(&text)?;
    let failed = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).count();
    if failed > 0 {
        return Err(ended(format!("{failed} of {} copies gave no reply", outcomes.len())));
    }
    Ok(())
}

/// A break of the line stands between JSON's words only.
fn without_breaks(reply: &Json) -> String {
    String::from_utf8_lossy(reply.text()).replace(['\n', '\r'], " ").trim().to_owned()
}

fn as_object(process_id: u32, outcome: &Result<Json, CallError>) -> String {
    match outcome {
        // As the copy wrote it: a number of any length stays what it is.
        Ok(reply) => format!("{{\"process_id\":{process_id},\"reply\":{}}}", without_breaks(reply)),
        Err(error) => {
            let mut object = as_json(error);
            object["process_id"] = process_id.into();
            object.to_string()
        }
    }
}
