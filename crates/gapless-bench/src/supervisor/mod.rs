//! `gapless bench supervisor`: cost of a supervisor with many instances while nothing happens, and its reaction times:
//! `up`, the death of an instance, of the supervisor, of the guardian.
//!
//! | module | content |
//! |---|---|
//! | this | the arguments, the order of things |
//! | `supervisor_under_test` | instances under the supervisor of this program, and the actions on them |
//! | `process_costs` | memory of a process |
//! | `rows` | rows of the report from the measurements, with their targets |
//! | `table` | text of the report |

mod process_costs;
mod rows;
mod supervisor_under_test;
mod table;

use crate::{BenchError, Result};
use clap::Args;
use gapless_measure::RunExtent;
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::reporting::{BenchRun, JsonArguments, OutputArguments, ReportLayout, check_interrupted};
use gapless_measure::resources::cpu_ns_of;
pub(crate) use rows::{KILL_NOTICED, noticed_floor, spawn_floor};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use supervisor_under_test::{ReplacementTimes, SupervisorUnderTest, TakeoverTimes};

const NAME: &str = "supervisor";
/// Instances, idle seconds, repetitions of each event; of [`SupervisorArguments::full`] and `quick`.
const USUAL: (usize, u64, usize) = (50, 30, 20);
const FULL: (usize, u64, usize) = (50, 60, 20);
const QUICK: (usize, u64, usize) = (5, 2, 2);
/// Pause between deaths of supervisor or guardian: one that lives shorter is restarted with growing delays.
const CALM: Duration = Duration::from_millis(1100);
const PAUSE: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Options of the benchmark.
#[derive(Debug, Clone, Default, Args)]
pub struct SupervisorArguments {
    #[command(flatten)]
    pub json: JsonArguments,

    /// Processes, each with one instance [default: 50]
    #[arg(long, alias = "copies", value_name = "INSTANCES", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub instances: Option<u64>,

    /// Idle seconds in which processor time is counted [default: 30; with --full 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub idle_seconds: Option<u64>,

    /// Kills of an instance, of the supervisor and of the guardian, each [default: 20]
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub kills: Option<u64>,

    /// Run as for the committed tables; takes about three minutes
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Use few instances and little time, as a functional check
    #[arg(long)]
    pub quick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SupervisorPlan {
    instances: usize,
    idle: Duration,
    kills: usize,
}

impl SupervisorArguments {
    fn plan(&self) -> SupervisorPlan {
        let (instances, idle_seconds, kills) = RunExtent::of(self.quick, self.full).pick(QUICK, USUAL, FULL);
        let or = |asked: Option<u64>, default| asked.map_or(default, |asked| asked as usize);
        SupervisorPlan {
            instances: or(self.instances, instances),
            idle: Duration::from_secs(self.idle_seconds.unwrap_or(idle_seconds)),
            kills: or(self.kills, kills),
        }
    }
}

/// Returns the text to print: none if the JSON goes to stdout.
///
/// # Errors
/// Instances that cannot be started, a supervisor that does not come back, a report that cannot be written. All
/// processes are ended.
pub fn run(arguments: &SupervisorArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = arguments.plan();
    let shown = ReportLayout {
        benchmark: NAME,
        steps: 6,
        notes: table::notes(plan.instances),
        text: table::text,
        draw: |_, _| Ok(()),
    };
    let output = OutputArguments { json: arguments.json.clone(), plot: None, quick: arguments.quick };
    Ok(BenchRun::of(shown, &output, interrupted, |run| measure(plan, run))?.1)
}

fn measure(plan: SupervisorPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let interrupted = run.interrupted;
    run.next("floor")?;
    run.report.floor.push(rows::spawn_floor(plan.instances)?);
    let directory = std::env::temp_dir();
    let directory = OwnDirectory::create(&directory, &format!("gapless-bench-supervisor-{}", std::process::id()))?;
    run.next("up")?;
    let (mut stand, up) = SupervisorUnderTest::up(directory.path(), plan.instances)?;
    run.add(rows::up(plan.instances, up), &table::COLUMNS);
    run.next("idle")?;
    run.add(idle(plan, &stand, "idle", interrupted)?, &table::COLUMNS);
    run.next("deaths of instances")?;
    let of_instances = |replaced: &[ReplacementTimes]| rows::replacements(plan.instances, replaced).into();
    deaths((plan, PAUSE), run, |death| stand.kill_instance(death % plan.instances), of_instances)?;
    run.next("deaths of the supervisor")?;
    let of_supervisors = |back: &[TakeoverTimes]| rows::supervisors(plan.instances, back).into();
    deaths((plan, CALM), run, |_| stand.kill_supervisor(), of_supervisors)?;
    run.next("deaths of the guardian")?;
    let of_guardians = |back: &[Duration]| vec![rows::guardians(plan.instances, back)];
    deaths((plan, CALM), run, |_| stand.kill_guardian(), of_guardians)?;
    // The instances are orphans now: pidfds show their ends.
    run.add(idle(plan, &stand, "idle, after the deaths", interrupted)?, &table::COLUMNS);
    let begun = Instant::now();
    stand.down()?;
    run.add(rows::down(plan.instances, begun.elapsed()), &table::COLUMNS);
    Ok(())
}

/// Adds the rows of all deaths, also of those before an error.
fn deaths<T>(
    (plan, before): (SupervisorPlan, Duration),
    run: &mut BenchRun<'_>,
    mut kill: impl FnMut(usize) -> Result<T>,
    rows: impl Fn(&[T]) -> Vec<gapless_measure::Row>,
) -> Result<()> {
    let mut found = Vec::new();
    let measured = (0..plan.kills).try_for_each(|death| {
        pause(before, run.interrupted)?;
        found.push(kill(death)?);
        Ok(())
    });
    if !found.is_empty() {
        rows(&found).into_iter().for_each(|row| run.add(row, &table::COLUMNS));
    }
    measured
}

fn idle(
    plan: SupervisorPlan,
    stand: &SupervisorUnderTest,
    name: &str,
    interrupted: &AtomicBool,
) -> Result<gapless_measure::Row> {
    pause(CALM, interrupted)?;
    let processes = stand.processes()?;
    let (begun, before) = (Instant::now(), processes.map(cpu_ns_of));
    pause(plan.idle, interrupted)?;
    let (elapsed, after) = (begun.elapsed(), processes.map(cpu_ns_of));
    let memory = processes.map(process_costs::memory);
    rows::idle(name, plan.instances, elapsed, (before, after), memory)
}

fn pause(time: Duration, interrupted: &AtomicBool) -> Result<()> {
    let until = Instant::now() + time;
    loop {
        check_interrupted(NAME, interrupted)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
}

fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_has_its_effect() {
        let of =
            |full, quick, kills| SupervisorArguments { full, quick, kills, ..SupervisorArguments::default() }.plan();
        let (usual, full, quick) = (of(false, false, None), of(true, false, None), of(false, true, None));
        assert_eq!([usual, full, quick].map(|plan| plan.idle.as_secs()), [30, 60, 2]);
        assert_eq!([usual, full, quick].map(|plan| plan.instances), [50, 50, 5]);
        assert_eq!((usual.kills, of(false, false, Some(7)).kills), (20, 7));
    }
}
