//! The sequencer of an event stream: round trips over UDP with one message in flight, and three nodes that push.

use super::Overview;
use super::arguments::OverviewPart;
use super::line::{OverviewLine, ShownFigure};
use crate::Result;
use crate::sequencer::{SequencerArguments, SequencerPart as Rows, StreamTransport, each_row};
use gapless_measure::floor::{FloorKind, HEADER_BYTES};
use gapless_measure::reporting::check_interrupted;
use gapless_measure::{FloorRow, Row};

const ROUND_TRIPS: [u64; 2] = [1024, 256];
const PUSHED: u64 = 256;

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    for bytes in ROUND_TRIPS {
        let arguments = SequencerArguments {
            only: vec![Rows::Latency],
            transport: vec![StreamTransport::Udp],
            payload: vec![bytes],
            messages: Some(overview.plan.round_trips),
            quick: overview.plan.is_quick,
            ..SequencerArguments::default()
        };
        overview.next(&format!("round trip over UDP, {bytes} B"))?;
        rows(overview, &arguments, |row, floors| {
            let what = format!("round trip over UDP, {bytes} B, average");
            let answers = Some(format!("coralsequencer/latency/{bytes}/mean"));
            (
                OverviewLine {
                    part: OverviewPart::Sequencer,
                    what,
                    figure: ShownFigure::Mean,
                    floor: floors.first().cloned(),
                    answers,
                },
                row,
            )
        })?;
    }
    let arguments = SequencerArguments {
        only: vec![Rows::Throughput],
        transport: vec![StreamTransport::Multicast],
        payload: vec![PUSHED],
        throughput_messages: Some(overview.plan.pushed_messages),
        quick: overview.plan.is_quick,
        ..SequencerArguments::default()
    };
    overview.next(&format!("three nodes push, {PUSHED} B"))?;
    let floor = journal(overview);
    rows(overview, &arguments, |row, _| {
        let is_batched = row.config.extra.get("batch_node").is_some_and(|batch| *batch == true);
        let (words, key) = if is_batched { ("batched", "batched") } else { ("one per packet", "one-per-packet") };
        let what = format!("three nodes push by multicast, {PUSHED} B, {words}");
        let answers = Some(format!("coralsequencer/throughput/{PUSHED}/{key}/sequencer"));
        (
            OverviewLine {
                part: OverviewPart::Sequencer,
                what,
                figure: ShownFigure::Throughput,
                floor: floor.clone(),
                answers,
            },
            row,
        )
    })
}

/// Every message passes the file system in one stream, by each transport.
fn journal(overview: &mut Overview<'_>) -> Option<FloorRow> {
    let floor = overview.floor(FloorKind::SequentialWrite, 0)?;
    let rate_per_s = floor.bytes_per_s.map(|bytes| bytes / (PUSHED + HEADER_BYTES) as f64);
    Some(FloorRow { rate_per_s, ..floor })
}

fn rows(
    overview: &mut Overview<'_>,
    arguments: &SequencerArguments,
    line: impl Fn(Row, &[FloorRow]) -> (OverviewLine, Row),
) -> Result<()> {
    let (repetitions, interrupted) = (overview.plan.repetitions, overview.interrupted);
    each_row(arguments, repetitions, interrupted, &mut |row, floors| {
        check_interrupted(super::NAME, interrupted)?;
        let (line, row) = line(row, &floors);
        overview.add(line, row);
        Ok(())
    })
}
