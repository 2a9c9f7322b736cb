//! Calls as a whole: two callers offer a request each and park for its end, or one gives up; two copies pull and park on their
//! bells; one copy dies, and what it has is revoked. Every call ends once, as what has happened to it allows; no request begins
//! twice without being offered again; no slot is lost; and nobody sleeps for ever, which loom reports as a deadlock.
//!
//! Claims, rings and bells are the shipped ones. What a calling process does with them under its lock, and the thread that is told
//! of deaths, are modelled after `gapless-rpc/src/remote/table`.

use gapless_log::call_table::{CallTable, CallTableShape, CopySide, OfferRings, Taken};
use gapless_log::claim::{ClaimState, Withdrawal};
use gapless_log::{Bell, Rung};
use loom::sync::atomic::{AtomicU64 as LoomU64, Ordering as LoomOrdering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The copy that dies, and the one that lives.
const MORTAL: u32 = 1;
const SURVIVOR: u32 = 2;
const SLOTS: u32 = 2;

/// What others may come between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    /// Any two accesses to memory. Both requests are offered before the copies start.
    Accesses,
    /// Any two operations on claims, rings and bells, each of which is one step; and the accesses of one that goes to sleep.
    Operations,
}

/// How far the first request of the copy that dies has come, if it gets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// It is awake, and has taken nothing.
    BeforeClaim,
    AfterClaim,
    AfterBegin,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Answered { by: u32 },
    Unknown,
    GivenUp { begun: bool },
}

/// A slot, for as long as a call has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    slot: u32,
    generation: u32,
}

/// The calling process.
struct Process {
    table: CallTable,
    state: Mutex<State>,
    bells: [Bell; 2],
    /// Both calls have ended: copies go home. Not loom's, as what follows: what the model looks at, and no part of it.
    is_over: AtomicBool,
    steps: Steps,
    /// Whether loom tries other orders from here on.
    explores: AtomicBool,
    /// loom's again: every operation is a step that depends on all others, where operations are steps.
    operations: LoomU64,
    begun: std::sync::Mutex<Vec<(Ticket, u32)>>,
}

/// What its lock guards.
struct State {
    rings: OfferRings,
    free: Vec<Ticket>,
    /// Slots that a copy may still write to.
    quarantine: Vec<(Ticket, u32)>,
    copies: Vec<u32>,
    next_copy: usize,
}

impl Process {
    fn new(steps: Steps) -> Self {
        let shape = CallTableShape::new(SLOTS, 0).unwrap();
        let state = State {
            rings: OfferRings::new(shape),
            free: (0..SLOTS).map(|slot| Ticket { slot, generation: 0 }).collect(),
            quarantine: Vec::new(),
            copies: vec![MORTAL, SURVIVOR],
            next_copy: 0,
        };
        Self {
            table: CallTable::create(shape).unwrap(),
            state: Mutex::new(state),
            bells: [Bell::create().unwrap(), Bell::create().unwrap()],
            is_over: AtomicBool::new(false),
            steps,
            explores: AtomicBool::new(true),
            operations: LoomU64::new(0),
            begun: std::sync::Mutex::default(),
        }
    }

    /// One operation.
    fn step<T>(&self, operation: impl FnOnce() -> T) -> T {
        if self.steps == Steps::Accesses {
            return operation();
        }
        // Here the others may come.
        self.operations.fetch_add(1, LoomOrdering::SeqCst);
        // Another's operation may wait for a lock.
        let is_outermost = self.explores.swap(false, Ordering::Relaxed);
        if is_outermost {
            loom::stop_exploring();
        }
        let done = operation();
        if is_outermost {
            loom::explore();
            self.explores.store(true, Ordering::Relaxed);
        }
        done
    }

    fn bell(&self, copy: u32) -> &Bell {
        &self.bells[copy as usize - 1]
    }

    /// Takes a slot, offers a request in it, and wakes a worker.
    fn offer(&self) -> Ticket {
        let mut state = self.state.lock().unwrap();
        let Ticket { slot, generation } =
            state.free.pop().expect("a call has its own slot back before it is offered again");
        let generation = generation + 1;
        state.rings.offer(&self.table, 0, slot, generation, (0, false));
        fence(LoomOrdering::SeqCst);
        let count = state.copies.len();
        for index in (0..count).map(|step| (state.next_copy + step) % count) {
            let bell = self.bell(state.copies[index]);
            if bell.is_anyone_idle() && bell.ring() != Rung::Nobody {
                state.next_copy = index + 1;
                break;
            }
        }
        Ticket { slot, generation }
    }

    /// A call has ended or is to be offered again: its slot is free, unless `holder` may still write to it.
    fn finish(&self, ticket: Ticket, holder: Option<u32>) {
        let mut state = self.state.lock().unwrap();
        match holder {
            Some(holder) if state.copies.contains(&holder) => state.quarantine.push((ticket, holder)),
            _ => self.free(&mut state, ticket),
        }
    }

    fn free(&self, state: &mut State, ticket: Ticket) {
        self.table.claim(ticket.slot).free(ticket.generation);
        state.free.push(ticket);
    }

    /// What is in quarantine is free once its copy has answered or is dead.
    fn sweep(&self, state: &mut State) {
        for (ticket, holder) in std::mem::take(&mut state.quarantine) {
            let has_answered = self.table.claim(ticket.slot).load().state() == Some(ClaimState::Answered);
            if has_answered || !state.copies.contains(&holder) {
                self.free(state, ticket);
            } else {
                state.quarantine.push((ticket, holder));
            }
        }
    }

    /// The thread that sleeps on the pidfd: the copy is dead, and does nothing any more.
    fn remove(&self, copy: u32) {
        let mut state = self.state.lock().unwrap();
        state.copies.retain(|number| *number != copy);
        for slot in 0..SLOTS {
            let claim = self.table.claim(slot);
            let is_lost = claim.revoke(copy);
            let seen = claim.load();
            if is_lost || seen.state() == Some(ClaimState::Answered) && seen.holder() == copy {
                self.table.wake(slot);
            }
        }
        self.sweep(&mut state);
        state.copies.iter().for_each(|number| assert_ne!(self.bell(*number).ring(), Rung::Task, "there are no tasks"));
    }

    /// A call, offered again for as long as no handler has begun. All its tickets, the last one first, and how it ended.
    fn call(&self, mut first: Option<Ticket>, gives_up: bool) -> (Vec<Ticket>, Ended) {
        let mut tickets = Vec::new();
        let ended = loop {
            let ticket = first.take().unwrap_or_else(|| self.step(|| self.offer()));
            tickets.insert(0, ticket);
            let (ended, holder) = self.wait(ticket, gives_up);
            self.step(|| self.finish(ticket, holder));
            if let Some(ended) = ended {
                break ended;
            }
        };
        (tickets, ended)
    }

    /// How it ended, or `None` if it had not begun; and who may still write to the slot.
    fn wait(&self, ticket: Ticket, gives_up: bool) -> (Option<Ended>, Option<u32>) {
        let claim = self.table.claim(ticket.slot);
        loop {
            match self.step(|| claim.announce_wait(ticket.generation)) {
                // Its time is over while it sleeps.
                Some(_) if gives_up => return self.withdraw(ticket, |begun| Some(Ended::GivenUp { begun })),
                Some(low_half) => self.table.wait(ticket.slot, low_half, Duration::MAX),
                // Answered, or revoked.
                None => return self.withdraw(ticket, |begun| begun.then_some(Ended::Unknown)),
            }
        }
    }

    fn withdraw(&self, ticket: Ticket, ended: impl Fn(bool) -> Option<Ended>) -> (Option<Ended>, Option<u32>) {
        let withdrawal = self.step(|| self.table.claim(ticket.slot).withdraw(ticket.generation));
        let outcome = match withdrawal {
            Withdrawal::TakenBack | Withdrawal::NotBegun { .. } => ended(false),
            Withdrawal::Begun { .. } => ended(true),
            Withdrawal::Answered => Some(self.answered(ticket)),
            Withdrawal::Lost => panic!("only its call ends it"),
        };
        (outcome, withdrawal.holder())
    }

    fn answered(&self, ticket: Ticket) -> Ended {
        Ended::Answered { by: self.table.reply_header(ticket.slot).status }
    }

    /// A worker of a copy: pulls, and parks when there is nothing, until all is over. With each request it does what `serve` says
    /// until that says no. False then.
    fn work(&self, number: u32, mut serve: impl FnMut(&CopySide, Taken) -> bool) -> bool {
        let copy = CopySide::in_process(&self.table, number);
        loop {
            while let Some(taken) = self.step(|| copy.take(0)) {
                if !serve(&copy, taken) {
                    return false;
                }
            }
            if self.is_over.load(Ordering::Relaxed) {
                return true;
            }
            // That it owes a ring says nothing here: it takes what there is until there is nothing, or dies, which rings.
            let _ =
                self.bell(number).park(Duration::MAX, || copy.has_offers(0) || self.is_over.load(Ordering::Relaxed));
        }
    }

    fn begin(&self, copy: &CopySide, taken: Taken) -> bool {
        let is_wanted = self.step(|| copy.begin(taken));
        if is_wanted {
            let ticket = Ticket { slot: taken.slot, generation: taken.generation };
            self.begun.lock().unwrap().push((ticket, copy.number()));
        }
        is_wanted
    }

    /// The copy that lives.
    fn survive(&self) {
        self.work(SURVIVOR, |copy, taken| {
            self.begin(copy, taken);
            self.step(|| copy.answer(taken, SURVIVOR, &[]));
            true
        });
    }

    /// The copy that dies of its first request, and what its death does.
    fn die(&self, death: Death) {
        let lives = if death == Death::BeforeClaim {
            // The ring that wakes it may be the only one for a request.
            let copy = CopySide::in_process(&self.table, MORTAL);
            self.bell(MORTAL).park(Duration::MAX, || copy.has_offers(0) || self.is_over.load(Ordering::Relaxed));
            false
        } else {
            self.work(MORTAL, |copy, taken| {
                if death == Death::AfterBegin {
                    self.begin(copy, taken);
                }
                false
            })
        };
        if !lives {
            self.step(|| self.remove(MORTAL));
        }
    }

    /// What has happened allows how a call ended.
    fn check_call(&self, (tickets, ended): &(Vec<Ticket>, Ended), death: Death) {
        let begun = self.begun.lock().unwrap();
        let begun: Vec<_> = begun.iter().filter(|(ticket, _)| tickets.contains(ticket)).collect();
        assert!(begun.len() <= 1, "it began {begun:?}");
        let begun = begun.first().map(|(ticket, copy)| {
            assert_eq!(*ticket, tickets[0], "what had begun is not offered again");
            *copy
        });
        assert!(tickets.len() <= 2, "one copy dies, so it is offered again once at most: {tickets:?}");
        match *ended {
            Ended::Answered { by } => assert_eq!((begun, by), (Some(SURVIVOR), SURVIVOR)),
            Ended::Unknown => assert_eq!((begun, death), (Some(MORTAL), Death::AfterBegin)),
            Ended::GivenUp { begun: had_begun } => assert_eq!(begun.is_some(), had_begun),
        }
    }
}

/// All interleavings with at most so many preemptions.
fn check(death: Death, gives_up: bool, steps: Steps) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match steps {
        // With two it takes hours.
        Steps::Accesses => Some(1),
        // Or as many as `LOOM_MAX_PREEMPTIONS` says.
        Steps::Operations => builder.preemption_bound.or(Some(2)),
    };
    let interleavings = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&interleavings);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let process = Arc::new(Process::new(steps));
        let offered = [(); 2].map(|()| (steps == Steps::Accesses).then(|| process.offer()));
        let start = |run: fn(&Process, Death)| {
            let process = Arc::clone(&process);
            thread::spawn(move || run(&process, death))
        };
        let copies = [start(Process::die), start(|process, _| process.survive())];
        let caller = Arc::clone(&process);
        let first = thread::spawn(move || caller.call(offered[0], gives_up));
        let second = process.call(offered[1], false);
        let first = first.join().unwrap();
        // What is left is to go home.
        process.is_over.store(true, Ordering::Relaxed);
        if process.explores.swap(false, Ordering::Relaxed) {
            loom::stop_exploring();
        }
        process.bells.iter().for_each(Bell::ring_all);
        copies.into_iter().for_each(|copy| copy.join().unwrap());
        process.check_call(&first, death);
        process.check_call(&second, death);
        let mut state = process.state.lock().unwrap();
        process.sweep(&mut state);
        assert_eq!(state.free.len(), SLOTS as usize, "a slot is lost: {:?}", state.quarantine);
    });
    let interleavings = interleavings.load(Ordering::Relaxed);
    println!("{death:?}, gives up: {gives_up}, {steps:?}: {interleavings} interleavings");
}

#[test]
fn calls_end_when_a_copy_dies_before_it_takes_one() {
    check(Death::BeforeClaim, false, Steps::Operations);
}

#[test]
fn calls_end_when_a_copy_dies_before_its_handler_begins() {
    check(Death::AfterClaim, false, Steps::Operations);
}

#[test]
fn calls_end_when_a_copy_dies_while_its_handler_works() {
    check(Death::AfterBegin, false, Steps::Operations);
}

#[test]
fn one_gives_up_while_a_copy_dies_before_its_handler_begins() {
    check(Death::AfterClaim, true, Steps::Operations);
}

#[test]
fn one_gives_up_while_a_copy_dies_while_its_handler_works() {
    check(Death::AfterBegin, true, Steps::Operations);
}

#[test]
fn calls_end_wherever_one_access_comes_between_when_a_copy_dies_before_its_handler_begins() {
    check(Death::AfterClaim, false, Steps::Accesses);
}

#[test]
fn calls_end_wherever_one_access_comes_between_when_one_gives_up_and_a_copy_dies() {
    check(Death::AfterBegin, true, Steps::Accesses);
}
