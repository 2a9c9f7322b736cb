//! The `gapless` program: one file for each subcommand under [`commands`], no logic of its own.
//!
//! Errors are printed in one line and end the program with 1; wrong options end it with 2, a build that is slower than the
//! one that it is compared with with 3; `journal verify` has codes of its own, which its help lists.

#![deny(unsafe_code)]

mod commands;
#[cfg(test)]
mod documented_commands;
mod hang_up;
mod standard_streams;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

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
    Bench(commands::bench::Arguments),
    /// Call every copy of a route, and print an outcome for each
    #[command(
        after_help = "Examples:\n  gapless serve who --json -- sh -c 'echo $PPID' & sleep 1\n  gapless broadcast who\n  gapless broadcast who --json | jq 'select(.error)'\n\nA line for each copy: its process id, and its reply or its error. Exit codes: 0 if every copy replied; 1 if one did not, or nobody serves the route; 2 for what is wrong in the command line or its files, before anything is sent."
    )]
    Broadcast(commands::broadcast::Arguments),
    /// Call a route: JSON to its handler, and JSON back
    #[command(
        after_help = "Examples:\n  gapless serve upper -- tr a-z A-Z &\n  gapless call upper '\"hello\"' --wait 2\n  echo hello | gapless call upper - --bytes\n  gapless call upper @/etc/passwd --bytes --timeout 0.5\n\nExit codes: 0 with a reply; 1 without one: refused, no copy, no such domain, too late, or nobody to print it for; 2 for what is wrong in the command line or its files, before anything is sent."
    )]
    Call(commands::call::Arguments),
    /// Run a replicated stream: its members, how they stand, who leads
    Cluster(commands::cluster::Arguments),
    /// Read the counters of a running node: positions, repeats, refusals, dead letters
    #[command(
        after_help = "Examples:\n  gapless counters /var/lib/gapless/orders\n  gapless counters /var/lib/gapless/orders --watch 1\n  gapless counters /var/lib/gapless/orders --json | jq '.[\"service.last_sequence\"]'"
    )]
    Counters(commands::counters::Arguments),
    /// Look into the journal of a service, a stream or a member: check it, print it, follow it
    Journal(commands::journal::Arguments),
    /// List the routes that processes serve: state, copies, workers, versions, types
    #[command(
        after_help = "Examples:\n  gapless routes\n  gapless routes --domain default --watch\n  gapless routes --json | jq '.[] | select(.state != \"open\")'\n\nA line for each route, version, types and state, with the copies that have them in common. Exit codes: 0; 1 if there is no such domain or it cannot be read; 2 for what is wrong in the command line."
    )]
    Routes(commands::routes::Arguments),
    /// Generate Rust and protobuf from SBE schemas, or check them
    Schema(commands::schema::Arguments),
    /// Serve a route with a program: a process for each request
    #[command(
        after_help = "Examples:\n  gapless serve upper --workers 4 -- tr a-z A-Z\n  gapless serve lines --route-version 1.0 -- wc -l\n  gapless serve sum --json -- jq add\n\nThe request is the program's standard input, its standard output the reply. Another exit code than 0 is a refusal with that code, and standard error is its text. A request whose caller no longer waits ends its process. Ctrl-C lets what has begun finish; a second one kills it. SIGTERM is as Ctrl-C. Exit codes: 0 after one of them, 130 after two; 1 if it cannot serve; 2 for what is wrong in the command line, also a program that cannot be started."
    )]
    Serve(commands::serve::Arguments),
    /// Ends with a server, and ends what it leaves
    #[command(name = commands::serve::guard::COMMAND, hide = true)]
    ServeGuard,
    /// Run a stream, publish into it, read it
    Stream(commands::stream::Arguments),
    /// Watch nodes and members of a cluster: roles, sequences, lags, counters and their rates
    #[command(
        after_help = "Examples:\n  gapless top --domain default           the routes that are served and called\n  gapless top --domain default --once\n  gapless top /var/lib/gapless/orders\n  gapless top orders                     every member of a cluster of `gapless cluster new orders`\n  gapless top orders --once\n  gapless top orders --json --interval 5 | jq '.directories[].per_s'\n\nOn a terminal: up and down select a directory, Page Up and Page Down scroll its counters or routes, q or Ctrl-C ends. If the input or the output is no terminal, the text of --once is printed again at each interval."
    )]
    Top(commands::top::Arguments),
}

const WRONG_OPTIONS: u8 = 2;
/// A comparison of two builds found the second one slower.
const SLOWER: u8 = 3;

fn main() -> ExitCode {
    // Warnings of the engine go to stderr; standard output belongs to results.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()))
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let done = match arguments.command {
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Broadcast(arguments) => commands::broadcast::run(&arguments),
        Command::Call(arguments) => commands::call::run(&arguments),
        Command::Cluster(arguments) => commands::cluster::run(&arguments),
        Command::Counters(arguments) => commands::counters::run(&arguments),
        Command::Journal(arguments) => commands::journal::run(&arguments),
        Command::Routes(arguments) => commands::routes::run(&arguments),
        Command::Schema(arguments) => commands::schema::run(&arguments),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::ServeGuard => commands::serve::guard::run(),
        Command::Stream(arguments) => commands::stream::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&error.to_string());
            let is_usage = error.is::<commands::Usage>()
                || error.downcast_ref().is_some_and(gapless_bench::BenchError::is_about_options);
            if let Some(ended) = error.downcast_ref::<commands::Ended>() {
                return ExitCode::from(ended.code);
            }
            match error.downcast_ref() {
                Some(gapless_bench::BenchError::Slower(..)) => ExitCode::from(SLOWER),
                _ if is_usage => ExitCode::from(WRONG_OPTIONS),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// Help and version as they are; an error in the options in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_an_answer = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_an_answer {
        if let Err(unwritten) = commands::closed_is_fine(error.print()) {
            say(&unwritten.to_string());
            return ExitCode::FAILURE;
        }
        return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let text = error.render().to_string();
    // Everything before the usage: the error, the possible values, a tip.
    let words: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let line = words.into_iter().flat_map(str::split_whitespace).map(cut).collect::<Vec<_>>().join(" ");
    say(&format!("{}; --help lists the options", line.strip_prefix("error: ").unwrap_or(&line)));
    ExitCode::from(WRONG_OPTIONS)
}

/// A word of the command line as an error repeats it.
fn cut(word: &str) -> Cow<'_, str> {
    const LENGTH_MAX: usize = 200;
    match word.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &word[..end], word.len()).into(),
        None => word.into(),
    }
}

/// An error in one line, without what would move a terminal's cursor, and not for pages: names of files and words of others are in it.
fn say(error: &str) {
    const LENGTH_MAX: usize = 8 << 10;
    let mut line = String::from("gapless: ");
    for (at, letter) in error.char_indices() {
        if line.len() >= LENGTH_MAX {
            line.push_str(&format!(" … and {} bytes more", error.len() - at));
            break;
        }
        if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    // A closed stderr is no error here, and the exit code says it, too.
    let _ = writeln!(io::stderr(), "{line}");
}
