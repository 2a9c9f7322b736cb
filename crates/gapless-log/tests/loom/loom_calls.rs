//! A request is taken once, both sides notice its end, and no thread sleeps through it.

use gapless_log::call_table::{AnswerOutcome, CallTable, CallTableShape, InstanceSide, OfferRings, RequestHeader};
use gapless_log::claim::{ClaimState, Withdrawal};
use gapless_log::{Bell, Rung};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::time::Duration;

fn table(slots: u32) -> Arc<CallTable> {
    Arc::new(CallTable::create(CallTableShape::new(slots, 0).unwrap()).unwrap())
}

/// At most two preemptions; three take minutes and find no more.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn offer(table: &CallTable) {
    OfferRings::new(table.shape()).offer(table, 0, 0, 1, (0, false));
}

fn serve(instance: &InstanceSide) -> u64 {
    let Some(taken) = instance.take(0) else { return 0 };
    let has_begun = instance.begin(taken);
    let _ = instance.answer(taken, 7, &[]);
    has_begun.into()
}

#[test]
fn request_begins_once_or_never() {
    check(|| {
        let table = table(1);
        offer(&table);
        let begun = Arc::new(AtomicU64::new(0));
        let instances: Vec<_> = [1, 2]
            .map(|number| {
                let (instance, begun) = (InstanceSide::in_process(&table, number), Arc::clone(&begun));
                thread::spawn(move || {
                    begun.fetch_add(serve(&instance), Ordering::Relaxed);
                })
            })
            .into_iter()
            .collect();
        let withdrawal = table.claim(0).withdraw(1);
        for instance in instances {
            instance.join().unwrap();
        }
        let begun = begun.load(Ordering::Relaxed);
        let state = table.claim(0).load().state().unwrap();
        match withdrawal {
            Withdrawal::TakenBack => assert_eq!((begun, state), (0, ClaimState::Free)),
            // The instance has given the slot back.
            Withdrawal::NotBegun { .. } => assert_eq!((begun, state), (0, ClaimState::Answered)),
            Withdrawal::Begun { .. } | Withdrawal::Answered => assert_eq!((begun, state), (1, ClaimState::Answered)),
            Withdrawal::Lost => panic!("no other thread withdraws"),
        }
    });
}

#[test]
fn answer_wakes_the_caller() {
    loom::model(|| {
        let table = table(1);
        offer(&table);
        let instance = InstanceSide::in_process(&table, 1);
        let server = thread::spawn(move || serve(&instance));
        while let Some(low_half) = table.claim(0).announce_wait(1) {
            table.wait(0, low_half, Duration::MAX);
        }
        assert_eq!(table.claim(0).load().state(), Some(ClaimState::Answered));
        assert_eq!(table.reply_header(0).status, 7, "the reply is seen with its state");
        assert_eq!(server.join().unwrap(), 1);
    });
}

#[test]
fn notice_implies_the_reply() {
    loom::model(|| {
        let table = table(1);
        OfferRings::new(table.shape()).offer(&table, 0, 0, 1, (0, true));
        let instance = InstanceSide::in_process(&table, 1);
        let server = thread::spawn(move || serve(&instance));
        if let Some(header) = table.notice(0, 1) {
            assert_eq!(table.claim(0).load().state(), Some(ClaimState::Answered));
            assert_eq!(header.status, 7, "the reply is seen with its notice");
        }
        server.join().unwrap();
        assert_eq!(table.notice(0, 1), Some(table.reply_header(0)), "it is noticed in the end");
        assert_eq!(table.notice(0, 2), None, "the next request of the slot is not");
    });
}

/// The caller goes on before the instance has posted its notice, and another instance answers the slot's next request.
#[test]
fn late_notice_is_not_confused() {
    check(|| {
        let table = table(1);
        let mut rings = OfferRings::new(table.shape());
        rings.offer(&table, 0, 0, 1, (1, true));
        let instances = [1, 2].map(|number| {
            let instance = InstanceSide::in_process(&table, number);
            thread::spawn(move || instance.take(0).map(|taken| instance.answer(taken, number, &[])))
        });
        let mut offered = 1;
        if table.claim(0).load().state() == Some(ClaimState::Answered) {
            table.claim(0).free(1);
            rings.offer(&table, 0, 0, 2, (2, true));
            offered = 2;
        }
        if let Some(header) = table.notice(0, offered) {
            assert_eq!(header.status, offered, "each instance answers with its own number");
        }
        let _answered = instances.map(|instance| instance.join().unwrap());
        if let Some(header) = table.notice(0, offered) {
            assert_eq!(header.status, offered, "each instance answers with its own number");
        }
    });
}

#[test]
fn each_request_is_taken_once() {
    loom::model(|| {
        let table = table(2);
        let instance = InstanceSide::in_process(&table, 1);
        let worker = thread::spawn(move || {
            let served = (0..2).map(|_| serve(&instance)).sum::<u64>();
            (instance, served)
        });
        let mut rings = OfferRings::new(table.shape());
        for slot in 0..2 {
            rings.offer(&table, 0, slot, 1, (0, false));
        }
        let (instance, served) = worker.join().unwrap();
        let left = (0..2).map(|_| serve(&instance)).sum::<u64>();
        assert_eq!(served + left, 2, "none is passed over");
        let states = [0, 1].map(|slot| table.claim(slot).load().state());
        assert_eq!(states, [Some(ClaimState::Answered); 2]);
    });
}

#[test]
fn relay_takes_skipped_requests_later() {
    loom::model(|| {
        let table = table(2);
        let instance = InstanceSide::in_process(&table, 1);
        let take_targeted = |instance: &InstanceSide| {
            let Some(taken) = instance.take_targeted(0) else { return 0 };
            assert_eq!(taken.slot, 1, "the other request is untargeted");
            let has_begun = instance.begin(taken);
            let _ = instance.answer(taken, 7, &[]);
            u64::from(has_begun)
        };
        let worker = thread::spawn(move || {
            let begun = take_targeted(&instance);
            (instance, begun)
        });
        let mut rings = OfferRings::new(table.shape());
        for (slot, target) in [(0, 0), (1, 1)] {
            rings.offer(&table, 0, slot, 1, (target, false));
        }
        let (instance, begun) = worker.join().unwrap();
        assert_eq!(begun + take_targeted(&instance), 1, "its own is not passed over");
        assert!(!instance.has_targeted_offers(0) && instance.has_offers(0));
        assert_eq!(serve(&instance), 1, "nor is the other, once it takes everything");
        let states = [0, 1].map(|slot| table.claim(slot).load().state());
        assert_eq!(states, [Some(ClaimState::Answered); 2]);
    });
}

#[test]
fn offer_wakes_a_parked_worker() {
    loom::model(|| {
        let (table, bell) = (table(1), Arc::new(Bell::create().unwrap()));
        let (instance, workers_bell) = (InstanceSide::in_process(&table, 1), Arc::clone(&bell));
        let worker = thread::spawn(move || {
            while serve(&instance) == 0 {
                workers_bell.park(Duration::MAX, || instance.has_offers(0));
            }
        });
        offer(&table);
        assert_ne!(bell.ring(), Rung::Task, "there are no tasks");
        worker.join().unwrap();
    });
}

#[test]
fn withdrawal_reaches_its_watcher() {
    loom::model(|| {
        let (table, bell) = (table(1), Arc::new(Bell::create().unwrap()));
        offer(&table);
        let instance = InstanceSide::in_process(&table, 1);
        let taken = instance.take(0).unwrap();
        assert!(instance.begin(taken));
        let handlers_bell = Arc::clone(&bell);
        let handler = thread::spawn(move || {
            handlers_bell.announce_watchers(1);
            instance.is_withdrawn(taken)
        });
        assert!(matches!(table.claim(0).withdraw(1), Withdrawal::Begun { holder: 1 }));
        let is_told = bell.has_watchers();
        assert!(handler.join().unwrap() || is_told, "it would sleep for ever");
    });
}

#[test]
fn two_rings_leave_no_request_waiting() {
    check(|| {
        let bell = Arc::new(Bell::create().unwrap());
        let tables = [table(1), table(1)];
        let instances = tables.each_ref().map(|table| InstanceSide::in_process(table, 1));
        let workers_bell = Arc::clone(&bell);
        let worker = thread::spawn(move || {
            let mut served = 0;
            while served < 2 {
                let before = served;
                served += instances.iter().map(serve).sum::<u64>();
                if served == before {
                    workers_bell.park(Duration::MAX, || instances.iter().any(|instance| instance.has_offers(0)));
                }
            }
        });
        let callers = tables.map(|table| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || {
                offer(&table);
                let _ = bell.ring();
            })
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        worker.join().unwrap();
    });
}

#[test]
fn sleeping_task_leaves_no_request() {
    check(|| {
        let (bell, asleep) = (Arc::new(Bell::create().unwrap()), Arc::new(Mutex::new(2)));
        bell.announce_tasks(2);
        let tables = [table(1), table(1)];
        let instances = Arc::new(tables.each_ref().map(|table| InstanceSide::in_process(table, 1)));
        let callers = tables.clone().map(|table| {
            let (bell, asleep, instances) = (Arc::clone(&bell), Arc::clone(&asleep), Arc::clone(&instances));
            thread::spawn(move || {
                offer(&table);
                if bell.ring() != Rung::Task {
                    return;
                }
                let mut asleep_now = asleep.lock().unwrap();
                let woken = bell.take_rung_tasks(*asleep_now);
                *asleep_now -= woken;
                drop(asleep_now);
                let change = |by: isize| {
                    let mut asleep = asleep.lock().unwrap();
                    *asleep = asleep.saturating_add_signed(by);
                    bell.announce_tasks(*asleep);
                };
                for _ in 0..woken {
                    let _begun: u64 = instances.iter().map(serve).sum();
                    change(1);
                    while instances.iter().any(|instance| instance.has_offers(0)) {
                        change(-1);
                        let _begun: u64 = instances.iter().map(serve).sum();
                        change(1);
                    }
                }
            })
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        let left = instances.iter().filter(|instance| instance.has_offers(0)).count();
        assert_eq!(left, 0, "a task sleeps beside it");
        assert_eq!(*asleep.lock().unwrap(), 2);
    });
}

/// The first worker handles its targeted request until the other one, which is for both instances, is taken. If its
/// announcement consumed the ring for that one, the ring must go on.
#[test]
fn unneeded_ring_is_passed_on() {
    check(|| {
        let bells = [0, 1].map(|_| Arc::new(Bell::create().unwrap()));
        let tables = [table(1), table(1)];
        let first: Vec<_> = tables.iter().map(|table| InstanceSide::in_process(table, 1)).collect();
        let second = InstanceSide::in_process(&tables[1], 2);
        let second_bell = Arc::clone(&bells[1]);
        let has_ended = Arc::new(AtomicU64::new(0));
        let ended = Arc::clone(&has_ended);
        let may_end = Arc::clone(&has_ended);
        let second = thread::spawn(move || {
            while second.take(0).is_none() && ended.load(Ordering::SeqCst) == 0 {
                second_bell.park(Duration::MAX, || second.has_offers(0) || ended.load(Ordering::SeqCst) != 0);
            }
        });
        let workers_bells = bells.clone();
        let first = thread::spawn(move || {
            let mut owes_ring = false;
            loop {
                if first[0].take(0).is_some() {
                    if owes_ring && first[1].has_offers(0) && first[1].pass_ring_on() {
                        let _ = workers_bells[1].ring();
                    }
                    return;
                }
                if first[1].take(0).is_some() {
                    may_end.store(1, Ordering::SeqCst);
                    workers_bells[1].ring_all();
                } else {
                    owes_ring =
                        workers_bells[0].park(Duration::MAX, || first.iter().any(|instance| instance.has_offers(0)));
                }
            }
        });
        tables[1].announce_reactor();
        offer(&tables[0]);
        let _ = bells[0].ring();
        offer(&tables[1]);
        let _ = bells.iter().any(|bell| bell.ring() != Rung::Nobody);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// The looking worker handles the first request until the second is taken by the other worker, which sleeps or is about
/// to.
#[test]
fn spared_ring_is_made_up_for() {
    check(|| {
        let bell = Arc::new(Bell::create().unwrap());
        let tables = [table(1), table(1)];
        let instances = || tables.each_ref().map(|table| InstanceSide::in_process(table, 1));
        let (lookers, sleepers) = (instances(), instances());
        let workers_bell = Arc::clone(&bell);
        let looker = thread::spawn(move || {
            workers_bell.begin_look();
            let has_offers = || lookers.iter().any(|instance| instance.has_offers(0));
            let _ = has_offers();
            let mut owes_ring = workers_bell.end_look();
            while lookers.iter().all(|instance| instance.take(0).is_none()) {
                owes_ring = workers_bell.park(Duration::MAX, has_offers);
            }
            if owes_ring && has_offers() {
                let _ = workers_bell.ring();
            }
        });
        let workers_bell = Arc::clone(&bell);
        let sleeper = thread::spawn(move || {
            while sleepers.iter().all(|instance| instance.take(0).is_none()) {
                let _ = workers_bell.park(Duration::MAX, || sleepers.iter().any(|instance| instance.has_offers(0)));
            }
        });
        for table in &tables {
            offer(table);
            let _ = bell.ring();
        }
        looker.join().unwrap();
        sleeper.join().unwrap();
    });
}

#[test]
fn passed_on_ring_is_not_missed() {
    loom::model(|| {
        let table = table(1);
        offer(&table);
        let instance = InstanceSide::in_process(&table, 1);
        let passing = thread::spawn(move || instance.pass_ring_on());
        table.announce_reactor();
        let seen = table.take_unclaimed();
        let is_woken = passing.join().unwrap();
        assert!(seen || is_woken, "neither was it seen nor the eventfd written");
        assert_eq!(seen, !table.take_unclaimed(), "it is seen once");
    });
}

#[test]
fn sleeping_reactor_sees_every_answer() {
    loom::model(|| {
        let table = table(1);
        offer(&table);
        assert!(table.claim(0).want_notice(1));
        let instance = InstanceSide::in_process(&table, 1);
        let eventfd = Arc::new(AtomicU64::new(0));
        let instance_eventfd = Arc::clone(&eventfd);
        let server = thread::spawn(move || {
            let taken = instance.take(0).unwrap();
            assert!(instance.begin(taken));
            if instance.answer(taken, 7, &[]) == (AnswerOutcome::Answered { ring_reactor: true }) {
                instance_eventfd.store(1, Ordering::SeqCst);
            }
        });
        table.announce_reactor();
        let seen = table.take_done(0);
        server.join().unwrap();
        assert!(seen == 1 || eventfd.load(Ordering::SeqCst) == 1, "neither the bit was seen nor the eventfd written");
        table.withdraw_reactor();
        assert_eq!(seen | table.take_done(0), 1);
        assert_eq!(table.claim(0).load().state(), Some(ClaimState::Answered));
    });
}

#[test]
fn late_answer_spares_the_next_request() {
    loom::model(|| {
        let table = table(1);
        offer(&table);
        let late = InstanceSide::in_process(&table, 1);
        let taken = late.take(0).unwrap();
        assert!(late.begin(taken));
        // Revoked: the caller believes the instance dead, and the slot holds the next request.
        table.claim(0).free(1);
        table.claim(0).offer(2, 0, false);
        let ghost = thread::spawn(move || late.answer(taken, 9, &[]));
        let seen = table.claim(0).load();
        assert_eq!((seen.generation(), seen.state()), (2, Some(ClaimState::Offered)));
        assert_eq!(ghost.join().unwrap(), AnswerOutcome::Lost);
    });
}

#[test]
fn a_header_fits_the_smallest_table() {
    loom::model(|| {
        let table = table(1);
        table.write_request(0, RequestHeader { generation: 1, call: 42, ..RequestHeader::default() }, &[], &[]);
        offer(&table);
        let instance = InstanceSide::in_process(&table, 1);
        let taken = instance.take(0).unwrap();
        assert_eq!(instance.request_header(taken).unwrap().call, 42);
    });
}
