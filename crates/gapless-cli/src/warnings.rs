//! A command for calls promises one line, so its warnings are held until its end: they explain a missing result, or are
//! dropped. With `RUST_LOG`, the requested events are logged with time and place.

use crate::printable::escaped;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarningMode {
    /// Standard error, with time and place: for nodes, members and supervisors.
    Logged,
    /// Standard error, one note each.
    Noted,
    Held,
}

/// The first ones are kept.
const HELD_MAX: usize = 16;
static HELD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Call it once.
pub(crate) fn begin(warnings: WarningMode) {
    let asked = std::env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let asked = asked.and_then(|asked| asked.parse::<Targets>().ok());
    // The error of a log that cannot be written would go to the same standard error, and panic.
    let format = tracing_subscriber::fmt().with_max_level(LevelFilter::WARN).log_internal_errors(false);
    if asked.is_some() || warnings == WarningMode::Logged {
        let is_coloured =
            io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|colourless| colourless.is_empty());
        let asked = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
        let most = asked.iter().map(|(_, level)| level).chain(asked.default_level()).max().unwrap_or(LevelFilter::OFF);
        let format = format.with_max_level(most).with_writer(io::stderr).with_ansi(is_coloured);
        format.finish().with(asked).init();
        return;
    }
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{value:?}"),
        "left_out" => Ok(()),
        name => write!(writer, " {name}={value:?}"),
    });
    let format = format.with_ansi(false).without_time().with_level(false).with_target(false).fmt_fields(fields);
    if warnings == WarningMode::Noted {
        format.with_writer(|| NoteWriter).init()
    } else {
        format.with_writer(|| HoldWriter).init()
    }
}

pub(crate) fn take() -> Vec<String> {
    std::mem::take(&mut *HELD.lock().unwrap_or_else(PoisonError::into_inner))
}

struct NoteWriter;
struct HoldWriter;

fn line_of(bytes: &[u8]) -> String {
    escaped(String::from_utf8_lossy(bytes).trim())
}

impl Write for NoteWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        writeln!(io::stderr(), "note: {}", line_of(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for HoldWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (line, mut held) = (line_of(bytes), HELD.lock().unwrap_or_else(PoisonError::into_inner));
        if held.len() < HELD_MAX && !held.contains(&line) {
            held.push(line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
