//! Events in memory: many callers and workers as tasks of one process, and the largest payloads of a published table.

use super::Overview;
use super::arguments::OverviewPart;
use super::line::{OverviewLine, ShownFigure};
use crate::Result;
use crate::rpc::payloads::{PayloadsArguments, longest};
use crate::rpc::scenarios::{ScenariosArguments, published_loads};
use gapless_load::rpc::payloads::bare;
use gapless_measure::reporting::{config_number, of_config};
use gapless_measure::table::grouped;
use gapless_measure::{FloorRow, Row};

const ONE_TO_FIFTY: &str = "mercury/1-50";
const FIFTY_TO_FIFTY: &str = "mercury/50-50";

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let mut arguments = ScenariosArguments::default();
    arguments.output.quick = overview.plan.is_quick;
    let mut run = overview.part("rpc scenarios");
    published_loads(&arguments, overview.plan.turns, &mut run)?;
    let report = overview.finish_part(run);
    let floor = report.floor.first();
    for row in &report.rows {
        let name = row.config.name.clone().unwrap_or_default();
        let key = if config_number(row, "callers") == Some(1) { ONE_TO_FIFTY } else { FIFTY_TO_FIFTY };
        let what = format!("{name} callers to workers, {} B", row.config.payload_bytes.unwrap_or(0));
        let answers = Some(key.to_owned());
        overview.add(
            OverviewLine {
                part: OverviewPart::Events,
                what,
                figure: ShownFigure::Throughput,
                floor: floor.cloned(),
                answers,
            },
            row.clone(),
        );
    }
    large_payloads(overview)
}

fn large_payloads(overview: &mut Overview<'_>) -> Result<()> {
    let mut arguments = PayloadsArguments { calls: Some(overview.plan.payload_calls), ..PayloadsArguments::default() };
    arguments.output.quick = overview.plan.is_quick;
    let mut run = overview.part("rpc payloads");
    longest(&arguments, &mut run)?;
    let report = overview.finish_part(run);
    let copying = report.floor.first();
    for row in &report.rows {
        let (bytes, mode) = (row.config.payload_bytes.unwrap_or(0), row.config.mode.clone().unwrap_or_default());
        let is_in_memory = of_config(row, "ends") == "one process";
        let floor = if is_in_memory {
            let ways = config_number(row, "ways").unwrap_or(1);
            Some(bare::measure(bytes as usize, ways, overview.plan.floor_time))
        } else {
            copying.map(|copying| of_calls(copying, row))
        };
        let what = format!("{} B, {}, {}", grouped(bytes), mode.replace('_', " "), of_config(row, "ends"));
        // Between two processes answers no figure through Kafka.
        let answers = is_in_memory.then(|| format!("mercury/memory/{mode}/{bytes}"));
        let line = OverviewLine { part: OverviewPart::Events, what, figure: ShownFigure::Throughput, floor, answers };
        overview.add(line, row.clone());
    }
    Ok(())
}

fn of_calls(copying: &FloorRow, row: &Row) -> FloorRow {
    let bytes = row.config.payload_bytes.unwrap_or(1) * config_number(row, "ways").unwrap_or(1);
    FloorRow { rate_per_s: copying.bytes_per_s.map(|per_s| per_s / bytes as f64), ..copying.clone() }
}
