//! `gapless bench` without a name: one table over all systems in two minutes, each row by the code of the benchmark that measures it
//! at length, with short settings.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options, and how much of each row is measured |
//! | `line` | a row of the table: its figure, floor, published figure and peers |
//! | `table` | text of the report |
//! | `service` | a service on one node, and on a primary with its backup |
//! | `sequencer` | round trips, and three nodes that push |
//! | `calls` | calls between two processes, and one way |
//! | `events` | many callers and workers in memory, large payloads |
//! | `commands` | the command bus |
//! | `kills` | a leader and a supervisor killed under load |
//! | `network` | calls between two domains over Kafka |
//! | `peers` | other systems, where they are installed |

mod arguments;
mod calls;
mod commands;
mod events;
mod kills;
mod line;
mod network;
mod peers;
mod sequencer;
mod service;
mod table;

pub use arguments::OverviewArguments;

use crate::supervisor::KILL_NOTICED;
use crate::{BenchError, Result};
use arguments::{OverviewPart, OverviewPlan};
use gapless_load::rpc::payloads::bare::BARE_CHANNEL;
use gapless_measure::floor::{FloorKind, FloorPlan};
use gapless_measure::own_directory::skip_file_system_sync;
use gapless_measure::progress::BenchProgress;
use gapless_measure::reporting::{BenchRun, INTERRUPTED, check_interrupted, is_set, word};
use gapless_measure::{FAILED, FloorRow, Report, Row};
use line::OverviewLine;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const NAME: &str = "overview";

/// Prints each row on stderr; returns the text to print with the outcome: an error if a check failed, a row could not
/// be measured, or the report could not be written. `interrupted` ends it early, with the complete rows.
pub fn run(arguments: &OverviewArguments, interrupted: &Arc<AtomicBool>) -> (String, Result<()>) {
    let is_quiet = arguments.json.is_on_stdout();
    let plan = arguments.plan();
    if plan.is_quick {
        skip_file_system_sync();
    }
    let progress = BenchProgress::new(steps(&plan), NAME, is_quiet);
    let mut overview = Overview { plan, report: Report::new(NAME), progress, interrupted, began: Instant::now() };
    overview.measure();
    overview.progress.finish();
    let Overview { mut report, plan, began, .. } = overview;
    if is_set(interrupted) {
        report.notes.push(INTERRUPTED.to_owned());
    }
    let wires: BTreeSet<String> = report.rows.iter().filter_map(line::wire).collect();
    report.notes.extend(wires);
    report.notes.extend(notes_of_floors(&report.rows));
    report.notes.extend(notes(&plan, began.elapsed()));
    let written = arguments.json.write(&report);
    let text = if is_quiet { String::new() } else { table::whole(&report) };
    (text, written.and_then(|()| verdict(&report.rows)))
}

fn verdict(rows: &[Row]) -> Result<()> {
    let failures: Vec<String> = rows.iter().filter_map(Row::failure).collect();
    let Some(first) = failures.first() else { return Ok(()) };
    let reason = format!("{} of {} rows failed, the first: {first}", failures.len(), rows.len());
    Err(BenchError::Verdict { name: NAME, reason })
}

fn steps(plan: &OverviewPlan) -> u64 {
    let of = |part: &OverviewPart| match part {
        OverviewPart::Service => 4,
        OverviewPart::Sequencer => 4,
        OverviewPart::Calls => 10,
        OverviewPart::Events => 6,
        OverviewPart::Commands => 4 * u64::from(plan.command_turns.0),
        OverviewPart::Kills => 2 * u64::from(plan.leader_kills) + 3,
        OverviewPart::Network => 4,
    };
    plan.parts.iter().map(of).sum()
}

struct Overview<'a> {
    plan: OverviewPlan,
    report: Report,
    progress: BenchProgress,
    interrupted: &'a Arc<AtomicBool>,
    began: Instant,
}

impl<'a> Overview<'a> {
    /// A failed part is one failed row; the others still run.
    fn measure(&mut self) {
        for part in self.plan.parts.clone() {
            let seconds = self.began.elapsed().as_secs();
            self.progress.line(&format!("{:<10} begins after {seconds} s", word(part)));
            let measured = match part {
                OverviewPart::Service => service::measure(self),
                OverviewPart::Sequencer => sequencer::measure(self),
                OverviewPart::Calls => calls::measure(self),
                OverviewPart::Events => events::measure(self),
                OverviewPart::Commands => commands::measure(self),
                OverviewPart::Kills => kills::measure(self),
                OverviewPart::Network => network::measure(self),
            };
            if is_set(self.interrupted) {
                return;
            }
            if let Err(error) = measured {
                self.add_failed(part, &error);
            }
        }
        peers::measure(self);
    }

    fn next(&mut self, what: &str) -> Result<()> {
        self.progress.set_label(what);
        self.progress.set_position(self.progress.position() + 1);
        check_interrupted(NAME, self.interrupted)
    }

    /// Part of another benchmark, with this one's bar and without its own lines.
    fn part(&self, benchmark: &'static str) -> BenchRun<'a> {
        BenchRun::part(benchmark, &self.progress.without_lines(), self.interrupted)
    }

    fn add(&mut self, line: OverviewLine, row: Row) {
        if let Some(floor) = line.floor.clone() {
            self.add_floor(floor);
        }
        let row = line.into_row(row);
        self.progress.line(&table::measured(&row));
        self.report.rows.push(row);
    }

    fn add_failed(&mut self, part: OverviewPart, error: &BenchError) {
        let mut row = Row::default();
        row.config.name = Some("not measured".to_owned());
        row.config.extra.insert("part".to_owned(), word(part).into());
        row.extra.insert(FAILED.to_owned(), error.to_string().into());
        self.progress.line(&format!("{:<10} FAILED: {error}", word(part)));
        self.report.rows.push(row);
    }

    /// Adds each floor once, without the rate of one row.
    fn add_floor(&mut self, mut floor: FloorRow) {
        if floor.bytes_per_s.is_some() {
            floor.rate_per_s = None;
        }
        if !self.report.floor.contains(&floor) {
            self.report.floor.push(floor);
        }
    }

    fn finish_part(&mut self, part: BenchRun<'_>) -> Report {
        part.report.notes.iter().for_each(|note| self.note(note.clone()));
        part.report
    }

    fn note(&mut self, note: String) {
        if !self.report.notes.contains(&note) {
            self.report.notes.push(note);
        }
    }

    /// `None` if it cannot be measured; the report says why.
    fn floor(&mut self, kind: FloorKind, payload_bytes: u64) -> Option<FloorRow> {
        let plan = FloorPlan::new(Path::new("."), vec![(kind, payload_bytes)]);
        let measured = FloorPlan { time_limit: self.plan.floor_time, ..plan }.measure();
        self.report.notes.extend(measured.skipped);
        measured.rows.into_iter().next()
    }

    fn has_time_for(&self, estimate: Duration) -> bool {
        self.began.elapsed() + estimate < self.plan.time
    }
}

fn notes_of_floors(rows: &[Row]) -> impl Iterator<Item = String> {
    let notes = [
        (
            FloorKind::FutexRoundTrip.name(),
            "two threads that sleep and wake each other at every call. A caller and a worker look some 200 times before they \
             sleep, so a call can be faster",
        ),
        (
            KILL_NOTICED,
            "from the kill of a trivial program to the end of its socket at the other side. Callers of a killed supervisor \
             wait for nobody, so a silence can be shorter",
        ),
        (
            BARE_CHANNEL,
            "the same payloads handed to a thread, and its answers back, by two channels of the standard library",
        ),
    ];
    let is_shown = |name: &str| rows.iter().any(|row| row.floor_name.as_deref() == Some(name));
    notes.map(|(name, text)| is_shown(name).then(|| format!("{name}: {text}"))).into_iter().flatten()
}

fn notes(plan: &OverviewPlan, elapsed: Duration) -> Vec<String> {
    let mut notes = vec![
        format!("measured in {} s; `gapless bench NAME` measures each part at length", elapsed.as_secs()),
        "× floor: ours by the floor of this machine, measured next to it in this run; of medians where both have one. Below 1, the \
         floor does more: it sends one message per system call, or sleeps at once; ours gathers, or looks before it sleeps. Published \
         figures are facts about other machines, never a basis for \"x times faster\""
            .to_owned(),
    ];
    if plan.is_quick {
        notes.push("a short run: it shows that everything works, and no figure".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
