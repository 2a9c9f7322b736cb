//! `gapless journal tail`.

use super::directory::journal_of;
use super::frames::FrameForm;
use crate::commands::pipe::{discard_output, is_reader_gone};
use crate::commands::{CommandResult, closed_is_fine, interrupt};
use clap::Args;
use gapless_journal::JournalReader;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);
const FRAMES_PER_TURN: usize = 1000;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a service, a stream or a member, or of its journal
    directory: PathBuf,
    /// Number of last frames to begin with
    #[arg(short = 'n', long = "lines", value_name = "FRAMES", default_value_t = 10)]
    lines: u64,
    #[command(flatten)]
    form: FrameForm,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let interrupted = interrupt()?;
    let reader = JournalReader::open_complete(journal_of(&arguments.directory))?;
    let end = reader.last_sequence()? + 1;
    let mut replay = reader.replay(end.saturating_sub(arguments.lines).max(reader.first_sequence()))?;
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    loop {
        let mut printed = 0;
        while printed < FRAMES_PER_TURN {
            let next = match replay.next_frame() {
                Ok(next) => next,
                Err(error) => {
                    closed_is_fine(stdout.flush())?;
                    return Err(error.into());
                }
            };
            let Some(frame) = next else { break };
            printed += 1;
            if !closed_is_fine(writeln!(stdout, "{}", arguments.form.line(&frame)))? {
                return discard_output(stdout);
            }
        }
        if !closed_is_fine(stdout.flush())? {
            return discard_output(stdout);
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if printed == 0 && is_reader_gone(PAUSE)? {
            return discard_output(stdout);
        }
    }
}
