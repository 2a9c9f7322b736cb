//! The command bus in memory, with one aggregate and with many.

use super::Overview;
use super::arguments::OverviewPart;
use super::line::{OverviewLine, ShownFigure};
use crate::Result;
use crate::commands::{CommandsArguments, in_memory};
use gapless_measure::reporting::{config_number, of_config};
use gapless_measure::table::grouped;

const PUBLISHED: &str = "axon/disruptor/none";

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let (turns, seconds) = overview.plan.command_turns;
    let mut arguments =
        CommandsArguments { turns: Some(turns), seconds: Some(seconds), ..CommandsArguments::default() };
    arguments.output.quick = overview.plan.is_quick;
    let mut run = overview.part("commands");
    in_memory(&arguments, &mut run)?;
    let report = overview.finish_part(run);
    let floor = report.floor.first();
    for row in &report.rows {
        let aggregates = config_number(row, "aggregates").unwrap_or(0);
        let word = if aggregates == 1 { "aggregate" } else { "aggregates" };
        let drive = of_config(row, "drive");
        let what = format!("commands, {drive}, {} {word}", grouped(aggregates));
        // One aggregate was published. The published bus takes one command at a time on its caller's thread; direct has
        // many in flight.
        let answers = (aggregates == 1 && drive == "pipelined").then(|| PUBLISHED.to_owned());
        overview.add(
            OverviewLine {
                part: OverviewPart::Commands,
                what,
                figure: ShownFigure::Throughput,
                floor: floor.cloned(),
                answers,
            },
            row.clone(),
        );
    }
    Ok(())
}
