//! [`IdleWorkers`]: the idle workers of a route, under the lock of its queue. It only selects whom to wake; the wake-up
//! happens without the lock, because a task's waker may run arbitrary code.
//!
//! Last in, first out, so that few workers stay warm. A task that has just worked looks once more after other tasks of
//! its executor have run, and counts as woken until then: with fifty callers and workers on two cores that gave 1.2
//! million calls a second instead of 0.8.
//!
//! No wake-up is lost: a worker that finds nothing is entered in the same critical section, and a thread that queues
//! work looks here in the section that queues it. The token of `std::thread::park` or the contract of `Waker` keeps a
//! wake-up before parking. `tests/loom` explores the interleavings. A futex round trip took 4.7 µs, an eventfd 8.4.

use super::sync::Thread;
use gapless_agent::foreign;
use std::task::Waker;

#[derive(Debug)]
pub(super) enum Sleeper {
    Thread(Thread),
    Task(Waker),
}

impl Sleeper {
    /// Must not run under a lock: a task's waker may run arbitrary code.
    pub(super) fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => foreign::wake(waker),
        }
    }
}

#[derive(Debug)]
pub(super) enum WorkerPause {
    /// Leaves, and may look again at any time.
    Leaves,
    /// Looks once more after other tasks have run; counts as woken.
    Lingers,
    Sleeps(Sleeper),
}

pub(super) type WorkerNumber = usize;

#[derive(Debug)]
enum WorkerState {
    Vacant,
    Busy,
    /// With its index on the stack.
    Idle(usize, Sleeper),
    /// A worker that has not arrived yet.
    Woken,
}

#[derive(Debug, Default)]
pub(super) struct IdleWorkers {
    states: Vec<WorkerState>,
    vacant: Vec<WorkerNumber>,
    stack: Vec<WorkerNumber>,
    woken: usize,
    workers: usize,
}

impl IdleWorkers {
    pub(super) fn enter(&mut self) -> WorkerNumber {
        self.workers += 1;
        if let Some(number) = self.vacant.pop() {
            self.states[number] = WorkerState::Busy;
            return number;
        }
        self.states.push(WorkerState::Busy);
        self.states.len() - 1
    }

    /// The sleeper is returned to be dropped without the lock.
    pub(super) fn leave(&mut self, number: WorkerNumber) -> Option<Sleeper> {
        let sleeper = self.arrive(number);
        self.states[number] = WorkerState::Vacant;
        self.vacant.push(number);
        self.workers -= 1;
        sleeper
    }

    /// Returns the unused sleeper.
    pub(super) fn arrive(&mut self, number: WorkerNumber) -> Option<Sleeper> {
        match std::mem::replace(&mut self.states[number], WorkerState::Busy) {
            WorkerState::Vacant | WorkerState::Busy => None,
            WorkerState::Woken => {
                self.woken -= 1;
                None
            }
            WorkerState::Idle(place, sleeper) => {
                self.stack.swap_remove(place);
                if let Some(&moved) = self.stack.get(place)
                    && let WorkerState::Idle(moved_place, _) = &mut self.states[moved]
                {
                    *moved_place = place;
                }
                Some(sleeper)
            }
        }
    }

    pub(super) fn pause(&mut self, number: WorkerNumber, pause: WorkerPause) {
        debug_assert!(matches!(self.states[number], WorkerState::Busy), "it has arrived");
        match pause {
            WorkerPause::Leaves => {}
            WorkerPause::Lingers => {
                self.states[number] = WorkerState::Woken;
                self.woken += 1;
            }
            WorkerPause::Sleeps(sleeper) => {
                self.states[number] = WorkerState::Idle(self.stack.len(), sleeper);
                self.stack.push(number);
            }
        }
    }

    /// At most one wake-up for each request: `None` if enough workers are on their way.
    #[inline]
    pub(super) fn next_for(&mut self, queued: usize) -> Option<Sleeper> {
        if self.woken >= queued { None } else { self.next() }
    }

    pub(super) fn next(&mut self) -> Option<Sleeper> {
        let number = self.stack.pop()?;
        match std::mem::replace(&mut self.states[number], WorkerState::Woken) {
            WorkerState::Idle(_, sleeper) => {
                self.woken += 1;
                Some(sleeper)
            }
            other => unreachable!("worker {number} is on the stack of the idle and {other:?}"),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.workers
    }

    pub(super) fn idle(&self) -> usize {
        self.stack.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::Random;
    use gapless_testkit::wake_count::WakeCount;
    use std::sync::Arc;

    #[test]
    fn random_steps_keep_counts() {
        let mut random = Random::seeded();
        let mut idle = IdleWorkers::default();
        let mut workers: Vec<(WorkerNumber, Arc<WakeCount>, bool)> = Vec::new();
        for _ in 0..100_000 {
            let chosen = (!workers.is_empty()).then(|| random.below(workers.len() as u64) as usize);
            match (random.below(5), chosen) {
                (0, _) if workers.len() < 40 => workers.push((idle.enter(), Arc::default(), false)),
                (1, Some(chosen)) if random.happens(200) => {
                    let (number, _, was_idle) = workers.swap_remove(chosen);
                    assert_eq!(idle.leave(number).is_some(), was_idle);
                }
                (2, Some(chosen)) => {
                    let (number, count, is_idle) = &mut workers[chosen];
                    assert_eq!(idle.arrive(*number).is_some(), *is_idle);
                    idle.pause(*number, WorkerPause::Sleeps(Sleeper::Task(count.clone().into())));
                    *is_idle = true;
                }
                (3, Some(chosen)) => {
                    let (number, _, is_idle) = &mut workers[chosen];
                    assert_eq!(idle.arrive(*number).is_some(), std::mem::take(is_idle));
                }
                _ => {
                    if let Some(sleeper) = idle.next() {
                        sleeper.wake();
                        let woken = workers.iter_mut().find(|(_, count, _)| count.take() == 1).unwrap();
                        assert!(std::mem::take(&mut woken.2), "only the idle are woken");
                    } else {
                        assert!(workers.iter().all(|(_, _, is_idle)| !is_idle), "an idle one was found");
                    }
                }
            }
            assert_eq!(idle.len(), workers.len());
            assert_eq!(idle.idle(), workers.iter().filter(|worker| worker.2).count());
        }
    }

    #[test]
    fn request_costs_at_most_one_wake_up() {
        let mut idle = IdleWorkers::default();
        let numbers: Vec<_> = (0..3).map(|_| idle.enter()).collect();
        numbers
            .iter()
            .for_each(|&number| idle.pause(number, WorkerPause::Sleeps(Sleeper::Task(Waker::noop().clone()))));
        assert!(idle.next_for(0).is_none());
        assert!(idle.next_for(1).is_some());
        assert!(idle.next_for(1).is_none(), "one is on its way for it");
        assert!(idle.next_for(2).is_some());
        assert!(idle.arrive(2).is_none(), "the last in was the first out");
        assert!(idle.next_for(1).is_none());
        assert!(idle.next_for(2).is_some());
        assert!(idle.next_for(9).is_none(), "all are woken");
    }

    #[test]
    fn lingerer_counts_as_woken() {
        let mut idle = IdleWorkers::default();
        let (lingering, sleeping) = (idle.enter(), idle.enter());
        idle.pause(sleeping, WorkerPause::Sleeps(Sleeper::Task(Waker::noop().clone())));
        idle.pause(lingering, WorkerPause::Lingers);
        assert!(idle.next_for(1).is_none());
        assert!(idle.next_for(2).is_some());
        assert!(idle.arrive(lingering).is_none());
        idle.pause(lingering, WorkerPause::Leaves);
        assert!(idle.arrive(sleeping).is_none());
        assert_eq!((idle.idle(), idle.woken), (0, 0));
    }
}
