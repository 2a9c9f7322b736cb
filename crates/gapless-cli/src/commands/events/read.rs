//! `gapless events read`.

use super::selecting::EventFilters;
use super::{form, open};
use crate::commands::pipe::{discard_output, is_reader_gone};
use crate::commands::{CommandResult, closed_is_fine, interrupt, to_stderr};
use clap::Args;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a command bus, or of a member that runs one
    directory: PathBuf,
    #[command(flatten)]
    filters: EventFilters,
    /// Follow new events until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Maximum number of events
    #[arg(long, value_name = "COUNT", default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    /// Print session, number, identifier and headers of the command; --json always does
    #[arg(long)]
    headers: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let directory = open(&arguments.directory)?;
    let selection = arguments.filters.selection(&directory)?;
    let interrupted = interrupt()?;
    let mut transactions = directory.transactions(selection.clone())?;
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    let mut left = arguments.limit;
    loop {
        loop {
            let mut transaction = match transactions.next_transaction() {
                Ok(Some(transaction)) => transaction,
                Ok(None) => break,
                Err(error) => {
                    closed_is_fine(stdout.flush())?;
                    return Err(error.into());
                }
            };
            while left > 0
                && let Some(event) = transaction.next_event()?
            {
                if !selection.has(&event) {
                    continue;
                }
                left -= 1;
                let line = match arguments.json {
                    true => form::object(&directory.names, &transaction, &event).to_string(),
                    false if arguments.headers => {
                        let line = form::line(&directory.names, &transaction, &event);
                        format!("{line} | {}", form::origin(&transaction))
                    }
                    false => form::line(&directory.names, &transaction, &event),
                };
                if !closed_is_fine(writeln!(stdout, "{line}"))? {
                    return discard_output(stdout);
                }
            }
            if left == 0 || interrupted.load(Ordering::Relaxed) {
                break;
            }
        }
        if !closed_is_fine(stdout.flush())? {
            return discard_output(stdout);
        }
        let is_done = left == 0 || transactions.is_over() || !arguments.follow;
        if is_done || interrupted.load(Ordering::Relaxed) {
            if left == arguments.limit && left > 0 && !arguments.follow {
                to_stderr!("note: there are no such events");
            }
            return Ok(());
        }
        if is_reader_gone(PAUSE)? {
            return discard_output(stdout);
        }
    }
}
