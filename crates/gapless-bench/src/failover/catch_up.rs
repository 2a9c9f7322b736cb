//! A follower that was killed, missed frames and is started again catches up: on an idle cluster, under live messages
//! at a rate, and under saturation.

use super::cluster::BenchCluster;
use super::{CLIENTS, FILLERS, failed, share};
use crate::Result;
use gapless::prelude::Duration;
use gapless_load::failover::load::{ClientRecords, FailoverClient, elapsed_ns};
use gapless_measure::reporting::check_interrupted;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// First owner of these clients' numbers.
const OWNERS: u64 = FILLERS + 100;
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatchUpLoad {
    Idle,
    Live,
    Saturated,
}

impl CatchUpLoad {
    pub const ALL: [Self; 3] = [Self::Idle, Self::Live, Self::Saturated];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Live => "live",
            Self::Saturated => "saturated",
        }
    }

    /// Frames a second that the follower has to take at least.
    pub const fn target_per_s(self) -> Option<f64> {
        match self {
            Self::Idle => Some(1_000_000.0),
            Self::Live => Some(500_000.0),
            Self::Saturated => None,
        }
    }
}

/// Share of its rate that the cluster must keep while a saturated follower catches up; the base is the rate afterwards,
/// because a caught-up member also costs CPU.
pub(super) const KEPT_TARGET: f64 = 0.7;

#[derive(Clone, Copy, Debug)]
pub(super) struct CatchUpPlan {
    pub lag_frames: u64,
    pub live_per_s: u64,
    /// Duration of measuring the rate without the follower.
    pub window: Duration,
    /// Under saturation, a follower that is not level after this counts as not caught up.
    pub saturated_max: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct CatchUpResult {
    pub case: CatchUpLoad,
    /// Lag in frames when it had started; the time begins there.
    pub gap_begin: u64,
    /// Lag in frames at the end; 0 if level.
    pub gap_end: u64,
    pub moved: u64,
    pub elapsed_ns: u64,
    /// Frames a second that the leader handled: without the follower, and while it caught up.
    pub before_per_s: f64,
    pub meanwhile_per_s: f64,
    /// The same with all members level, if it came so far.
    pub after_per_s: f64,
}

impl CatchUpResult {
    pub fn moved_per_s(&self) -> f64 {
        per_s(self.moved, self.elapsed_ns)
    }

    pub const fn is_level(&self) -> bool {
        self.gap_end == 0
    }

    /// Kept part of the rate with all members level, or of that without the follower if it did not catch up.
    pub fn kept(&self) -> Option<f64> {
        let rate_per_s = if self.is_level() { self.after_per_s } else { self.before_per_s };
        (self.case == CatchUpLoad::Saturated && rate_per_s > 0.0).then(|| self.meanwhile_per_s / rate_per_s)
    }

    /// Under saturation: the gap shrinks, and the cluster goes on.
    pub fn is_met(&self) -> bool {
        match self.case.target_per_s() {
            Some(target) => self.is_level() && self.moved_per_s() >= target,
            None => self.gap_end < self.gap_begin && self.kept().is_some_and(|kept| kept >= KEPT_TARGET),
        }
    }
}

#[derive(Default)]
pub(super) struct CatchUpResults {
    pub all: Vec<CatchUpResult>,
    pub sent: Vec<(u64, u64)>,
    pub lost: u64,
    pub doubled: u64,
}

impl CatchUpResults {
    fn take(&mut self, owner: u64, seen: &ClientRecords) {
        self.sent.push((owner, seen.records.len() as u64));
        self.lost += seen.unanswered();
        self.doubled += seen.doubled;
    }
}

fn per_s(count: u64, elapsed_ns: u64) -> f64 {
    count as f64 * 1e9 / elapsed_ns.max(1) as f64
}

pub(super) fn run(
    cluster: &mut BenchCluster<'_>,
    plan: CatchUpPlan,
    interrupted: &AtomicBool,
    look: &mut dyn FnMut(&str) -> Result<()>,
    found: &mut CatchUpResults,
) -> Result<()> {
    for (number, case) in (0..).zip(CatchUpLoad::ALL) {
        look(&format!("a follower catches up, {}", case.name()))?;
        let owners = OWNERS + number * 2 * CLIENTS;
        one(cluster, case, plan, (owners, interrupted), found)?;
    }
    Ok(())
}

fn one(
    cluster: &mut BenchCluster<'_>,
    case: CatchUpLoad,
    plan: CatchUpPlan,
    (owners, interrupted): (u64, &AtomicBool),
    found: &mut CatchUpResults,
) -> Result<()> {
    let leader = cluster.leader()?;
    let follower = cluster.follower(leader)?;
    let sockets = cluster.sockets();
    cluster.wait_until_level()?;
    let had = cluster.status(follower)?.handled;
    cluster.kill(follower);
    cluster.reap(follower);
    let fill = |owner, count| FailoverClient::new(&sockets, owner, interrupted)?.fill(count);
    clients(owners, |owner, number| fill(owner, share(plan.lag_frames, number)), found)?;
    let stop = AtomicBool::new(false);
    let load = |owner, number| live(&sockets, (owner, number), (case, plan.live_per_s), &stop, interrupted);
    let (seen, caught_up) = std::thread::scope(|scope| {
        let load = &load;
        let threads: Vec<_> = (0..CLIENTS)
            .filter(|_| case != CatchUpLoad::Idle)
            .map(|number| (owners + CLIENTS + number, number))
            .map(|(owner, number)| (owner, scope.spawn(move || load(owner, number))))
            .collect();
        let caught_up = watch(cluster, case, plan, (leader, follower, had), interrupted);
        stop.store(true, Ordering::Relaxed);
        let join = |(owner, thread): (u64, std::thread::ScopedJoinHandle<'_, Result<ClientRecords>>)| {
            Ok((owner, thread.join().unwrap_or_else(|_| Err(failed("a client panicked")))?))
        };
        (threads.into_iter().map(join).collect::<Result<Vec<_>>>(), caught_up)
    });
    // A client's error causes the effects of its absence.
    for (owner, seen) in seen? {
        found.take(owner, &seen);
    }
    found.all.push(caught_up?);
    cluster.wait_until_level()
}

fn clients(
    owners: u64,
    run: impl Fn(u64, u64) -> Result<ClientRecords> + Sync,
    found: &mut CatchUpResults,
) -> Result<()> {
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || run(owners + number, number))).collect();
        for (owner, thread) in (owners..).zip(threads) {
            found.take(owner, &thread.join().unwrap_or_else(|_| Err(failed("a client panicked")))?);
        }
        Ok(())
    })
}

fn live(
    sockets: &[PathBuf],
    (owner, number): (u64, u64),
    (case, live_per_s): (CatchUpLoad, u64),
    stop: &AtomicBool,
    interrupted: &AtomicBool,
) -> Result<ClientRecords> {
    let sender = FailoverClient::new(sockets, owner, interrupted)?;
    if case == CatchUpLoad::Saturated {
        return sender.flood(stop);
    }
    let interval_ns = 1_000_000_000 * CLIENTS / live_per_s;
    sender.run(Instant::now(), (interval_ns, number * interval_ns / CLIENTS), stop)
}

fn watch(
    cluster: &mut BenchCluster<'_>,
    case: CatchUpLoad,
    plan: CatchUpPlan,
    (leader, follower, had): (usize, usize, u64),
    interrupted: &AtomicBool,
) -> Result<CatchUpResult> {
    let handled = |cluster: &mut BenchCluster<'_>, member| -> Result<u64> { Ok(cluster.status(member)?.handled) };
    // The rate of the cluster without the follower; clients have begun by then.
    if case != CatchUpLoad::Idle {
        std::thread::sleep(plan.window / 2);
    }
    let (begin, first) = (Instant::now(), handled(cluster, leader)?);
    std::thread::sleep(plan.window);
    let before_per_s = per_s(handled(cluster, leader)?.saturating_sub(first), elapsed_ns(begin));
    cluster.start_one(follower)?;
    // From the first report of its position: reading its own journal is no catching up.
    let patience = Instant::now();
    let has = loop {
        match handled(cluster, follower)? {
            has if has >= had => break has,
            has if patience.elapsed() > TIMEOUT => {
                return Err(failed(format!("member {follower} had {had} frames, and says {has}")));
            }
            _ => std::thread::sleep(Duration::from_micros(200)),
        }
    };
    let (begin, released) = (Instant::now(), handled(cluster, leader)?);
    let time_max = if case == CatchUpLoad::Saturated { plan.saturated_max } else { TIMEOUT };
    loop {
        // The leader is asked first, so that its position is not ahead of the comparison.
        let goal = handled(cluster, leader)?;
        let reached = handled(cluster, follower)?;
        let elapsed_ns = elapsed_ns(begin);
        let is_late = begin.elapsed() > time_max;
        if is_late && case != CatchUpLoad::Saturated {
            let (gap, seconds) = (goal.saturating_sub(reached), time_max.as_secs());
            return Err(failed(format!("member {follower} is {gap} frames behind {seconds} s after its start")));
        }
        if reached >= goal || is_late {
            let begin = Instant::now();
            std::thread::sleep(if case == CatchUpLoad::Idle { Duration::ZERO } else { plan.window });
            let after_per_s = per_s(handled(cluster, leader)?.saturating_sub(goal), self::elapsed_ns(begin));
            return Ok(CatchUpResult {
                case,
                gap_begin: released.saturating_sub(has),
                gap_end: goal.saturating_sub(reached),
                moved: reached.saturating_sub(has),
                elapsed_ns,
                before_per_s,
                meanwhile_per_s: per_s(goal.saturating_sub(released), elapsed_ns),
                after_per_s,
            });
        }
        check_interrupted(super::NAME, interrupted)?;
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught_up(case: CatchUpLoad, gap_end: u64, moved: u64, meanwhile_per_s: f64) -> CatchUpResult {
        let (gap_begin, elapsed_ns) = (1_000, 1_000_000_000);
        CatchUpResult {
            case,
            gap_begin,
            gap_end,
            moved,
            elapsed_ns,
            before_per_s: 200.0,
            meanwhile_per_s,
            after_per_s: 100.0,
        }
    }

    #[test]
    fn a_target_is_met_by_rate_and_by_gap() {
        assert!(caught_up(CatchUpLoad::Idle, 0, 1_000_000, 0.0).is_met());
        assert!(!caught_up(CatchUpLoad::Idle, 0, 999_999, 0.0).is_met());
        assert!(!caught_up(CatchUpLoad::Idle, 1, 2_000_000, 0.0).is_met(), "it is not level");
        assert!(caught_up(CatchUpLoad::Live, 0, 500_000, 0.0).is_met());
        assert!(caught_up(CatchUpLoad::Saturated, 0, 1, 70.0).is_met());
        assert!(caught_up(CatchUpLoad::Saturated, 999, 1, 140.0).is_met());
        assert!(
            !caught_up(CatchUpLoad::Saturated, 999, 1, 139.0).is_met(),
            "of the rate without it, as it is not level"
        );
        assert!(!caught_up(CatchUpLoad::Saturated, 1_000, 1, 200.0).is_met(), "the gap does not shrink");
        assert!(!caught_up(CatchUpLoad::Saturated, 0, 1, 69.0).is_met(), "the cluster does not go on");
        assert_eq!(caught_up(CatchUpLoad::Live, 0, 1, 50.0).kept(), None);
    }
}
