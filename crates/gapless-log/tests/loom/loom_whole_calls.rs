//! Two callers offer a request each, or one gives up; two instances pull; one dies, and its requests are revoked. Every
//! call ends once; no request begins twice without being offered again; no slot is lost; no thread sleeps for ever. The
//! caller's actions under its lock, and the thread that detects deaths, are modelled after
//! `gapless-rpc/src/remote/table`.

use gapless_log::call_table::{CallTable, CallTableShape, ClaimedSlot, InstanceSide, OfferRings};
use gapless_log::claim::{ClaimState, Withdrawal};
use gapless_log::{Bell, Rung};
use loom::sync::atomic::{AtomicU64 as LoomU64, Ordering as LoomOrdering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const MORTAL: u32 = 1;
const SURVIVOR: u32 = 2;
const SLOTS: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    /// Between any two memory accesses. Both requests are offered before the instances start.
    Accesses,
    /// Between operations on claims, rings and bells, each of which is one step.
    Operations,
}

/// Progress of the dying instance's first request at its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    BeforeClaim,
    AfterClaim,
    AfterBegin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Answered { by: u32 },
    Unknown,
    GivenUp { begun: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    slot: u32,
    generation: u32,
}

struct Process {
    table: CallTable,
    state: Mutex<State>,
    bells: [Bell; 2],
    /// Not one of loom's atomics, nor are the following: they observe the model.
    is_over: AtomicBool,
    steps: Steps,
    explores: AtomicBool,
    /// On which all operations depend, if operations are steps.
    operations: LoomU64,
    begun: std::sync::Mutex<Vec<(Ticket, u32)>>,
}

struct State {
    rings: OfferRings,
    free: Vec<Ticket>,
    quarantine: Vec<(Ticket, u32)>,
    instances: Vec<u32>,
    next_instance: usize,
}

impl Process {
    fn new(steps: Steps) -> Self {
        let shape = CallTableShape::new(SLOTS, 0).unwrap();
        let state = State {
            rings: OfferRings::new(shape),
            free: (0..SLOTS).map(|slot| Ticket { slot, generation: 0 }).collect(),
            quarantine: Vec::new(),
            instances: vec![MORTAL, SURVIVOR],
            next_instance: 0,
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

    fn step<T>(&self, operation: impl FnOnce() -> T) -> T {
        if self.steps == Steps::Accesses {
            return operation();
        }
        self.operations.fetch_add(1, LoomOrdering::SeqCst);
        // Another operation may wait for a lock.
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

    fn bell(&self, instance: u32) -> &Bell {
        &self.bells[instance as usize - 1]
    }

    fn offer(&self) -> Ticket {
        let mut state = self.state.lock().unwrap();
        let Ticket { slot, generation } =
            state.free.pop().expect("a call has its own slot back before it is offered again");
        let generation = generation + 1;
        state.rings.offer(&self.table, 0, slot, generation, (0, false));
        fence(LoomOrdering::SeqCst);
        let count = state.instances.len();
        for index in (0..count).map(|step| (state.next_instance + step) % count) {
            let bell = self.bell(state.instances[index]);
            if bell.is_anyone_idle() && bell.ring() != Rung::Nobody {
                state.next_instance = index + 1;
                break;
            }
        }
        Ticket { slot, generation }
    }

    fn finish(&self, ticket: Ticket, holder: Option<u32>) {
        let mut state = self.state.lock().unwrap();
        match holder {
            Some(holder) if state.instances.contains(&holder) => state.quarantine.push((ticket, holder)),
            _ => self.free(&mut state, ticket),
        }
    }

    fn free(&self, state: &mut State, ticket: Ticket) {
        self.table.claim(ticket.slot).free(ticket.generation);
        state.free.push(ticket);
    }

    fn sweep(&self, state: &mut State) {
        for (ticket, holder) in std::mem::take(&mut state.quarantine) {
            let has_answered = self.table.claim(ticket.slot).load().state() == Some(ClaimState::Answered);
            if has_answered || !state.instances.contains(&holder) {
                self.free(state, ticket);
            } else {
                state.quarantine.push((ticket, holder));
            }
        }
    }

    fn remove(&self, instance: u32) {
        let mut state = self.state.lock().unwrap();
        state.instances.retain(|number| *number != instance);
        for slot in 0..SLOTS {
            let claim = self.table.claim(slot);
            let is_lost = claim.revoke(instance);
            let seen = claim.load();
            if is_lost || seen.state() == Some(ClaimState::Answered) && seen.holder() == instance {
                self.table.wake(slot);
            }
        }
        self.sweep(&mut state);
        state
            .instances
            .iter()
            .for_each(|number| assert_ne!(self.bell(*number).ring(), Rung::Task, "there are no tasks"));
    }

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

    fn wait(&self, ticket: Ticket, gives_up: bool) -> (Option<Ended>, Option<u32>) {
        let claim = self.table.claim(ticket.slot);
        loop {
            match self.step(|| claim.announce_wait(ticket.generation)) {
                Some(_) if gives_up => return self.withdraw(ticket, |begun| Some(Ended::GivenUp { begun })),
                Some(low_half) => self.table.wait(ticket.slot, low_half, Duration::MAX),
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

    /// Returns false when `serve` does.
    fn work(&self, number: u32, mut serve: impl FnMut(&InstanceSide, ClaimedSlot) -> bool) -> bool {
        let instance = InstanceSide::in_process(&self.table, number);
        loop {
            while let Some(taken) = self.step(|| instance.take(0)) {
                if !serve(&instance, taken) {
                    return false;
                }
            }
            if self.is_over.load(Ordering::Relaxed) {
                return true;
            }
            // A ring that it owes does not matter: it takes all requests, or dies, which rings.
            let _ = self
                .bell(number)
                .park(Duration::MAX, || instance.has_offers(0) || self.is_over.load(Ordering::Relaxed));
        }
    }

    fn begin(&self, instance: &InstanceSide, taken: ClaimedSlot) -> bool {
        let is_wanted = self.step(|| instance.begin(taken));
        if is_wanted {
            let ticket = Ticket { slot: taken.slot, generation: taken.generation };
            self.begun.lock().unwrap().push((ticket, instance.number()));
        }
        is_wanted
    }

    fn survive(&self) {
        self.work(SURVIVOR, |instance, taken| {
            self.begin(instance, taken);
            self.step(|| instance.answer(taken, SURVIVOR, &[]));
            true
        });
    }

    fn die(&self, death: Death) {
        let lives = if death == Death::BeforeClaim {
            let instance = InstanceSide::in_process(&self.table, MORTAL);
            self.bell(MORTAL).park(Duration::MAX, || instance.has_offers(0) || self.is_over.load(Ordering::Relaxed));
            false
        } else {
            self.work(MORTAL, |instance, taken| {
                if death == Death::AfterBegin {
                    self.begin(instance, taken);
                }
                false
            })
        };
        if !lives {
            self.step(|| self.remove(MORTAL));
        }
    }

    fn check_call(&self, (tickets, ended): &(Vec<Ticket>, Ended), death: Death) {
        let begun = self.begun.lock().unwrap();
        let begun: Vec<_> = begun.iter().filter(|(ticket, _)| tickets.contains(ticket)).collect();
        assert!(begun.len() <= 1, "it began {begun:?}");
        let begun = begun.first().map(|(ticket, instance)| {
            assert_eq!(*ticket, tickets[0], "a begun request is not offered again");
            *instance
        });
        assert!(tickets.len() <= 2, "one instance dies, so it is offered again once at most: {tickets:?}");
        match *ended {
            Ended::Answered { by } => assert_eq!((begun, by), (Some(SURVIVOR), SURVIVOR)),
            Ended::Unknown => assert_eq!((begun, death), (Some(MORTAL), Death::AfterBegin)),
            Ended::GivenUp { begun: had_begun } => assert_eq!(begun.is_some(), had_begun),
        }
    }
}

fn check(death: Death, gives_up: bool, steps: Steps) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match steps {
        // Two take hours.
        Steps::Accesses => Some(1),
        // Or `LOOM_MAX_PREEMPTIONS`.
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
        let instances = [start(Process::die), start(|process, _| process.survive())];
        let caller = Arc::clone(&process);
        let first = thread::spawn(move || caller.call(offered[0], gives_up));
        let second = process.call(offered[1], false);
        let first = first.join().unwrap();
        process.is_over.store(true, Ordering::Relaxed);
        if process.explores.swap(false, Ordering::Relaxed) {
            loom::stop_exploring();
        }
        process.bells.iter().for_each(Bell::ring_all);
        instances.into_iter().for_each(|instance| instance.join().unwrap());
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
fn death_before_claim_ends_calls() {
    check(Death::BeforeClaim, false, Steps::Operations);
}

#[test]
fn death_before_begin_ends_calls() {
    check(Death::AfterClaim, false, Steps::Operations);
}

#[test]
fn death_in_handler_ends_calls() {
    check(Death::AfterBegin, false, Steps::Operations);
}

#[test]
fn give_up_and_death_before_begin() {
    check(Death::AfterClaim, true, Steps::Operations);
}

#[test]
fn give_up_and_death_in_handler() {
    check(Death::AfterBegin, true, Steps::Operations);
}

#[test]
fn death_at_any_access_ends_calls() {
    check(Death::AfterClaim, false, Steps::Accesses);
}

#[test]
fn give_up_and_death_at_any_access() {
    check(Death::AfterBegin, true, Steps::Accesses);
}
