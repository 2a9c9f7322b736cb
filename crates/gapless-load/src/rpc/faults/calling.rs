//! The calling end of Gapless: calls that wait for an instance of the route.

use super::serving::ROUTE;
use super::traffic::FaultCaller;
use crate::rpc::failed;
use gapless_measure::Result;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, Reach, Retry};
use std::time::Duration;

/// Longer than a process takes to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn caller_of(domain: &Domain, retry: Retry) -> Result<Caller<Vec<u8>, Vec<u8>>> {
    let call = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), retry, ..CallOptions::default() };
    let options = CallerOptions { call, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    domain.caller_with(ROUTE, options).map_err(failed)
}

impl FaultCaller for Caller<Vec<u8>, Vec<u8>> {
    fn call(&mut self, request: &[u8], answer: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
        *answer = Caller::call(self, request.to_vec()).map_err(|error: CallError| error.kind())?;
        Ok(())
    }
}
