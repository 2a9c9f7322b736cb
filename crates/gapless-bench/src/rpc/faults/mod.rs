//! `gapless bench rpc faults`: what callers notice while the processes that serve them are killed (SIGKILL) at random moments and
//! started again: of Gapless one, two and four instances, with each policy of repetitions; instances under a supervisor, it, its guardian;
//! of RabbitMQ one of two servers, and the broker.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options |
//! | `table` | text and picture |
//! | `rows` | from what callers saw and when processes died to a row of the report |
//! | `killing` | a process dies at a random moment; when the kernel says so |
//! | `instances` | the instances of a route and their callers |
//! | `supervised` | the same under a supervisor, which may be killed too |
//! | `rabbitmq` | the broker, its server and their callers |

mod arguments;
mod instances;
mod killing;
mod rabbitmq;
mod rows;
mod supervised;
mod table;

pub use arguments::FaultsArguments;

use crate::rpc::check_interrupted;
use crate::rpc::failed;
use arguments::FaultsPlan;
use gapless_load::rpc::faults::content::read_numbers;
use gapless_load::rpc::faults::traffic::{CallOutcomes, SilenceClock, call_until};
use gapless_measure::Result;
use gapless_measure::floor::FloorKind;
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::reporting::{BenchRun, ReportLayout, measure_floors};
use gapless_rpc::Retry;
use instances::FaultInstances;
use killing::{Kill, KillDice, Victims};
use rabbitmq::{BrokerUnderTest, BrokerVictim};
use rows::{FaultSubject, TrafficSummary};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use supervised::{SupervisedProcesses, Victim};

const INSTANCES: [usize; 3] = [1, 2, 4];
const RETRIES: [Retry; 2] = [Retry::NotBegun, Retry::Always];
const SUPERVISED: usize = 2;
pub(crate) const CALLERS: usize = 16;
/// Calls go on this long before the first kill and after the last.
const QUIET: Duration = Duration::from_millis(100);

/// Returns the text to print, and an error for a wrong or doubled answer.
///
/// # Errors
/// A process that cannot be started, a report or a picture that cannot be written.
pub fn run(arguments: &FaultsArguments, interrupted: &AtomicBool) -> Result<(String, Result<()>)> {
    let plan = arguments.plan()?;
    let shown = ReportLayout {
        benchmark: "rpc faults",
        steps: INSTANCES.len() * RETRIES.len() + Victim::ALL.len() + 1 + BrokerVictim::ALL.len(),
        notes: table::notes(&plan),
        text: table::text,
        draw: table::draw,
    };
    let (report, text) = BenchRun::of(shown, &arguments.output, interrupted, |run| measure(&plan, run))?;
    let wrong = report.rows.iter().filter(|row| row.verified == Some(false)).count();
    let outcome = match wrong {
        0 => Ok(()),
        _ => Err(failed(format!("answers of {wrong} rows were wrong or doubled; the seed was {}", plan.seed))),
    };
    Ok((text, outcome))
}

/// Kills the supervisor under calls, for another benchmark.
pub(crate) fn supervisor_killed(arguments: &FaultsArguments, run: &mut BenchRun<'_>) -> Result<()> {
    let (plan, directory) = (arguments.plan()?, own_directory()?);
    let of = (Some(Victim::Supervisor), Retry::NotBegun, KillLimit::Kills(plan.kills));
    supervised(&plan, of, directory.path(), &mut KillDice::new(plan.seed), run)
}

/// Kills RabbitMQ's broker under calls for another benchmark; the row says so if it is not installed.
pub(crate) fn broker_killed(arguments: &FaultsArguments, run: &mut BenchRun<'_>) -> Result<()> {
    let (plan, directory) = (arguments.plan()?, own_directory()?);
    rabbitmq(&plan, &[BrokerVictim::Broker], directory.path(), &mut KillDice::new(plan.seed), run)
}

fn measure(plan: &FaultsPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let items = vec![(FloorKind::FutexRoundTrip, 0)];
    measure_floors(&mut run.report, Path::new("."), items, plan.floor_time);
    let directory = own_directory()?;
    let mut dice = KillDice::new(plan.seed);
    for retry in RETRIES {
        for instances in INSTANCES {
            run.next(&format!("{instances} copies, {}", rows::words(retry)))?;
            let subject = FaultSubject::Gapless { instances, retry };
            let path = directory.path().join(format!("{instances}-{}", rows::words(retry)));
            let victims = FaultInstances::start((&path, instances, retry), run.interrupted)?;
            under_kills(subject, (plan, KillLimit::Kills(plan.kills)), victims, &mut dice, run)?;
        }
    }
    // The supervisor may die without a failed call, so calls that have begun are not retried.
    let each = Victim::ALL.map(|victim| (Some(victim), Retry::NotBegun, KillLimit::Kills(plan.kills)));
    for (victim, retry, until) in each.into_iter().chain([(None, Retry::Always, plan.supervised)]) {
        supervised(plan, (victim, retry, until), directory.path(), &mut dice, run)?;
    }
    rabbitmq(plan, &BrokerVictim::ALL, directory.path(), &mut dice, run)
}

fn supervised(
    plan: &FaultsPlan,
    (victim, retry, until): (Option<Victim>, Retry, KillLimit),
    directory: &Path,
    dice: &mut KillDice,
    run: &mut BenchRun<'_>,
) -> Result<()> {
    let subject = FaultSubject::Supervised { instances: SUPERVISED, retry, victim };
    let killed = victim.map_or("any", Victim::words);
    run.next(&format!("supervised, {killed}"))?;
    let path = directory.join(format!("supervised-{killed}"));
    let victims = SupervisedProcesses::start((&path, SUPERVISED, retry), victim, run.interrupted)?;
    under_kills(subject, (plan, until), victims, dice, run)
}

fn rabbitmq(
    plan: &FaultsPlan,
    victims: &[BrokerVictim],
    directory: &Path,
    dice: &mut KillDice,
    run: &mut BenchRun<'_>,
) -> Result<()> {
    for &victim in victims {
        run.next(victim.words())?;
        let kills = if victim == BrokerVictim::Server { plan.kills } else { plan.broker_kills };
        match BrokerUnderTest::start(directory, victim, run.interrupted)? {
            Ok(broker) => {
                under_kills(FaultSubject::Rabbitmq(victim), (plan, KillLimit::Kills(kills)), broker, dice, run)?
            }
            Err(reason) => {
                run.add(rows::missing(&reason), &table::COLUMNS);
                break;
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillLimit {
    Kills(usize),
    Time(Duration),
}

fn under_kills<V: Victims>(
    subject: FaultSubject,
    (plan, until): (&FaultsPlan, KillLimit),
    mut victims: V,
    dice: &mut KillDice,
    run: &mut BenchRun<'_>,
) -> Result<()> {
    let lines = (0..CALLERS).map(|_| victims.line()).collect::<Result<Vec<_>>>()?;
    let (stop, shared) = (AtomicBool::new(false), SilenceClock::default());
    let began = Instant::now();
    let (kills, seen) = std::thread::scope(|scope| {
        let call = |(number, mut line): (usize, V::Caller)| {
            let (stop, shared) = (&stop, &shared);
            scope.spawn(move || call_until(stop, number, plan.seed, &mut line, shared))
        };
        let callers: Vec<_> = lines.into_iter().enumerate().map(call).collect();
        let is_enough = |number| match until {
            KillLimit::Kills(kills) => number >= kills,
            KillLimit::Time(time) => began.elapsed() >= time,
        };
        let killed = (0..).take_while(|number| !is_enough(*number)).map(|number| {
            check_interrupted(run.interrupted)?;
            std::thread::sleep(if number == 0 { QUIET } else { dice.pause() });
            Ok(Kill { deaths: victims.kill(dice)?, restored_at: Instant::now() })
        });
        let kills: Result<Vec<_>> = killed.collect();
        std::thread::sleep(QUIET);
        stop.store(true, Ordering::Relaxed);
        victims.release();
        let seen = callers.into_iter().map(|caller| caller.join().map_err(|_| failed("a caller panicked")));
        (kills, seen.collect::<Result<Vec<CallOutcomes>>>())
    });
    let (kills, seen, elapsed) = (kills?, CallOutcomes::of_all(seen?), began.elapsed());
    let begun = read_numbers(&victims.begun())?;
    let floor = run.report.floor_row(FloorKind::FutexRoundTrip.name(), 0);
    let traffic = TrafficSummary { seen: &seen, shared: &shared, elapsed, retried: victims.retried() };
    let mut row = rows::row(subject, traffic, &kills, &begun, floor);
    victims.finish(&mut row)?;
    run.add(row, &table::COLUMNS);
    Ok(())
}

fn own_directory() -> Result<OwnDirectory> {
    OwnDirectory::create(&std::env::temp_dir(), &format!("gapless-bench-faults-{}", std::process::id()))
}
