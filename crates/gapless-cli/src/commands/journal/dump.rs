//! `gapless journal dump`.

use super::directory::journal_of;
use super::frames::FrameForm;
use crate::commands::{CommandResult, check_order, closed_is_fine};
use clap::Args;
use gapless_journal::JournalReader;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a service, a stream or a member, or of its journal
    directory: PathBuf,
    /// First sequence [default: the first of the journal]
    #[arg(long, value_name = "SEQUENCE")]
    from: Option<u64>,
    /// Last sequence [default: the last of the journal]
    #[arg(long, value_name = "SEQUENCE")]
    to: Option<u64>,
    #[command(flatten)]
    form: FrameForm,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    check_order(arguments.from, arguments.to)?;
    let journal = journal_of(&arguments.directory);
    let reader = JournalReader::open(&journal)?;
    let mut replay = reader.replay(arguments.from.unwrap_or_else(|| reader.first_sequence()))?;
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    while replay.next_sequence() <= arguments.to.unwrap_or(u64::MAX) {
        let next = match replay.next_frame() {
            Ok(next) => next,
            Err(error) => {
                closed_is_fine(stdout.flush())?;
                return Err(error.into());
            }
        };
        let Some(frame) = next else { break };
        if !closed_is_fine(writeln!(stdout, "{}", arguments.form.line(&frame)))? {
            // The reader has gone: the rest must not be written at the drop.
            let (_stdout, _unwritten) = stdout.into_parts();
            return Ok(());
        }
    }
    closed_is_fine(stdout.flush())?;
    if let Some(stop) = replay.stop() {
        crate::commands::to_stderr!("note: {stop}");
    }
    // The frames of a journal without its oldest segments are printed before the error.
    JournalReader::open_complete(journal)?;
    Ok(())
}
