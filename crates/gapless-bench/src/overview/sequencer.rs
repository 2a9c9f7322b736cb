//! The sequencer of an event stream: round trips over UDP with one message in flight, and three nodes that push.

use super::Overview;
use super::arguments::Part;
use super::line::{Figure, Line};
use crate::Result;
use crate::sequencer::{Part as Rows, SequencerArguments, Transport, each_row};
use gapless_measure::floor::{FloorKind, HEADER_BYTES};
use gapless_measure::reporting::check_interrupted;
use gapless_measure::{FloorRow, Row};

/// Sizes of a round trip, bytes.
const ROUND_TRIPS: [u64; 2] = [1024, 256];
/// Size of messages that three nodes push, bytes.
const PUSHED: u64 = 256;
/// Of these, a packet within Ethernet's frame holds so many.
const MESSAGES_PER_PACKET: u64 = 4;

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    for bytes in ROUND_TRIPS {
        let arguments = SequencerArguments {
            only: vec![Rows::Latency],
            transport: vec![Transport::Udp],
            payload: vec![bytes],
            messages: Some(overview.plan.round_trips),
            quick: overview.plan.is_quick,
            ..SequencerArguments::default()
        };
        overview.next(&format!("round trip over UDP, {bytes} B"))?;
        rows(overview, &arguments, |row, floors| {
            let what = format!("round trip over UDP, {bytes} B, p50");
            let answers = Some((format!("coralsequencer/latency/{bytes}/mean"), "mean"));
            (Line { part: Part::Sequencer, what, figure: Figure::Median, floor: floors.first().cloned(), answers }, row)
        })?;
    }
    let arguments = SequencerArguments {
        only: vec![Rows::Throughput],
        transport: vec![Transport::Multicast],
        payload: vec![PUSHED],
        throughput_messages: Some(overview.plan.pushed_messages),
        quick: overview.plan.is_quick,
        ..SequencerArguments::default()
    };
    overview.next(&format!("three nodes push, {PUSHED} B"))?;
    let packets = [1, MESSAGES_PER_PACKET].map(|messages| packets(overview, messages));
    rows(overview, &arguments, |row, _| {
        let is_batched = row.config.extra.get("batch_node").is_some_and(|batch| *batch == true);
        let (words, key) = if is_batched { ("batched", "batched") } else { ("one per packet", "one-per-packet") };
        let what = format!("three nodes push by multicast, {PUSHED} B, {words}");
        let answers = Some((format!("coralsequencer/throughput/{PUSHED}/{key}/sequencer"), ""));
        (
            Line {
                part: Part::Sequencer,
                what,
                figure: Figure::Throughput,
                floor: packets[usize::from(is_batched)].clone(),
                answers,
            },
            row,
        )
    })
}

/// Messages a second that arrive in one stream of packets with so many each.
fn packets(overview: &mut Overview<'_>, messages: u64) -> Option<FloorRow> {
    let floor = overview.floor(FloorKind::UdpStream, messages * (PUSHED + HEADER_BYTES))?;
    Some(FloorRow { rate_per_s: floor.rate_per_s.map(|per_s| per_s * messages as f64), ..floor })
}

/// Measures the rows of `arguments`, each shown as `line` says.
fn rows(
    overview: &mut Overview<'_>,
    arguments: &SequencerArguments,
    line: impl Fn(Row, &[FloorRow]) -> (Line, Row),
) -> Result<()> {
    let (repetitions, interrupted) = (overview.plan.repetitions, overview.interrupted);
    each_row(arguments, repetitions, interrupted, &mut |row, floors| {
        check_interrupted(super::NAME, interrupted)?;
        let (line, row) = line(row, &floors);
        overview.add(line, row);
        Ok(())
    })
}
