//! `gapless serve`: runs a program as the worker of a route, one process for each request.

pub(crate) mod guard;
mod guarding;
mod piped;
mod program;
mod worker;

use super::domain::{DomainArguments, options_error};
use super::request::route;
use super::watch::sleep_until;
use super::{CommandResult, ExitError, INTERRUPTED, announce, interrupts};
use clap::Args;
use gapless_agent::proc_folder;
use gapless_rpc::domain::ServeReach;
use gapless_rpc::{CallContext, Json, Refusal, Rejection};
use gapless_supervisor::SupervisorError;
use guarding::Guarding;
use piped::Piped;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the route
    route: String,

    #[command(flatten)]
    domain: DomainArguments,

    /// Maximum number of parallel processes
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = workers, allow_hyphen_values = true)]
    workers: u16,

    /// Require JSON from requests and replies [default: any bytes]
    #[arg(long)]
    json: bool,

    /// Version for `gapless routes`
    #[arg(long, value_name = "TEXT", default_value = "")]
    route_version: String,

    /// Program and its arguments; the request is its standard input, the reply its standard output
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The first interrupt lets begun requests finish.
const AT_ONCE: u32 = 2;
const KILLED_WITHIN: Duration = Duration::from_secs(5);
const GUARD_CHECK_INTERVAL: Duration = Duration::from_millis(100);

fn workers(text: &str) -> Result<u16, String> {
    let count = text.parse().ok().filter(|count| (1..=4_096).contains(count));
    count.ok_or_else(|| "1 to 4096 workers are possible".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let Some((program, words)) = arguments.command.split_first() else { return Ok(()) };
    route(&arguments.route)?;
    program::check(program)?;
    let interrupts = interrupts()?;
    // The guard identifies programs by `/proc`.
    proc_folder::check()?;
    let guard = Guarding::start().map_err(SupervisorError::io("starting the guard of its programs"))?;
    let guard = Arc::new(guard);
    look_after(&guard, &interrupts)?;
    let domain = arguments.domain.open_or_create()?;
    let route = domain.serve(&arguments.route).workers(arguments.workers.into()).reach(ServeReach::OtherProcesses);
    let route = route.version(&arguments.route_version);
    let (program, words) = (program.clone(), words.to_vec());
    let count = Arc::clone(&interrupts);
    let work = move |request: &[u8], context: &CallContext| {
        worker::run(&guard, (&program, &words), request, || {
            if count.load(Ordering::Relaxed) >= AT_ONCE {
                Some("its server was ended at once")
            } else {
                context.is_cancelled().then_some("its caller no longer waits")
            }
        })
    };
    let served = if arguments.json {
        route.handle(move |request: Json, context| {
            let reply = Json::new(work(request.text(), context)?);
            reply.map_err(|error| Rejection::from(Refusal::new(0, format!("what it has printed is no {error}"))))
        })
    } else {
        route.handle(move |Piped(request), context| Ok(Piped(work(&request, context)?)))
    };
    let served = served.map_err(options_error)?;
    announce(&format!("{} is served; Ctrl-C ends it when what has begun is done", arguments.route));
    let is_over = || interrupts.load(Ordering::Relaxed) > 0 || !served.is_served();
    while sleep_until(Instant::now() + Duration::from_secs(60), is_over) {}
    served.drain();
    if interrupts.load(Ordering::Relaxed) >= AT_ONCE {
        let reason = "interrupted twice: what had begun was killed".to_owned();
        return Err(ExitError { code: INTERRUPTED, reason }.into());
    }
    Ok(())
}

/// Ends the program some time after the second interrupt, even if its end hangs.
fn look_after(guard: &Arc<Guarding>, interrupts: &Arc<AtomicU32>) -> CommandResult {
    let (guard, interrupts) = (Arc::clone(guard), Arc::clone(interrupts));
    std::thread::Builder::new().name("gapless-guard".to_owned()).spawn(move || {
        let mut ends_at = None;
        loop {
            std::thread::sleep(GUARD_CHECK_INTERVAL);
            if let Some(said) = guard.check_guard() {
                let _ = writeln!(io::stderr(), "note: {said}");
            }
            if interrupts.load(Ordering::Relaxed) >= AT_ONCE
                && Instant::now() >= *ends_at.get_or_insert_with(|| Instant::now() + KILLED_WITHIN)
            {
                std::process::exit(INTERRUPTED.into());
            }
        }
    })?;
    Ok(())
}
