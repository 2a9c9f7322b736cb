//! [`IdleWorkers`]: which workers of a route wait for work, and how each is woken.
//!
//! Pure: it lies under the lock of the queue and only says whom to wake; waking is done when the lock is free, because a
//! task's waker may run anything. Last in, first out, so that few workers stay warm. A task that has just worked lingers: it looks
//! once more when others of its executor have run, and counts as woken until then. Fifty callers of fifty workers made
//! 1.2 million calls a second on two cores in place of 0.8.
//!
//! No wake-up is lost, and the argument is the lock's: a worker that finds nothing is entered here in the same critical
//! section, and a thread that brings work looks here in the critical section that brings it. So either the worker found the work, or
//! that thread finds the worker. A wake-up between entering and parking is kept: a thread's by the token of
//! `std::thread::park`, a task's by the promise of `Waker`. `tests/loom` runs the interleavings. Threads park by a futex and not
//! by an eventfd, because that took 4.7 µs a round trip in place of 8.4 on two cores.

use super::sync::Thread;
use gapless_agent::foreign;
use std::task::Waker;

/// How a waiting worker or caller is woken.
#[derive(Debug)]
pub(super) enum Sleeper {
    /// It parks by `std::thread::park`.
    Thread(Thread),
    /// A task of any executor.
    Task(Waker),
}

impl Sleeper {
    /// Not under a lock: a task's waker may run anything.
    pub(super) fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => foreign::wake(waker),
        }
    }
}

/// What a worker does that finds nothing.
#[derive(Debug)]
pub(super) enum Pause {
    /// It looks again by itself at any time.
    Leaves,
    /// It looks once more as soon as others have had their turn: as one that has been woken.
    Lingers,
    /// It sleeps until it is woken.
    Sleeps(Sleeper),
}

/// A worker's number in its route; given again after it has left.
pub(super) type WorkerNumber = usize;

#[derive(Debug)]
enum State {
    /// Nobody has this number.
    Vacant,
    /// It works, or looks for work.
    Busy,
    /// It waits, at that place of the stack.
    Idle(usize, Sleeper),
    /// It has been woken and has not come yet.
    Woken,
}

/// The workers of a route.
#[derive(Debug, Default)]
pub(super) struct IdleWorkers {
    states: Vec<State>,
    vacant: Vec<WorkerNumber>,
    stack: Vec<WorkerNumber>,
    woken: usize,
    workers: usize,
}

impl IdleWorkers {
    /// A new worker, busy at first.
    pub(super) fn enter(&mut self) -> WorkerNumber {
        self.workers += 1;
        if let Some(number) = self.vacant.pop() {
            self.states[number] = State::Busy;
            return number;
        }
        self.states.push(State::Busy);
        self.states.len() - 1
    }

    /// A worker leaves for good. Its sleeper is given back to be dropped without the lock.
    pub(super) fn leave(&mut self, number: WorkerNumber) -> Option<Sleeper> {
        let sleeper = self.arrive(number);
        self.states[number] = State::Vacant;
        self.vacant.push(number);
        self.workers -= 1;
        sleeper
    }

    /// A worker looks for work: from now on it is busy. The sleeper that it left, if nobody has used it, is given back.
    pub(super) fn arrive(&mut self, number: WorkerNumber) -> Option<Sleeper> {
        match std::mem::replace(&mut self.states[number], State::Busy) {
            State::Vacant | State::Busy => None,
            State::Woken => {
                self.woken -= 1;
                None
            }
            State::Idle(place, sleeper) => {
                self.stack.swap_remove(place);
                if let Some(&moved) = self.stack.get(place)
                    && let State::Idle(moved_place, _) = &mut self.states[moved]
                {
                    *moved_place = place;
                }
                Some(sleeper)
            }
        }
    }

    /// A worker that has just arrived found nothing.
    pub(super) fn pause(&mut self, number: WorkerNumber, pause: Pause) {
        debug_assert!(matches!(self.states[number], State::Busy), "it has arrived");
        match pause {
            Pause::Leaves => {}
            Pause::Lingers => {
                self.states[number] = State::Woken;
                self.woken += 1;
            }
            Pause::Sleeps(sleeper) => {
                self.states[number] = State::Idle(self.stack.len(), sleeper);
                self.stack.push(number);
            }
        }
    }

    /// For `queued` requests: somebody to be woken, unless as many have been woken already and not come yet. So each request
    /// costs one wake-up at most.
    #[inline]
    pub(super) fn next_for(&mut self, queued: usize) -> Option<Sleeper> {
        if self.woken >= queued { None } else { self.next() }
    }

    /// The next to be woken, whatever there is to do.
    pub(super) fn next(&mut self) -> Option<Sleeper> {
        let number = self.stack.pop()?;
        match std::mem::replace(&mut self.states[number], State::Woken) {
            State::Idle(_, sleeper) => {
                self.woken += 1;
                Some(sleeper)
            }
            other => unreachable!("worker {number} is on the stack of the idle and {other:?}"),
        }
    }

    /// How many have entered and not left.
    pub(super) const fn len(&self) -> usize {
        self.workers
    }

    /// How many wait.
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
    fn whatever_comes_in_whatever_order_the_books_are_right() {
        let mut random = Random::seeded();
        let mut idle = IdleWorkers::default();
        // Number, and whether it is idle as far as this test knows.
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
                    idle.pause(*number, Pause::Sleeps(Sleeper::Task(count.clone().into())));
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
    fn a_request_costs_one_wake_up_at_most() {
        let mut idle = IdleWorkers::default();
        let numbers: Vec<_> = (0..3).map(|_| idle.enter()).collect();
        numbers.iter().for_each(|&number| idle.pause(number, Pause::Sleeps(Sleeper::Task(Waker::noop().clone()))));
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
    fn one_that_lingers_is_on_its_way_and_the_next_is_woken_for_more() {
        let mut idle = IdleWorkers::default();
        let (lingering, sleeping) = (idle.enter(), idle.enter());
        idle.pause(sleeping, Pause::Sleeps(Sleeper::Task(Waker::noop().clone())));
        idle.pause(lingering, Pause::Lingers);
        assert!(idle.next_for(1).is_none());
        assert!(idle.next_for(2).is_some());
        assert!(idle.arrive(lingering).is_none());
        idle.pause(lingering, Pause::Leaves);
        assert!(idle.arrive(sleeping).is_none());
        assert_eq!((idle.idle(), idle.woken), (0, 0));
    }
}
