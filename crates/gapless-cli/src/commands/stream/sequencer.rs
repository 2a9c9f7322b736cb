//! `gapless stream sequencer`.

use super::location::StreamLocation;
use crate::commands::{CommandResult, announce, interrupt};
use clap::Args;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::RepairedMark;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
}

pub(super) const PAUSE: Duration = Duration::from_millis(250);

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let config = arguments.location.config()?;
    let interrupted = interrupt()?;
    let options = EventStreamOptions::from_config(&config)?;
    let stream = EventStream::start(&options)?;
    announce(&format!(
        "stream {:032x} at tier {}: {}; {}; {}",
        stream.identity().stream_id,
        stream.tier(),
        recovered(&stream),
        addresses(&options),
        stream.plan().to_string().trim_end().replace('\n', "; ")
    ));
    while !interrupted.load(Ordering::Relaxed) {
        if let Some(failure) = stream.failure() {
            return Err(failure.into());
        }
        std::thread::park_timeout(PAUSE);
    }
    let last_sequence = stream.stop()?;
    announce(&format!("stopped at sequence {last_sequence}"));
    Ok(())
}

pub(super) fn recovered(stream: &EventStream) -> String {
    let recovery = stream.recovery();
    if recovery.last_sequence == 0 {
        return "new".to_owned();
    }
    let report = recovery.journal.as_ref();
    let mended: String = report
        .iter()
        .flat_map(|report| &report.repaired_marks)
        .map(|RepairedMark { segment, position }| {
            let segment = segment.display();
            format!(", the journaled mark of {segment} written anew, one slot of which was damaged at byte {position}")
        })
        .collect();
    let cut = report.and_then(|report| report.removed_tail.as_ref());
    let cut = cut.map_or_else(String::new, |cut| {
        format!(", a torn end cut from {} at byte {}", cut.segment.display(), cut.position)
    });
    format!(
        "continues after sequence {}, {} frames replayed{mended}{cut}",
        recovery.last_sequence, recovery.frames_replayed
    )
}

pub(super) fn addresses(options: &EventStreamOptions) -> String {
    let mut addresses = Vec::new();
    if let Some(directory) = &options.directory {
        addresses.push(format!("shared memory by {}", StreamLayout::new(directory).socket().display()));
    }
    if let Some(network) = &options.packets {
        addresses.push(format!("command port {}, request port {}", network.command, network.request));
        addresses.extend(network.groups.iter().map(|group| format!("group {group}")));
    }
    if let Some(network) = &options.tcp {
        addresses.push(format!("TCP command port {}, rewind port {}", network.command, network.rewind));
    }
    addresses.join(", ")
}
