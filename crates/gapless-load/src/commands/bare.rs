//! The floor: one thread encodes an event and appends it to a window as a frame, with both checksums.

use crate::commands::case::CommandEncoding;
use crate::commands::failed;
use crate::commands::load::{headers, note};
use crate::commands::messages::{CommandForm, SbeForm, SerdeForm};
use gapless_cqrs::Message as _;
use gapless_log::WindowOptions;
use gapless_measure::FloorRow;
use gapless_measure::Result;
use gapless_measure::reporting::word;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH};
use std::hint::black_box;
use std::time::{Duration, Instant};

pub fn name(encoding: CommandEncoding) -> String {
    format!("encode_and_append_{}", word(encoding))
}

/// Frame before the event's payload, without metadata: answer, heads of transaction and event, aggregate's identifier.
const BEFORE_LENGTH: usize = 32 + 8 + 4 + 2 + 20 + 8;
const RELEASED_TOGETHER: u64 = 64;
const BATCH: u64 = 1024;

pub fn measure(encoding: CommandEncoding, size: usize, time: Duration) -> Result<FloorRow> {
    match encoding {
        CommandEncoding::Sbe => measure_form::<SbeForm>(encoding, size, time),
        CommandEncoding::Serde => measure_form::<SerdeForm>(encoding, size, time),
    }
}

fn measure_form<F: CommandForm>(encoding: CommandEncoding, size: usize, time: Duration) -> Result<FloorRow> {
    let (mut window, mut releaser) = WindowOptions::default().create(1).map_err(failed)?;
    let event = F::event(F::command(1, &note(size)));
    let mut metadata = Vec::new();
    headers().encode(&mut metadata).map_err(failed)?;
    let before = [&[0; BEFORE_LENGTH][..], &metadata].concat();
    let mut bytes = Vec::new();
    let mut sequence = 0;
    let mut append = || -> Result<()> {
        for _ in 0..BATCH {
            bytes.clear();
            bytes.extend_from_slice(&before);
            black_box(&event).encode(&mut bytes).map_err(failed)?;
            sequence += 1;
            let mut frame = FrameWriter::new(window.claim(HEADER_LENGTH + bytes.len()).map_err(failed)?);
            frame.payload_mut()[..bytes.len()].copy_from_slice(&bytes);
            let header =
                FrameHeader { sequence, timestamp_ns: sequence, session_seq: sequence, ..FrameHeader::default() };
            let length = frame.finish(&header, bytes.len());
            window.commit(length, sequence);
            window.publish();
            if sequence % RELEASED_TOGETHER == 0
                && let Some(end) = window.end_of(sequence)
            {
                releaser.release(end, sequence);
            }
        }
        Ok(())
    };
    let begin = Instant::now();
    while begin.elapsed() < time / 4 {
        append()?;
    }
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < time {
        append()?;
        count += BATCH;
    }
    Ok(FloorRow {
        name: name(encoding),
        payload_bytes: size as u64,
        rate_per_s: Some((count as f64 / begin.elapsed().as_secs_f64()).round()),
        samples: Some(count),
        ..FloorRow::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_encodings_and_sizes_have_rates() {
        for encoding in [CommandEncoding::Sbe, CommandEncoding::Serde] {
            for size in [0, 4096] {
                let floor = measure(encoding, size, Duration::from_millis(2)).unwrap();
                assert!(floor.rate_per_s.is_some_and(|rate| rate > 0.0) && floor.samples >= Some(BATCH));
                assert_eq!((floor.name, floor.payload_bytes), (name(encoding), size as u64));
            }
        }
    }
}
