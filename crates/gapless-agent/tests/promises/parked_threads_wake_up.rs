//! The longest park is an hour, so that a lost wake-up hangs the test instead of being hidden by a timeout.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use gapless_agent::{Agent, AgentError, AgentThread, Clock, IdleStrategy, Now, ThreadSpec, WakeFd, Waker};

const PARKS_AT_ONCE: IdleStrategy =
    IdleStrategy::SpinYieldPark { spin_ns: 0, yield_ns: 0, park_ns_max: 3_600_000_000_000 };

struct Consumer {
    published: Arc<AtomicU64>,
    consumed: Arc<AtomicU64>,
    polls: Arc<AtomicU64>,
    deadline_ns: Arc<AtomicU64>,
    /// In shared memory, for wakers in another process.
    armed: Arc<AtomicBool>,
}

#[derive(Clone, Default)]
struct Board {
    published: Arc<AtomicU64>,
    consumed: Arc<AtomicU64>,
    polls: Arc<AtomicU64>,
    deadline_ns: Arc<AtomicU64>,
    armed: Arc<AtomicBool>,
}

impl Board {
    fn consumer(&self) -> Vec<Box<dyn Agent>> {
        let Board { published, consumed, polls, deadline_ns, armed } = self.clone();
        vec![Box::new(Consumer { published, consumed, polls, deadline_ns, armed })]
    }
}

impl Agent for Consumer {
    fn name(&self) -> &str {
        "consumer"
    }
    fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        let published = self.published.load(Ordering::Acquire);
        let work = published - self.consumed.swap(published, Ordering::AcqRel);
        Ok(work as usize)
    }
    fn arm(&mut self) {
        self.armed.store(true, Ordering::Relaxed);
    }
    fn disarm(&mut self) {
        self.armed.store(false, Ordering::Relaxed);
    }
    fn next_deadline_ns(&self) -> Option<u64> {
        Some(self.deadline_ns.load(Ordering::SeqCst)).filter(|&ns| ns > 0)
    }
}

fn spec(idle: IdleStrategy) -> ThreadSpec {
    ThreadSpec { idle, ..ThreadSpec::new("consumer") }
}

fn wait_until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn every_message_is_seen() {
    let board = Board::default();
    let waker = Waker::new().unwrap();
    let thread = AgentThread::spawn(spec(PARKS_AT_ONCE), board.consumer(), Clock::system(), waker.clone()).unwrap();
    let senders: Vec<_> = (0..3)
        .map(|_| {
            let (board, waker) = (board.clone(), waker.clone());
            std::thread::spawn(move || {
                for _ in 0..10_000 {
                    let mine = board.published.fetch_add(1, Ordering::AcqRel) + 1;
                    waker.wake();
                    while board.consumed.load(Ordering::Acquire) < mine {
                        std::hint::spin_loop();
                    }
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    thread.stop();
    thread.join().unwrap();
    assert_eq!(board.consumed.load(Ordering::SeqCst), 30_000);
}

#[test]
fn eventfd_alone_wakes_the_thread() {
    let board = Board::default();
    let waker = Waker::new().unwrap();
    let fd: OwnedFd = waker.duplicate_fd().unwrap();
    let thread = AgentThread::spawn(spec(PARKS_AT_ONCE), board.consumer(), Clock::system(), waker).unwrap();
    let remote = WakeFd::new(fd);
    for sequence in 1..=10_000 {
        board.published.store(sequence, Ordering::Release);
        fence(Ordering::SeqCst);
        if board.armed.load(Ordering::Relaxed) {
            remote.signal();
        }
        while board.consumed.load(Ordering::Acquire) < sequence {
            std::hint::spin_loop();
        }
    }
    drop(thread);
}

#[test]
fn idle_thread_parks_and_stops() {
    let board = Board::default();
    let waker = Waker::new().unwrap();
    let thread = AgentThread::spawn(spec(PARKS_AT_ONCE), board.consumer(), Clock::system(), waker.clone()).unwrap();
    wait_until(|| waker.is_parked() && board.polls.load(Ordering::SeqCst) >= 2);
    let polls = board.polls.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(50));
    let further = board.polls.load(Ordering::SeqCst) - polls;
    assert!(further <= 1, "a parked thread polls nothing; it has polled {further} times");
    board.published.store(1, Ordering::Release);
    waker.wake();
    wait_until(|| board.consumed.load(Ordering::SeqCst) == 1);
    thread.stop();
    thread.join().unwrap();
}

#[test]
fn deadline_ends_a_park() {
    let board = Board::default();
    let clock = Clock::system();
    board.deadline_ns.store(clock.now().monotonic_ns + 20_000_000, Ordering::SeqCst);
    let waker = Waker::new().unwrap();
    let thread = AgentThread::spawn(spec(PARKS_AT_ONCE), board.consumer(), clock.clone(), waker.clone()).unwrap();
    let deadline_ns = board.deadline_ns.load(Ordering::SeqCst);
    board.published.store(1, Ordering::Release);
    wait_until(|| board.consumed.load(Ordering::SeqCst) == 1);
    board.deadline_ns.store(0, Ordering::SeqCst);
    wait_until(|| clock.now().monotonic_ns >= deadline_ns && waker.is_parked());
    thread.stop();
    thread.join().unwrap();
}

#[test]
fn back_off_needs_no_wake_up() {
    let board = Board::default();
    let waker = Waker::new().unwrap();
    let sleeps_long =
        IdleStrategy::BackOff { spin_ns: 0, yield_ns: 0, sleep_ns_min: 1_000, sleep_ns_max: 3_600_000_000_000 };
    let thread = AgentThread::spawn(spec(sleeps_long), board.consumer(), Clock::system(), waker.clone()).unwrap();
    wait_until(|| board.polls.load(Ordering::SeqCst) > 3);
    assert!(!waker.is_parked(), "not parked any more");
    thread.stop();
    thread.join().unwrap();
    for idle in [IdleStrategy::Spin, IdleStrategy::SPIN_YIELD, IdleStrategy::BACK_OFF] {
        let board = Board::default();
        let waker = Waker::new().unwrap();
        let thread = AgentThread::spawn(spec(idle), board.consumer(), Clock::system(), waker.clone()).unwrap();
        board.published.store(5, Ordering::Release);
        waker.wake();
        wait_until(|| board.consumed.load(Ordering::SeqCst) == 5);
        thread.stop();
        thread.join().unwrap();
    }
}

#[test]
fn only_parked_thread_costs_a_syscall() {
    let waker = Waker::new().unwrap();
    let readable = |waker: &Waker| {
        let fd = waker.wake_fd();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    };
    waker.wake();
    assert!(!readable(&waker), "awake: no signal");
    waker.announce();
    assert!(waker.is_parked());
    waker.wake();
    assert!(readable(&waker) && !waker.is_parked());
    waker.wait(u64::MAX);
    assert!(!readable(&waker), "the wait consumes the signal");
    waker.withdraw();
    assert!(waker.park(u64::MAX, || true), "work that is found keeps it from waiting");
    waker.wake();
    assert!(!readable(&waker));
}

/// A sender publishes after the last idle poll and before the announcement is visible, so it wakes no thread; the agent
/// plays that sender, in `arm`.
struct WorstMoment {
    waker: Waker,
    armed: bool,
    pending: bool,
    rounds: Arc<AtomicU64>,
}

impl Agent for WorstMoment {
    fn name(&self) -> &str {
        "worst moment"
    }
    fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.armed && !self.waker.is_parked() {
            return Err("polled after arming, but a waker would not know that the thread parks".into());
        }
        if !std::mem::replace(&mut self.pending, false) {
            return Ok(0);
        }
        self.rounds.fetch_add(1, Ordering::SeqCst);
        Ok(1)
    }
    fn arm(&mut self) {
        self.armed = true;
        self.pending = self.rounds.load(Ordering::SeqCst) < 1_000;
    }
    fn disarm(&mut self) {
        self.armed = false;
    }
}

#[test]
fn work_before_the_wait_is_found() {
    let rounds = Arc::new(AtomicU64::new(0));
    let waker = Waker::new().unwrap();
    let agent = WorstMoment { waker: waker.clone(), armed: false, pending: false, rounds: rounds.clone() };
    let thread = AgentThread::spawn(spec(PARKS_AT_ONCE), vec![Box::new(agent)], Clock::system(), waker).unwrap();
    wait_until(|| rounds.load(Ordering::SeqCst) == 1_000 || thread.has_ended());
    thread.stop();
    thread.join().unwrap();
}
