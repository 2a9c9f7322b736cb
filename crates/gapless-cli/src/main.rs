//! Exit codes: 1 for errors, printed in one line; 2 for wrong options; 3 for a build slower than the one it is compared
//! with; 74 for a file truncated or removed during use. Some commands have further codes, listed in their help.

#![deny(unsafe_code)]

mod commands;
mod deferred;
#[cfg(test)]
mod documented_commands;
mod lost_file;
mod printable;
#[cfg(test)]
mod reference;
mod signals;
mod standard_streams;
mod warnings;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use deferred::Deferred;
use gapless_agent::lost_mappings::LOST_FILE;
use gapless_config::ConfigErrors;
use gapless_supervisor::supervision::event::OperatorCommand as Change;
use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use warnings::WarningMode;

/// Puts messages in one total order, never loses one, and runs services on them.
#[derive(Parser)]
#[command(name = "gapless", version, propagate_version = false, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure this machine with the canonical benchmark, or its parts one by one
    Bench(Deferred<commands::bench::Arguments>),
    /// Offer routes of this domain to other machines, and take theirs
    Bridge(Deferred<commands::bridge::Arguments>),
    /// Call every instance of a route, and print an outcome for each
    #[command(
        after_help = "Examples:\n  gapless serve who --json -- sh -c 'echo $PPID' & sleep 1\n  gapless broadcast who\n  gapless broadcast who --json | jq 'select(.error)'\n\nA line for each instance: its process id, and its reply or its error. Exit codes: 0 if every instance replied; 1 if one did not, or no process serves the route; 2 for errors in the command line or its files, before sending."
    )]
    Broadcast(Deferred<commands::broadcast::Arguments>),
    /// Call a route with JSON, and print the JSON reply
    #[command(
        after_help = "Examples:\n  gapless serve upper -- tr a-z A-Z &\n  gapless call upper '\"hello\"' --wait 2\n  echo hello | gapless call upper - --bytes\n  gapless call upper @/etc/passwd --bytes --timeout 0.5\n\nExit codes: 0 with a reply; 1 without one: refused, no instance, no such domain, too late, or a closed output; 2 for errors in the command line or its files, before sending."
    )]
    Call(Deferred<commands::call::Arguments>),
    /// Run and manage the members of a replicated stream
    Cluster(Deferred<commands::cluster::Arguments>),
    /// Read the counters of a running node: positions, repeats, refusals, dead letters
    #[command(
        after_help = "Examples:\n  gapless counters /var/lib/gapless/orders\n  gapless counters /var/lib/gapless/orders --watch 1\n  gapless counters /var/lib/gapless/orders --json | jq '.[\"service.last_sequence\"]'"
    )]
    Counters(Deferred<commands::counters::Arguments>),
    /// End all processes of a supervisor in reverse order, and the supervisor
    #[command(
        after_help = "Examples:\n  gapless down\n  gapless down --at floor.toml\n\nReturns when all processes have ended. Exit codes: 0; 1 if one could not be ended; 2 for errors in the command line."
    )]
    Down(Deferred<commands::supervisor::down::Arguments>),
    /// Print the events of a supervisor's instances; with a subcommand, of a command bus
    #[command(
        after_help = "Examples:\n  gapless events\n  gapless events -f\n  gapless events -n 1000 --at floor.toml --json | jq .instance\n  gapless events read /var/lib/gapless/bank --aggregate account/7\n\nWithout a subcommand, prints the last events of a supervisor, with -f also new ones. They are kept in `events.log` in the state directory, and can be read without a running supervisor. Exit codes: 0; 1 without any event; 2 for errors in the command line."
    )]
    Events(Deferred<commands::events::Arguments>),
    /// Check, print or follow the journal of a service, a stream or a member
    Journal(Deferred<commands::journal::Arguments>),
    /// Print the logs of a supervisor's instances
    #[command(
        after_help = "Examples:\n  gapless logs\n  gapless logs -f calculator\n  gapless logs calculator.2 -n 10 --at floor.toml\n  gapless logs --json | jq -r .line\n\nA log that reaches `log_bytes_max` of the file (64 MiB) is cut at its beginning, which is kept as NAME.1.log.1 and so on, `logs_kept` of them; -f continues after that. Exit codes: 0; 1 if no file is in force; 2 for errors in the command line."
    )]
    Logs(Deferred<commands::supervisor::logs::Arguments>),
    /// Show the processes of a supervisor: states, restarts, last exits
    #[command(
        after_help = "Examples:\n  gapless ps\n  gapless ps --watch\n  gapless ps --at floor.toml --json | jq '.instances[] | select(.state != \"ready\")'\n\nA line for each instance. CPU is percent of one core: since its start, with --watch since the previous sample. For instances with routes, CALLS are begun calls, and QUEUE is waiting calls (calls of other processes can go to any instance of the route, and count at each). The two times are the 50th and 99th percentile of the handlers. Several routes show the sum, and the times of the slowest; --json has each. If no supervisor runs, or it is silent for two seconds, `ps` says so, and shows the files of the state directory. Exit codes: 0 if each instance is ready, on standby or done, or an operator has stopped it; 1 if one is in another state, no supervisor runs, or it reports a problem; 2 for errors in the command line, also where this folder has no supervisor's state directory, or several with a file in force; 3 if no file is in force, or nothing was ever started at --at."
    )]
    Ps(Deferred<commands::supervisor::ps::Arguments>),
    /// Reload the file of a supervisor, or restart processes one instance at a time
    #[command(
        after_help = "Examples:\n  gapless reload\n  gapless reload calculator\n  gapless reload calculator.1               this instance only\n  gapless reload calculator matching --at floor.toml\n\nWithout a name the file is read again: added processes start, removed ones end, and changed ones restart. Errors in it are reported, and the previous file stays in force. A changed file is also read automatically, after a second. One instance ends at a time, while all others are ready; with overlap in the file, its successor is ready before. Stopped processes stay stopped. Returns when the reload has begun; `gapless ps` shows the progress. Exit codes: 0; 1 if it is refused; 2 for errors in the command line."
    )]
    Reload(Deferred<commands::supervisor::change::ReloadArguments>),
    /// End processes of a supervisor and start them again, all instances at once
    #[command(
        after_help = "Examples:\n  gapless restart calculator\n  gapless restart calculator.1              this instance only\n  gapless restart calculator --at floor.toml\n\nStopped instances start, too. Returns when the restart has begun. Exit codes: 0; 1 if it is refused; 2 for errors in the command line."
    )]
    Restart(Deferred<commands::supervisor::change::NamedArguments>),
    /// List the routes that processes serve: state, instances, workers, versions, types
    #[command(
        after_help = "Examples:\n  gapless routes\n  gapless routes --domain default --watch\n  gapless routes --types\n  gapless routes --json | jq '.[] | select(.state != \"open\")'\n  gapless routes suspend some\n  gapless routes resume some\n\nPrints a line for each route, version, types and state, with their instances; with --types one for each type. A bridge for instances of other machines has a line of its own, with their names after `for`. A route named like a subcommand needs a `/` after its name. Exit codes: 0; 1 if there is no such domain or it cannot be read; 2 for errors in the command line."
    )]
    Routes(Deferred<commands::routes::Arguments>),
    /// Set the number of instances of a process
    #[command(
        after_help = "Examples:\n  gapless scale calculator=4\n  gapless scale calculator=4 matching=1 --at floor.toml\n\nThe file limits the number. Returns when the change has begun. Exit codes: 0; 1 if it is refused; 2 for errors in the command line."
    )]
    Scale(Deferred<commands::supervisor::change::ScaleArguments>),
    /// Generate Rust and protobuf from SBE schemas, or check them
    Schema(Deferred<commands::schema::Arguments>),
    /// Serve a route with a program: a process for each request
    #[command(
        after_help = "Examples:\n  gapless serve upper --workers 4 -- tr a-z A-Z\n  gapless serve lines --route-version 1.0 -- wc -l\n  gapless serve sum --json -- jq add\n\nThe request is the program's standard input, its standard output the reply. An exit code other than 0 is a refusal with that code, and standard error is its text. The process of a request ends if its caller stops waiting. Ctrl-C lets running requests finish; a second one kills them. SIGTERM acts as Ctrl-C. Exit codes: 0 after one of them, 130 after two; 1 if it cannot serve, 75 if it lacks room, memory or descriptors; 2 for errors in the command line, also a program that cannot be started."
    )]
    Serve(Deferred<commands::serve::Arguments>),
    /// Start processes of a supervisor that were stopped or are held
    #[command(
        after_help = "Examples:\n  gapless start calculator\n  gapless start calculator.1                this instance only\n  gapless start calculator matching --at floor.toml\n\nEarlier failures no longer count. Returns when the start has begun. Exit codes: 0; 1 if it is refused; 2 for errors in the command line."
    )]
    Start(Deferred<commands::supervisor::change::NamedArguments>),
    /// Stop processes of a supervisor until they are started again
    #[command(
        after_help = "Examples:\n  gapless stop calculator\n  gapless stop calculator.1                 this instance only\n  gapless stop calculator matching --at floor.toml\n\nA single stopped instance still counts for `gapless scale`, and is not replaced. Stopped processes stay stopped, also after a new supervisor or a changed file, until `gapless start`, `restart` or `up`. Returns when the stop has begun. Exit codes: 0; 1 if it is refused; 2 for errors in the command line."
    )]
    Stop(Deferred<commands::supervisor::change::NamedArguments>),
    /// Run a stream, publish into it, read it
    Stream(Deferred<commands::stream::Arguments>),
    /// Watch nodes and members of a cluster: roles, sequences, lags, counters and their rates
    #[command(
        after_help = "Examples:\n  gapless top --domain default           the routes that are served and called\n  gapless top --domain default --once\n  gapless top /var/lib/gapless/orders\n  gapless top orders                     every member of a cluster of `gapless cluster new orders`\n  gapless top orders --once\n  gapless top orders --json --interval 5 | jq '.directories[].per_s'\n\nOn a terminal: up and down select a directory, Page Up and Page Down scroll its counters or routes, q or Ctrl-C ends. If the input or the output is no terminal, the text of --once is printed again at each interval."
    )]
    Top(Deferred<commands::top::Arguments>),
    /// Start the processes of a file in order, under a supervisor
    #[command(
        after_help = "Examples:\n  gapless up floor.toml\n  gapless up floor.toml --within 10\n  gapless up floor.toml --foreground     as systemd and containers want it\n\nPrints the progress of each instance, and returns when all are ready, or lists the unready ones. A running supervisor replaces its file by this one; without one, running processes are taken over with their counts. A changed file is applied automatically, after a second; if it has errors, `gapless ps` reports them, and the previous one stays. Logs stay below `log_bytes_max` (64 MiB), of which `logs_kept` (1) older files are kept. If the supervisor may create control groups (version 2), each instance has one, and its forks end with it. `gapless validate --help` names all keys. SIGTERM to the guardian (`gapless-guard` in `ps -e`) ends everything, as `gapless down` does; SIGTERM to the supervisor ends only it, and another one takes its place. With --foreground the command stays: SIGTERM or Ctrl-C ends everything, a second one only the command, SIGHUP reloads the file. It reports progress to NOTIFY_SOCKET, reaps orphans as process 1, and its own death stops no process. Exit codes: 0, with --foreground when everything has ended; 1 for errors in the file, or if not all are ready; 130 after two signals; 2 for errors in the command line."
    )]
    Up(Deferred<commands::supervisor::up::Arguments>),
    /// Check the file that names the processes of a supervisor
    #[command(
        after_help = "Examples:\n  gapless validate floor.toml\n  gapless validate floor.toml --json | jq '.processes[].name'\n\nPrints a line for each process, and starts none. All errors are reported, one per line in the order of the file; with --json also as `errors`.\n\nKeys of [supervisor]: directory, domain, group, steer, cpus, log_bytes_max, logs_kept. Of [process.NAME]: command, environment, secrets, folder, input, user, instances, cpus, after, ready, ready_within, memory_max, files_max, core_max, once, singleton, log_folder; and in tables of their own restart (policy, backoff_first, backoff_max, restarts_max, within, healthy_after), stop (signal, grace), reload (program, input, file, overlap), ping (route, every, within, failures_max). docs/guides/supervisor.toml shows each with its default.\n\nExit codes: 0; 1 for errors in the file, each with its line and the allowed values; 2 for errors in the command line."
    )]
    Validate(Deferred<commands::validate::Arguments>),
}

const WRONG_OPTIONS: u8 = 2;
const SLOWER: u8 = 3;

fn main() -> ExitCode {
    // Without it the program ends, too, but with a less specific error.
    let _kernel_refuses = gapless_agent::lost_mappings::name_lost_mappings();
    signals::survive_file_size_limit();
    if let Some(done) = run_own_role() {
        return code_of(done);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    warnings::begin(match &arguments.command {
        Command::Broadcast(_) | Command::Call(_) | Command::Routes(_) => WarningMode::Held,
        Command::Bridge(arguments) if arguments.is_status() => WarningMode::Held,
        Command::Serve(_) => WarningMode::Noted,
        _ => WarningMode::Logged,
    });
    code_of(match arguments.command {
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Bridge(arguments) => commands::bridge::run(&arguments),
        Command::Broadcast(arguments) => commands::broadcast::run(&arguments),
        Command::Call(arguments) => commands::call::run(&arguments),
        Command::Cluster(arguments) => commands::cluster::run(&arguments),
        Command::Counters(arguments) => commands::counters::run(&arguments),
        Command::Down(arguments) => commands::supervisor::down::run(&arguments),
        Command::Events(arguments) => commands::events::run(&arguments),
        Command::Journal(arguments) => commands::journal::run(&arguments),
        Command::Logs(arguments) => commands::supervisor::logs::run(&arguments),
        Command::Ps(arguments) => commands::supervisor::ps::run(&arguments),
        Command::Reload(arguments) => commands::supervisor::change::run_reload(&arguments),
        Command::Restart(arguments) => commands::supervisor::change::run(&arguments, Change::Restart),
        Command::Routes(arguments) => commands::routes::run(&arguments),
        Command::Scale(arguments) => commands::supervisor::change::run_scale(&arguments),
        Command::Schema(arguments) => commands::schema::run(&arguments),
        Command::Serve(arguments) => commands::of_host(commands::serve::run(&arguments)),
        Command::Start(arguments) => commands::supervisor::change::run(&arguments, Change::Start),
        Command::Stop(arguments) => commands::supervisor::change::run(&arguments, Change::Stop),
        Command::Stream(arguments) => commands::stream::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Up(arguments) => commands::supervisor::up::run(&arguments),
        Command::Validate(arguments) => commands::validate::run(&arguments),
    })
}

/// There may be many such processes, and parsing the commands of people takes megabytes.
fn run_own_role() -> Option<commands::CommandResult> {
    let mut words = env::args_os().skip(1);
    let command = words.next()?;
    let run: fn(&[OsString]) -> commands::CommandResult = match command.to_str()? {
        commands::supervisor::role::COMMAND => commands::supervisor::role::run,
        commands::serve::guard::COMMAND => |_| commands::serve::guard::run(),
        _ => return None,
    };
    warnings::begin(WarningMode::Logged);
    Some(run(&words.collect::<Vec<_>>()))
}

fn code_of(done: commands::CommandResult) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let reasons = warnings::take().iter().map(|reason| format!("; {reason}")).collect::<String>();
            match error.downcast_ref::<ConfigErrors>() {
                Some(errors) => errors.iter().for_each(|error| print_error(&error.to_string())),
                None => print_error(&format!("{error}{reasons}")),
            }
            let is_usage = error.is::<commands::UsageError>()
                || error.downcast_ref().is_some_and(gapless_bench::BenchError::is_about_options);
            if let Some(ended) = error.downcast_ref::<commands::ExitError>() {
                return ExitCode::from(ended.code);
            }
            match error.downcast_ref() {
                Some(gapless_bench::BenchError::Slower(..)) => ExitCode::from(SLOWER),
                _ if is_usage => ExitCode::from(WRONG_OPTIONS),
                _ if lost_file::is_reason_of(&*error) => ExitCode::from(LOST_FILE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn refuse(error: &clap::Error) -> ExitCode {
    let is_an_answer = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_an_answer {
        if let Err(unwritten) = commands::closed_is_fine(error.print()) {
            print_error(&unwritten.to_string());
            return ExitCode::FAILURE;
        }
        return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let text = error.render().to_string();
    let words: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let line = words.into_iter().flat_map(str::split_whitespace).map(truncated).collect::<Vec<_>>().join(" ");
    print_error(&format!("{}; --help lists the options", line.strip_prefix("error: ").unwrap_or(&line)));
    ExitCode::from(WRONG_OPTIONS)
}

fn truncated(word: &str) -> Cow<'_, str> {
    const LENGTH_MAX: usize = 200;
    match word.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &word[..end], word.len()).into(),
        None => word.into(),
    }
}

/// Escapes and cuts the text: it contains file names and text from peers.
fn print_error(error: &str) {
    const LENGTH_MAX: usize = 8 << 10;
    let mut line = String::from("gapless: ");
    for (at, letter) in error.char_indices() {
        if line.len() >= LENGTH_MAX {
            line.push_str(&format!(" … and {} bytes more", error.len() - at));
            break;
        }
        printable::push(&mut line, letter);
    }
    // A closed stderr is ignored; the exit code shows the error, too.
    let _ = writeln!(io::stderr(), "{line}");
}
