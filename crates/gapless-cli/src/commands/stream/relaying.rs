//! Relays a stream until Ctrl-C, for `dispatch`, `bridge` and `archive`.

use super::sequencer::{PAUSE, addresses, recovered};
use super::text_archive::TextArchive;
use crate::commands::{CommandResult, UsageError, announce, interrupt};
use gapless_client::ClientError;
use gapless_client::StreamConfig;
use gapless_client::node::{NodeLink, Start};
use gapless_stream::StreamError;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The next run writes the rest.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// `needless`: reason for which the stream's own directory needs no relay.
///
/// # Errors
/// `to` is the stream's own directory; the file configures no stream.
pub(super) fn options(
    upstream: &StreamConfig,
    to: &Path,
    needless: &str,
) -> Result<(EventStreamOptions, EventStreamOptions), Box<dyn Error>> {
    if upstream.directory().is_some_and(|directory| directory == to) {
        return Err(UsageError(format!("--to is the directory of the stream itself{needless}")).into());
    }
    let ours = EventStreamOptions::from_config(upstream)?;
    let mut options = EventStreamOptions::in_directory(to);
    options.mtu = ours.mtu;
    options.frame_length_max = ours.frame_length_max;
    options.message_length_max = ours.message_length_max;
    options.window_bytes = ours.window_bytes;
    Ok((ours, options))
}

pub(super) fn run(
    upstream: &StreamConfig,
    options: &EventStreamOptions,
    mut text: Option<&mut TextArchive>,
) -> CommandResult {
    let interrupted = interrupt()?;
    let link = upstream.link()?;
    announce(&format!("looking for the stream at {}", link.peer()));
    let stream = match EventStream::relay(options, Box::new(link), Start::First, &interrupted) {
        Ok(stream) => stream,
        Err(StreamError::Client(ClientError::Closed)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    announce(&format!(
        "stream {:032x} passed on: {}; {}",
        stream.identity().stream_id,
        recovered(&stream),
        addresses(options)
    ));
    while !interrupted.load(Ordering::Relaxed) {
        if let Some(failure) = stream.failure() {
            return Err(failure.into());
        }
        let is_busy = text.as_mut().is_some_and(|text| text.follow(&stream));
        if !is_busy {
            std::thread::park_timeout(PAUSE);
        }
    }
    let mut written = Ok(true);
    if let Some(text) = &mut text {
        let until = Instant::now() + WRITE_TIMEOUT;
        while matches!(written, Ok(true)) && Instant::now() < until {
            written = text.attempt(&stream);
        }
    }
    let last_sequence = stream.stop()?;
    announce(&format!("stopped at sequence {last_sequence}"));
    written.map(drop)
}
