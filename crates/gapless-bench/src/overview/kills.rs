//! Processes killed under load: the leader of three members, and a supervisor under calls.

use super::Overview;
use super::arguments::OverviewPart;
use super::line::{OverviewLine, ShownFigure};
use crate::Result;
use crate::failover::{FIRST_NEW_REPLY, RATE_PER_S, leader_killed};
use crate::rpc::faults::{CALLERS, FaultsArguments, supervisor_killed};
use crate::supervisor::{noticed_floor, spawn_floor};
use gapless_measure::FloorRow;
use gapless_measure::reporting::check_interrupted;
use gapless_measure::table::grouped;
use serde_json::Value;
use std::path::Path;

const SPAWNS: usize = 50;

pub(super) fn measure(overview: &mut Overview<'_>) -> Result<()> {
    let noticed = noticed_floor(SPAWNS)?;
    leader(overview, &noticed)?;
    supervisor(overview, &noticed)
}

fn leader(overview: &mut Overview<'_>, noticed: &FloorRow) -> Result<()> {
    overview.next("leader killed")?;
    let (kills, progress) = (overview.plan.leader_kills, overview.progress.without_lines());
    let rows = leader_killed(kills, Path::new("."), &progress, overview.interrupted)?;
    check_interrupted(super::NAME, overview.interrupted)?;
    for row in rows.into_iter().filter(|row| row.extra.contains_key(FIRST_NEW_REPLY)) {
        let kills = row.extra.get(FIRST_NEW_REPLY).and_then(Value::as_array).map_or(0, Vec::len);
        let what = format!("leader of three killed, {}/s: longest outage of {kills}", grouped(RATE_PER_S));
        let (figure, floor) = (ShownFigure::Time(FIRST_NEW_REPLY), Some(noticed.clone()));
        let line = OverviewLine { part: OverviewPart::Kills, what, figure, floor, answers: None };
        overview.add(line, row);
    }
    Ok(())
}

pub(super) const LONGEST_SILENCE: &str = "longest_silence_ns";

fn supervisor(overview: &mut Overview<'_>, noticed: &FloorRow) -> Result<()> {
    let mut arguments = FaultsArguments { kills: Some(overview.plan.supervisor_kills), ..FaultsArguments::default() };
    arguments.output.quick = overview.plan.is_quick;
    let mut run = overview.part("rpc faults");
    supervisor_killed(&arguments, &mut run)?;
    let floor = spawn_floor(SPAWNS)?;
    for row in overview.finish_part(run).rows {
        let kills = overview.plan.supervisor_kills;
        let silence = format!("supervisor killed, {CALLERS} callers: longest silence of {kills}");
        let again = format!("supervisor killed: recovered, p50 of {kills}");
        let line = |what, key, floor: &FloorRow| {
            let (figure, floor) = (ShownFigure::Time(key), Some(floor.clone()));
            OverviewLine { part: OverviewPart::Kills, what, figure, floor, answers: None }
        };
        overview.add(line(silence, LONGEST_SILENCE, noticed), row.clone());
        if row.failure().is_none() {
            overview.add(line(again, "restored_after_sign_ns", &floor), row);
        }
    }
    Ok(())
}
