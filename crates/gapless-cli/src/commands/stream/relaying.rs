//! Passing a stream on until Ctrl-C: what `dispatch` and `bridge` share.

use super::sequencer::{PAUSE, places, recovered};
use crate::commands::{Outcome, interrupt, print};
use gapless::stream::event_stream::{EventStream, EventStreamOptions};
use gapless::stream::node::{NodeLink, Start};
use gapless::stream::{StreamConfig, StreamError};
use std::sync::atomic::Ordering;

/// Passes the stream of `upstream` on as `options` say.
pub(super) fn run(upstream: &StreamConfig, options: &EventStreamOptions) -> Outcome {
    let interrupted = interrupt()?;
    let link = upstream.link()?;
    print(&format!("looking for the stream at {}\n", link.peer()))?;
    let stream = match EventStream::relay(options, Box::new(link), Start::First, &interrupted) {
        Ok(stream) => stream,
        // Ctrl-C came before the stream did.
        Err(StreamError::Closed) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    print(&format!(
        "stream {:032x} passed on: {}; {}\n",
        stream.identity().stream_id,
        recovered(&stream),
        places(options)
    ))?;
    // Relaxed: the flag guards no data (pairs with the store of the signal handler).
    while !interrupted.load(Ordering::Relaxed) {
        if let Some(failure) = stream.failure() {
            return Err(failure.into());
        }
        std::thread::sleep(PAUSE);
    }
    let last_sequence = stream.stop()?;
    print(&format!("stopped at sequence {last_sequence}\n"))
}
