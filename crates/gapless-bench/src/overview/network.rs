//! Calls between two domains over Kafka, of the least published size: only where Kafka is compiled in and installed,
//! and while there is time.

use super::Overview;
use crate::Result;

#[cfg(not(feature = "kafka"))]
pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let build = "cargo build --release --features kafka";
    let note = format!("not measured: calls over Kafka, without which this program is built: {build}");
    overview.report.notes.push(note);
    Ok(())
}

#[cfg(feature = "kafka")]
pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    if let Err(missing) = crate::network::find_kafka() {
        overview.report.notes.push(format!("not measured: calls over Kafka: {missing}"));
        return Ok(());
    }
    if !overview.has_time_for(over_kafka::estimate(overview.plan.is_quick)) {
        let note = "calls over Kafka are measured by: gapless bench network; there was no time left";
        overview.report.notes.push(note.to_owned());
        return Ok(());
    }
    over_kafka::measure(overview)
}

#[cfg(feature = "kafka")]
mod over_kafka {
    use crate::Result;
    use crate::network::{NetworkArguments, least};
    use crate::overview::Overview;
    use crate::overview::arguments::OverviewPart;
    use crate::overview::line::{OverviewLine, ShownFigure};
    use gapless_load::network::bare::BARE_PAIR;
    use std::time::Duration;

    /// Time on a slow machine, the start of the broker and the bridges included.
    pub(super) fn estimate(is_quick: bool) -> Duration {
        Duration::from_secs(if is_quick { 12 } else { 20 })
    }

    pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
        let calls = Some(overview.plan.network_calls);
        let mut arguments = NetworkArguments { calls, ..NetworkArguments::default() };
        arguments.output.quick = overview.plan.is_quick;
        let mut run = overview.part("network");
        least(&arguments, &mut run)?;
        let report = overview.finish_part(run);
        for row in &report.rows {
            let (bytes, mode) = (row.config.payload_bytes.unwrap_or(0), row.config.mode.clone().unwrap_or_default());
            let what = format!("calls over Kafka, {bytes} B, {}", mode.replace('_', " "));
            let floor = report.floor_row(BARE_PAIR, bytes).cloned();
            let answers = Some(format!("mercury/kafka/{mode}/{bytes}"));
            let line =
                OverviewLine { part: OverviewPart::Network, what, figure: ShownFigure::Throughput, floor, answers };
            overview.add(line, row.clone());
        }
        Ok(())
    }
}
