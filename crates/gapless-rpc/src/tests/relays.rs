//! A relay that stands for instances elsewhere, next to ordinary instances.

use super::*;
use crate::registry::Instance;

fn relay_work(puller: &mut Puller, handled: &AtomicU64) {
    while !puller.served().has_ended() {
        let Some(mut claimed) = puller.take_relayed() else {
            thread::yield_now();
            continue;
        };
        if claimed.begin() {
            handled.fetch_add(1, Ordering::Relaxed);
            claimed.answer(ReplyStatus::Reply, b"elsewhere");
        }
    }
}

fn relay(table: &Arc<RouteTable>) -> (TestInstance, Arc<[Instance]>) {
    let mut instance = TestInstance::start(table, 0, false, increment());
    let stands_for: Arc<[Instance]> = [Instance { identity: 77, name: "depot/1".to_owned() }].into();
    instance.served.set_relay(true);
    table.set_instance_state(instance.number, InstanceState::Open, &stands_for);
    let (mut puller, handled) = (Puller::new(Arc::clone(&instance.served)), Arc::clone(&instance.handled));
    instance.workers.push(thread::spawn(move || relay_work(&mut puller, &handled)));
    (instance, stands_for)
}

#[test]
fn no_request_is_lost_next_to_a_relay() {
    let table = table(8, 64);
    let instance = TestInstance::start(&table, 1, false, increment());
    let (relay, _) = relay(&table);
    let calls = rounds(2_000, 200);
    let callers: Vec<_> = (0..3)
        .map(|number| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut reply = Vec::new();
                for _ in 0..calls {
                    let offer = RemoteOffer { one_way: number == 0, ..timeout_in(60_000) };
                    loop {
                        match Attempt::start(&table, offer, &[], b"x") {
                            Ok(attempt) if number == 0 => {
                                attempt.leave();
                                break;
                            }
                            Ok(mut attempt) => match attempt.wait(Waiting::Park, &mut reply) {
                                AttemptEnd::Answered(ReplyStatus::Reply) => break,
                                AttemptEnd::NotTaken => {}
                                ended => panic!("{ended:?}"),
                            },
                            Err(NotOffered::Full) => thread::yield_now(),
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                }
            })
        })
        .collect();
    let none = Arc::default();
    while callers.iter().any(|caller| !caller.is_finished()) {
        instance.served.suspend();
        table.set_instance_state(instance.number, InstanceState::Suspended, &none);
        thread::yield_now();
        instance.served.resume();
        table.set_instance_state(instance.number, InstanceState::Open, &none);
        thread::yield_now();
    }
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    gapless_testkit::wait::until("what was sent is answered", || table.slots() == (8, 0, 0));
    let (here, elsewhere) = (instance.end(), relay.end());
    assert_eq!(here + elsewhere, calls * 3, "each is handled once");
    assert!(here > 0 && elsewhere > 0, "{here} here, {elsewhere} elsewhere");
}

#[test]
fn relay_leaves_untargeted_requests() {
    let table = table(4, 64);
    let instance = TestInstance::start(&table, 0, false, increment());
    let (relay, stands_for) = relay(&table);
    let mut reply = Vec::new();
    let mut untargeted = Attempt::start(&table, timeout_in(60_000), &[], b"x").unwrap();
    let offer = RemoteOffer { target: relay.number, ..timeout_in(60_000) };
    let mut targeted = Attempt::start(&table, offer, &[], b"y").unwrap();
    assert_eq!(targeted.wait(Waiting::Park, &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
    assert_eq!((untargeted.try_end(&mut reply), relay.handled.load(Ordering::Relaxed)), (None, 1));
    table.remove_instance(instance.number);
    assert_eq!(untargeted.wait(Waiting::Park, &mut reply), AttemptEnd::NotTaken);
    let mut again = Attempt::start(&table, timeout_in(60_000), &[], b"x").unwrap();
    assert_eq!(again.wait(Waiting::Park, &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
    assert_eq!(table.key_owner(9).instance, relay.number, "keys, too");
    assert_eq!(table.open_instances(), [(relay.number, stands_for)]);
    assert_eq!(table.number_of_identity(77), None, "it is no instance of this domain");
    drop((untargeted, targeted, again));
    // No longer a relay: it now takes requests that it has skipped.
    table.set_instance_state(relay.number, InstanceState::Suspended, &Arc::default());
    let mut last = Attempt::start(&table, timeout_in(60_000), &[], b"z").unwrap();
    relay.served.set_relay(false);
    assert_eq!(last.wait(Waiting::Park, &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
    drop(last);
    instance.end();
    assert_eq!(relay.end(), 3);
}
