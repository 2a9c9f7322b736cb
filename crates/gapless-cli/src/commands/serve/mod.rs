//! `gapless serve`: a program as the worker of a route: a process for each request.

mod worker;

use super::domain::{DomainArguments, about_options};
use super::watch::sleep_until;
use super::{Outcome, interrupt, print};
use clap::Args;
use gapless_rpc::domain::ServeReach;
use gapless_rpc::{CallContext, Json, Refusal, Rejection};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The route
    route: String,

    #[command(flatten)]
    domain: DomainArguments,

    /// Processes that run at one time
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=4_096))]
    workers: u16,

    /// The program reads and writes JSON; without this, bytes
    #[arg(long)]
    json: bool,

    /// What `gapless routes` shows as the version
    #[arg(long, value_name = "TEXT", default_value = "")]
    route_version: String,

    /// The program and its arguments: the request is its standard input, its standard output the reply
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Some((program, words)) = arguments.command.split_first() else { return Ok(()) };
    if !is_there(Path::new(program)) {
        return Err(format!("{}: no such program", program.display()).into());
    }
    let interrupted = interrupt()?;
    let domain = arguments.domain.open()?;
    let route = domain.serve(&arguments.route).workers(arguments.workers.into()).reach(ServeReach::Machine);
    let route = route.version(&arguments.route_version);
    let (program, words) = (program.clone(), words.to_vec());
    let work = move |request: &[u8], context: &CallContext| worker::run(&program, &words, request, context);
    let served = if arguments.json {
        route.handle(move |request: Json, context| {
            let reply = Json::new(work(request.text(), context)?);
            reply.map_err(|error| Rejection::from(Refusal::new(0, format!("what it has printed is no {error}"))))
        })
    } else {
        route.handle(move |request: Vec<u8>, context| Ok(work(&request, context)?))
    };
    let served = served.map_err(about_options)?;
    print(&format!("{} is served; Ctrl-C ends it when what has begun is done\n", arguments.route))?;
    // Relaxed: the flag guards no data.
    while sleep_until(Instant::now() + Duration::from_secs(60), || interrupted.load(Ordering::Relaxed)) {}
    served.drain();
    Ok(())
}

/// Whether a program can be started by that name: said at once, not with the first request.
fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 || program.is_absolute() {
        return program.is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder: PathBuf| folder.join(program)).any(|file| file.is_file())
}
