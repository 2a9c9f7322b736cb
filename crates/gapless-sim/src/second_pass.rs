//! Second pass in another process: folds the same frames or runs the same seed again, and reports the first difference.
//! Time of day, addresses, process, thread, working directory and number of cores differ here.

use crate::options::{ApplicationKind, Options};
use crate::output::{HandlerOutput, first_difference, side_by_side};
use crate::record::RunRecord;
use crate::reference::Reference;
use crate::second_process::{SecondPassAssignment, SimulationCall};
use crate::service_client::token_of;
use crate::system_under_test::SystemUnderTest;
use crate::wall_clock::{OTHER_TIME_NS, TimeOfDay, shift};
use crate::workload::message_of;
use crate::{panic_text, run_once};
use std::panic::{AssertUnwindSafe, catch_unwind};

const SIDES: [&str; 2] = ["in the run", "in the second process"];

/// Ends this process with its finding.
pub(crate) fn answer(
    system: &impl SystemUnderTest,
    options: &Options,
    seed: u64,
    assignment: &SecondPassAssignment,
) -> ! {
    disturb_memory();
    use_one_core();
    let work = || match assignment.record.steps.is_empty() {
        false => fold_again(system, seed, assignment),
        true => run_again(system, options, seed, assignment),
    };
    let said = on_another_thread(&assignment.thread, || {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            Some(format!("a second process panics, and the run did not: {}", panic_text(&*panic)))
        })
    });
    SimulationCall::answer(said.as_deref())
}

fn fold_again(system: &impl SystemUnderTest, seed: u64, assignment: &SecondPassAssignment) -> Option<String> {
    let SecondPassAssignment { record, snapshot, .. } = assignment;
    let mut reference = system.reference().recording();
    let from = match snapshot {
        None => "from the beginning".to_owned(),
        Some(bytes) => match reference.restore(bytes) {
            Ok(sequence) => format!("from a member's snapshot after sequence {sequence}"),
            Err(error) => return Some(format!("a member's snapshot is refused by a second process: {error}")),
        },
    };
    // Construction may read files; handlers must not.
    let _ = std::env::set_current_dir("/");
    let begin = reference.last_sequence();
    for sequence in begin + 1..=record.frames.len() as u64 {
        let Some(frame) = record.frame(sequence) else {
            return Some(format!("frame {sequence} of the record cannot be read"));
        };
        let _time_of_day = TimeOfDay::set(frame.timestamp_ns().wrapping_add(OTHER_TIME_NS));
        let step = match reference.step(&frame) {
            Ok(step) => step,
            Err(said) => {
                return Some(with_message(
                    system,
                    seed,
                    record,
                    sequence,
                    &format!("a second process fails, which folds {from}: {said}"),
                ));
            }
        };
        let Some(before) = record.steps.get(sequence as usize - 1) else {
            return Some(format!("step {sequence} is missing"));
        };
        if before.outputs != step.outputs {
            let said = format!("a second process comes to other replies, notices or timers {from}");
            let text = with_message(system, seed, record, sequence, &said);
            return Some(text + &outputs_side_by_side(system, [&before.outputs, &step.outputs], SIDES));
        }
        if before.state_hash != step.state_hash {
            let said = format!("a second process comes to another state {from}");
            let parted = match (&before.state, &step.state) {
                (Some(run), Some(again)) => first_difference(run, again, SIDES),
                _ => "somewhere: there are too many bytes of states to be kept".to_owned(),
            };
            return Some(format!(
                "{}\n  the snapshots of the state part {parted}",
                with_message(system, seed, record, sequence, &said)
            ));
        }
    }
    None
}

/// Runs the seed again, for a service whose handlers run on leaders.
fn run_again<S: SystemUnderTest>(
    system: &S,
    options: &Options,
    seed: u64,
    assignment: &SecondPassAssignment,
) -> Option<String> {
    // A command bus must give the same result at another time of day.
    if S::APPLICATION_KIND == ApplicationKind::Commands {
        shift();
    }
    let again = run_once(system, &Options { prints_trace: false, ..options.clone() }, seed);
    if again.outcome.as_ref().is_ok_and(|tally| *tally == assignment.tally) {
        return None;
    }
    let frames = again.record.map(|record| record.frames).unwrap_or_default();
    let (one, other) = (&assignment.record.frames, &frames);
    let at = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (Some(run), Some(second)) = (one.get(at), other.get(at)) else {
        let said =
            again.outcome.map_or_else(|failure| failure.reason, |tally| format!("its trace is {:016x}", tally.trace));
        return Some(format!("the same seed gives another run in a second process, though the same frames: {said}"));
    };
    let said = "the same seed gives another run in a second process: a handler has met something that does not follow from the seed";
    let parted = first_difference(run, second, SIDES);
    Some(format!("{}\n  the frames part {parted}", with_message(system, seed, &assignment.record, at as u64 + 1, said)))
}

/// Appends the frame's message to `said`.
pub(crate) fn with_message(
    system: &impl SystemUnderTest,
    seed: u64,
    record: &RunRecord,
    sequence: u64,
    said: &str,
) -> String {
    format!("{said}{}", place_and_message(system, seed, record, sequence))
}

/// One line each; for a timer, which has no message, names the frame that set it.
fn place_and_message(system: &impl SystemUnderTest, seed: u64, record: &RunRecord, sequence: u64) -> String {
    let place = format!("\n  {}", record.place(sequence));
    match record.timer_set_by(sequence) {
        Some(by) => format!("{place}\n  set at {}{}", record.place(by), message_line(system, seed, record, by)),
        None => place + &message_line(system, seed, record, sequence),
    }
}

fn message_line(system: &impl SystemUnderTest, seed: u64, record: &RunRecord, sequence: u64) -> String {
    let sent = record.sender(sequence).and_then(|(token, index)| {
        let publisher = (1..=record.publishers).find(|publisher| token_of(seed, *publisher) == token)?;
        let (message, payload) = message_of(system, seed, publisher, index);
        let described = system.describe_sent(publisher, index);
        Some(described.unwrap_or_else(|| system.describe(message, &payload)))
    });
    let sent = sent.or_else(|| record.message(sequence).map(|whole| system.describe(whole.message, &whole.payload)));
    sent.map(|sent| format!("\n  message: {sent}")).unwrap_or_default()
}

/// Attempts to reproduce the difference between two members.
const FOLDS: usize = 8;

/// Folds several times more in this process, and appends the result to a report of differing states or a wrong reply.
/// See [`with_message`].
pub(crate) fn with_difference(
    system: &impl SystemUnderTest,
    seed: u64,
    record: &RunRecord,
    sequence: u64,
    said: &str,
) -> String {
    let text = with_message(system, seed, record, sequence, said);
    if record.steps.is_empty() {
        return text;
    }
    let folds = (0..FOLDS).map(|_| system.reference());
    match folds.into_iter().find_map(|fold| find_difference(system, fold.recording(), record)) {
        Some(FoldDifference { at, what, how }) if at == sequence => {
            format!("{text}\n  folded once more, the {what} part{how}")
        }
        Some(FoldDifference { at, what, how }) => {
            let first = place_and_message(system, seed, record, at);
            format!("{text}\n  folded once more, the {what} part earlier already{how}{first}")
        }
        None => format!("{text}\n  {FOLDS} more folds of the same frames come to the same states and outputs"),
    }
}

struct FoldDifference {
    at: u64,
    what: &'static str,
    how: String,
}

fn find_difference(system: &impl SystemUnderTest, mut fold: Reference, record: &RunRecord) -> Option<FoldDifference> {
    for (sequence, before) in (1..).zip(&record.steps) {
        let step = catch_unwind(AssertUnwindSafe(|| fold.step(&record.frame(sequence)?).ok())).ok()??;
        if let (Some(one), Some(other)) = (&before.state, &step.state)
            && one != other
        {
            let how = format!(" {}", first_difference(one, other, ["in one", "in another"]));
            return Some(FoldDifference { at: sequence, what: "snapshots of the state", how });
        }
        if before.outputs != step.outputs {
            let how = outputs_side_by_side(system, [&before.outputs, &step.outputs], ["in one", "in another"]);
            return Some(FoldDifference { at: sequence, what: "replies, notices or timers", how: format!(":{how}") });
        }
    }
    None
}

fn outputs_side_by_side(system: &impl SystemUnderTest, outputs: [&[HandlerOutput]; 2], sides: [&str; 2]) -> String {
    side_by_side(&|message, payload| system.describe(message, payload), outputs, sides)
}

/// Frees blocks in another order, so that later allocations get other addresses.
fn disturb_memory() {
    let mut blocks: Vec<Vec<u8>> = (0..4096_usize).map(|at| vec![1; 16 + at * 37 % 2_048]).collect();
    let mut kept = Vec::new();
    while !blocks.is_empty() {
        let at = blocks.len() * 7 % 11 % blocks.len();
        let block = blocks.swap_remove(at);
        if kept.len() < 1_500 && blocks.len().is_multiple_of(2) {
            kept.push(block);
        }
    }
    std::mem::forget(kept);
}

/// Changes the number of cores that a handler sees.
fn use_one_core() {
    let mut cores = rustix::thread::CpuSet::new();
    // The current core: several second processes run at a time.
    cores.set(rustix::thread::sched_getcpu());
    let _ = rustix::thread::sched_setaffinity(None, &cores);
}

/// Unnamed, with another identifier than `thread`.
fn on_another_thread<T: Send>(thread: &str, work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    loop {
        // Thread identifiers are unique in a process.
        let done = std::thread::scope(|scope| {
            let work = &mut work;
            let run = move || {
                let is_other = format!("{:?}", std::thread::current().id()) != thread;
                is_other.then(|| work.take()).flatten().map(|work| work())
            };
            scope.spawn(run).join()
        });
        match done {
            Ok(Some(done)) => break done,
            Ok(None) => {}
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
