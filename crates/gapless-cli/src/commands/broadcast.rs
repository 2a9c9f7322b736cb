//! `gapless broadcast`: calls every instance of a route and prints an outcome for each.

use super::call_end::{as_json, in_one_line, shown};
use super::domain::{DomainArguments, exit_error, options_error, seconds};
use super::request::{RequestArguments, json_request, route};
use super::{CommandResult, is_printed};
use crate::standard_streams;
use clap::Args;
use gapless_rpc::caller::InstanceAddress;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Json, Reach};
use std::fmt::Write as _;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: RequestArguments,

    #[command(flatten)]
    domain: DomainArguments,

    /// Seconds to wait for the replies
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_hyphen_values = true)]
    timeout: Duration,

    /// Print a JSON object for each instance: its process, and its reply or error
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    // A call whose reply cannot be printed is not made.
    standard_streams::check_output()?;
    route(&arguments.asked.route)?;
    let request = json_request(&arguments.asked.request)?;
    let call = CallOptions { timeout: Some(arguments.timeout), ..CallOptions::default() };
    let options = CallerOptions { call, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let domain = arguments.domain.open()?;
    let caller: Caller<Json, Json> = domain.caller_with(&arguments.asked.route, options).map_err(options_error)?;
    let outcomes = caller.broadcast(&request);
    let outcomes = outcomes.map_err(|error| exit_error(in_one_line(&arguments.asked.route, &error, false)))?;
    let mut text = String::new();
    for (address, outcome) in &outcomes {
        let _ = if arguments.json {
            writeln!(text, "{}", as_object(address, outcome))
        } else {
            match outcome {
                Ok(reply) => writeln!(text, "{} {}", shown_address(address), without_breaks(reply)),
                Err(error) => {
                    let address = shown_address(address);
                    writeln!(text, "{address} error: {}", in_one_line(&arguments.asked.route, error, false))
                }
            }
        };
    }
    is_printed(&text)?;
    let failed = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).count();
    if failed > 0 {
        return Err(exit_error(format!("{failed} of {} instances gave no reply", outcomes.len())));
    }
    Ok(())
}

/// Line breaks occur only between JSON tokens.
fn without_breaks(reply: &Json) -> String {
    String::from_utf8_lossy(reply.text()).replace(['\n', '\r'], " ").trim().to_owned()
}

fn shown_address(address: &InstanceAddress) -> String {
    shown(&address.to_string())
}

fn as_object(address: &InstanceAddress, outcome: &Result<Json, CallError>) -> String {
    let (key, instance) = match address {
        InstanceAddress::Process(process_id) => ("process_id", serde_json::Value::from(*process_id)),
        InstanceAddress::Elsewhere(instance) => ("instance", instance.name.as_str().into()),
    };
    match outcome {
        // Copied as text: numbers may have any length.
        Ok(reply) => format!("{{\"{key}\":{instance},\"reply\":{}}}", without_breaks(reply)),
        Err(error) => {
            let mut object = as_json(error);
            object[key] = instance;
            object.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_rpc::relay::Instance;

    #[test]
    fn remote_instance_has_its_name() {
        let elsewhere = InstanceAddress::Elsewhere(Instance { identity: 7, name: "depot/\"1\"\n".to_owned() });
        let reply = Ok(Json::new("42").unwrap());
        assert_eq!(as_object(&elsewhere, &reply), r#"{"instance":"depot/\"1\"\n","reply":42}"#);
        assert_eq!(as_object(&InstanceAddress::Process(12), &reply), r#"{"process_id":12,"reply":42}"#);
        let object = as_object(&elsewhere, &Err(CallError::no_route("route")));
        assert!(
            object.contains(r#""instance":"depot/\"1\"\n""#) && object.contains(r#""kind":"no_route""#),
            "{object}"
        );
        assert_eq!(shown_address(&elsewhere).lines().count(), 1, "it is escaped");
    }
}
