//! Prints a node's messages and events on standard output.

use crate::commands::closed_is_fine;
use clap::Args;
use gapless_client::node::NodeEvent;
use gapless_stream::logger::{LogFormat, Logger};
use std::io;
use std::io::{BufWriter, Stdout, Write};

#[derive(Args)]
pub(super) struct FormArguments {
    /// Print one JSON object per line
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Print only the payloads of messages, one per line
    #[arg(long)]
    raw: bool,
}

impl FormArguments {
    pub(super) fn output(&self) -> EventOutput {
        let format = match (self.json, self.raw) {
            (true, _) => LogFormat::Json,
            (_, true) => LogFormat::Payload,
            _ => LogFormat::Text,
        };
        EventOutput {
            logger: Logger { format },
            line: Vec::new(),
            stdout: Some(BufWriter::new(io::stdout())),
            failure: None,
        }
    }
}

/// A reader that has gone is not an error; nothing more is written.
pub(super) struct EventOutput {
    logger: Logger,
    line: Vec<u8>,
    stdout: Option<BufWriter<Stdout>>,
    /// Reported at the next flush: a poll's callback cannot end the poll.
    failure: Option<io::Error>,
}

impl EventOutput {
    pub(super) fn event(&mut self, event: &NodeEvent<'_>) -> bool {
        self.line.clear();
        if !self.logger.line(event, &mut self.line) {
            return false;
        }
        if let Some(stdout) = &mut self.stdout {
            let written = stdout.write_all(&self.line);
            self.note_result(written);
        }
        true
    }

    /// Returns whether the reader is still there.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        if let Some(stdout) = &mut self.stdout {
            let flushed = stdout.flush();
            self.note_result(flushed);
        }
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.stdout.is_some()),
        }
    }

    fn note_result(&mut self, written: io::Result<()>) {
        let is_open = closed_is_fine(written).unwrap_or_else(|error| {
            self.failure = Some(error);
            false
        });
        if !is_open && let Some(stdout) = self.stdout.take() {
            // The rest must not be written again at the drop.
            let (_stdout, _unwritten) = stdout.into_parts();
        }
    }
}

pub(super) fn note(event: &NodeEvent<'_>) {
    match event {
        NodeEvent::Lapped { sequence, released_sequence } => {
            let lag = released_sequence.saturating_sub(*sequence);
            crate::commands::to_stderr!("note: {lag} frames behind; goes on from the journal at {sequence}");
        }
        NodeEvent::Limit => crate::commands::to_stderr!("note: the stream has as many sessions as it may have"),
        _ => {}
    }
}
