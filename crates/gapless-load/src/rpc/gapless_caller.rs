//! A caller of Gapless, driven like the callers of other systems.

use super::failed;
use crate::Result;
use crate::peers::PeerError;
use crate::peers::subject::{self, REPLY_TIME_MAX, WaitMode};
use gapless_rpc::{Call, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Reach};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

pub struct GaplessCaller {
    caller: Caller<Vec<u8>, Vec<u8>>,
    /// Calls in flight with tickets, oldest first.
    calls: VecDeque<(u64, Call<Vec<u8>>)>,
}

pub fn waiting_of(waiting: WaitMode) -> gapless_rpc::Waiting {
    match waiting {
        WaitMode::Blocking => gapless_rpc::Waiting::Park,
        WaitMode::Spinning => gapless_rpc::Waiting::Spin,
    }
}

pub fn open(directory: &Path) -> Result<Domain> {
    Domain::open_directory(directory, DomainOptions::default()).map_err(failed)
}

impl GaplessCaller {
    /// Opens its own domain, like a separate process: nothing is shared with other callers.
    ///
    /// # Errors
    /// A directory that is no domain; a route that is not served.
    pub fn connect(directory: &Path, route: &str, waiting: WaitMode) -> Result<Self> {
        let patient = CallOptions { timeout: Some(REPLY_TIME_MAX), ..CallOptions::default() };
        let options = CallerOptions {
            call: patient.clone(),
            waiting: waiting_of(waiting),
            reach: Reach::OtherProcesses,
            ..CallerOptions::default()
        };
        let caller = open(directory)?.caller_with(route, options).map_err(failed)?;
        // The first call announces the caller's table to the servers; they rest, so it is cancelled before it begins.
        let mut first: Call<Vec<u8>> =
            caller.start_with(Vec::new(), &CallOptions { wait_for_route: Some(REPLY_TIME_MAX), ..patient });
        let begun = Instant::now();
        while caller.statistics().offered == 0 {
            match first.try_take() {
                Some(Err(error)) => return Err(failed(error)),
                _ if begun.elapsed() > REPLY_TIME_MAX => return Err(failed("nobody has taken the caller's table")),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Ok(Self { caller, calls: VecDeque::new() })
    }
}

impl subject::PeerCaller for GaplessCaller {
    fn begin(&mut self, ticket: u64, request: &[u8]) -> crate::peers::Result<()> {
        self.calls.push_back((ticket, self.caller.start(request.to_vec())));
        Ok(())
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> crate::peers::Result<()> {
        // One worker answers in order.
        let Some((ticket, call)) = self.calls.pop_front() else { return Ok(()) };
        take(ticket, &call.wait().map_err(not_a_reply)?);
        while let Some((ticket, call)) = self.calls.front_mut()
            && let Some(outcome) = call.try_take()
        {
            take(*ticket, &outcome.map_err(not_a_reply)?);
            self.calls.pop_front();
        }
        Ok(())
    }

    fn send(&mut self, message: &[u8]) -> crate::peers::Result<()> {
        self.caller.send(message.to_vec()).map_err(not_a_reply)
    }

    fn flush(&mut self) -> crate::peers::Result<()> {
        // Offered messages are sent already.
        Ok(())
    }
}

fn not_a_reply(error: CallError) -> PeerError {
    PeerError::Protocol { protocol: "gapless", expected: "a reply".to_owned(), found: error.to_string() }
}
