//! `gapless bridge status`: status of the running bridges of a domain, asked on their hidden route.

use super::StatusArguments;
use super::text::in_text;
use crate::commands::call_end::{as_json, in_one_line, shown};
use crate::commands::domain::options_error;
use crate::commands::watch::{clear, sleep_until};
use crate::commands::{CommandResult, ExitError, NOT_RUNNING, UNHEALTHY, interrupt, is_printed, to_stderr};
use gapless_kafka::status::{BridgePhase, BridgeStatus, STATUS_ROUTE};
use gapless_rpc::domain::KnownRoutes;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, Json, Reach};
use gapless_transport::peer_process::PeerProcess;
use serde_json::{Value, json};
use std::error::Error;
use std::sync::atomic::Ordering;
use std::time::Instant;

struct BridgeAnswer {
    process_id: u32,
    status: Result<(BridgeStatus, Value), CallError>,
}

#[derive(Default)]
struct BridgeStatuses {
    answers: Vec<BridgeAnswer>,
    /// Serving processes of unknown routes.
    silent: Vec<u32>,
}

pub(super) fn run(arguments: &StatusArguments) -> CommandResult {
    let domain = arguments.domain.open()?;
    let call = CallOptions { timeout: Some(arguments.timeout), ..CallOptions::default() };
    let options = CallerOptions { call, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let caller: Caller<Json, Json> = domain.caller_with(STATUS_ROUTE, options).map_err(options_error)?;
    let interrupted = arguments.watch.map(|_| interrupt()).transpose()?;
    let mut is_again = false;
    loop {
        let now = Instant::now();
        let reading = read(arguments, &domain, &caller)?;
        let text = if arguments.json { in_json(&reading) } else { in_text(reading.statuses()) };
        let clear = clear(is_again && !arguments.json);
        if !is_printed(&format!("{clear}{text}"))? {
            return Ok(());
        }
        is_again = true;
        let (Some(interval), Some(interrupted)) = (arguments.watch, &interrupted) else {
            return reading.end(arguments, domain.name());
        };
        reading.faults().iter().for_each(|fault| to_stderr!("note: {fault}"));
        if !sleep_until(now + interval, || interrupted.load(Ordering::Relaxed)) {
            return Ok(());
        }
    }
}

fn read(
    arguments: &StatusArguments,
    domain: &Domain,
    caller: &Caller<Json, Json>,
) -> Result<BridgeStatuses, Box<dyn Error>> {
    let KnownRoutes { routes, silent_processes: silent } = domain.routes(arguments.timeout)?;
    let bridges = routes.iter().filter(|route| route.route == STATUS_ROUTE).map(|route| route.process_id);
    let bridges: Vec<u32> = bridges.collect();
    if bridges.is_empty() {
        return Ok(BridgeStatuses { answers: Vec::new(), silent });
    }
    let outcomes: Vec<(u32, Result<Json, CallError>)> = match caller.broadcast(&Json::new("null")?) {
        Ok(outcomes) => {
            outcomes.into_iter().filter_map(|(address, outcome)| Some((address.process_id()?, outcome))).collect()
        }
        Err(CallError::NoRoute { .. }) => Vec::new(),
        Err(error) => bridges.into_iter().map(|process_id| (process_id, Err(error.clone()))).collect(),
    };
    let answers = outcomes
        .into_iter()
        .map(|(process_id, outcome)| BridgeAnswer { process_id, status: outcome.and_then(|reply| decoded(&reply)) });
    let is_meant = |answer: &BridgeAnswer| match (&answer.status, &arguments.name) {
        (Ok((status, _)), Some(name)) => status.name == *name,
        _ => true,
    };
    let answers: Vec<_> = answers.filter(is_meant).collect();
    let silent = silent.into_iter().filter(|silent| answers.iter().all(|answer| answer.process_id != *silent));
    Ok(BridgeStatuses { silent: silent.collect(), answers })
}

fn decoded(reply: &Json) -> Result<(BridgeStatus, Value), CallError> {
    let bad = |error: serde_json::Error| CallError::BadMessage {
        route: STATUS_ROUTE.to_owned(),
        reason: format!("the status of another version of this program: {error}"),
    };
    let value: Value = serde_json::from_slice(reply.text()).map_err(bad)?;
    Ok((serde_json::from_value(value.clone()).map_err(bad)?, value))
}

impl BridgeStatuses {
    fn statuses(&self) -> impl Iterator<Item = &BridgeStatus> {
        self.answers.iter().filter_map(|answer| answer.status.as_ref().ok().map(|(status, _)| status))
    }

    fn faults(&self) -> Vec<String> {
        let of_answers = self.answers.iter().filter_map(|answer| match &answer.status {
            Ok((status, _)) => fault(status),
            Err(CallError::TimedOut { .. }) => Some(PeerProcess::numbered(answer.process_id).silence()),
            Err(error) => Some(format!("process {}: {}", answer.process_id, in_one_line(STATUS_ROUTE, error, false))),
        });
        let silent = self.silent.iter().map(|process_id| PeerProcess::numbered(*process_id).silence());
        of_answers.chain(silent).collect()
    }

    fn end(&self, arguments: &StatusArguments, domain: &str) -> CommandResult {
        let faults = self.faults();
        if self.answers.is_empty() {
            let which =
                arguments.name.as_ref().map_or_else(|| "no bridge".to_owned(), |name| format!("no bridge {name}"));
            if faults.is_empty() {
                let reason = shown(&format!("{which} runs in the domain {domain}"));
                return Err(ExitError { code: NOT_RUNNING, reason }.into());
            }
            let reason = shown(&format!("{which} answers in the domain {domain}: {}", faults.join("; ")));
            return Err(ExitError { code: UNHEALTHY, reason }.into());
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(ExitError { code: UNHEALTHY, reason: faults.join("; ") }.into()),
        }
    }
}

fn fault(status: &BridgeStatus) -> Option<String> {
    let reason = status.broker.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let words = match (status.phase, status.broker.is_connected) {
        (BridgePhase::Serving, true) => return None,
        (BridgePhase::Serving, false) => format!("has lost its broker{reason}"),
        (phase, _) => format!("is {}{reason}", phase.as_str()),
    };
    Some(shown(&format!("bridge {} {words}", status.name)))
}

fn in_json(reading: &BridgeStatuses) -> String {
    let answers = reading.answers.iter().map(|answer| match &answer.status {
        Ok((_, value)) => value.clone(),
        Err(error) => {
            let mut object = as_json(error);
            object["process_id"] = answer.process_id.into();
            object
        }
    });
    let silent = reading.silent.iter().map(|process_id| {
        json!({ "process_id": process_id, "kind": "silent", "error": PeerProcess::numbered(*process_id).silence() })
    });
    format!("{}\n", Value::Array(answers.chain(silent).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bridge::text::tests::status;
    use std::time::Duration;

    #[test]
    fn missing_broker_is_a_fault() {
        let mut known = status();
        assert_eq!(fault(&known), None);
        (known.broker.is_connected, known.broker.reason) = (false, Some("connect: refused\n".to_owned()));
        assert_eq!(fault(&known).as_deref(), Some("bridge berlin has lost its broker: connect: refused\\n"));
        known.phase = BridgePhase::Starting;
        assert_eq!(fault(&known).as_deref(), Some("bridge berlin is starting: connect: refused\\n"));
    }

    #[test]
    fn missing_answer_is_in_json() {
        let timed_out = CallError::TimedOut {
            route: STATUS_ROUTE.to_owned(),
            after: Duration::from_secs(3),
            begun: false,
            not_taken_by: Vec::new(),
        };
        let reading =
            BridgeStatuses { answers: vec![BridgeAnswer { process_id: 7, status: Err(timed_out) }], silent: vec![9] };
        let objects: Value = serde_json::from_str(&in_json(&reading)).unwrap();
        assert_eq!((&objects[0]["process_id"], &objects[0]["kind"]), (&json!(7), &json!("timed_out")));
        assert_eq!((&objects[1]["process_id"], &objects[1]["kind"]), (&json!(9), &json!("silent")));
        assert_eq!(reading.faults().len(), 2);
    }
}
