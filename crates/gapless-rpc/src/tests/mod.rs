//! Caller and instances in one process, connected as two processes are: only by the regions.

use crate::caller::remote_call::{Attempt, AttemptEnd};
use crate::caller::table::{InstanceState, NotOffered, RemoteOffer, RouteTable};
use crate::context::{CallerIdentity, CallerWithDomain};
use crate::message::rewritten;
use crate::options::Waiting;
use crate::protocol::status::ReplyStatus;
use crate::route_counters::CounterDestination;
use crate::server::puller::{AttachedCaller, Puller, ServedCallers};
use gapless_agent::monotonic::monotonic_ns;
use gapless_log::bell::BELL_LENGTH;
use gapless_log::call_table::{CallTableShape, InstanceSide, RequestHeader};
use gapless_log::{Bell, Region};
use gapless_testkit::random::rounds;
use gapless_testkit::wake_count::WakeCount;
use rustix::event::{EventfdFlags, eventfd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

mod relays;

fn table(slots: u32, payload_length_max: usize) -> Arc<RouteTable> {
    let shape = CallTableShape::new(slots, payload_length_max).unwrap();
    Arc::new(
        RouteTable::create("test.route".into(), shape, (0, rewritten::<Vec<u8>>), &CounterDestination::in_memory())
            .unwrap(),
    )
}

struct TestInstance {
    number: u32,
    served: Arc<ServedCallers>,
    workers: Vec<JoinHandle<()>>,
    handled: Arc<AtomicU64>,
}

type Handler = Arc<dyn Fn(&RequestHeader, &[u8]) -> Option<(ReplyStatus, Vec<u8>)> + Send + Sync>;

impl TestInstance {
    fn start(table: &Arc<RouteTable>, workers: usize, spins: bool, handler: Handler) -> Self {
        let number = table.next_instance_number().unwrap();
        let bell = Bell::create().unwrap();
        let callers_bell = Region::open(bell.region().fd().try_clone_to_owned().unwrap(), BELL_LENGTH, true).unwrap();
        let instance_eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let callers_eventfd = instance_eventfd.try_clone().unwrap();
        let served = Arc::new(ServedCallers::new(bell, instance_eventfd));
        attach(&served, table, number);
        table.add_instance(
            (number, number.into()),
            (callers_bell, callers_eventfd),
            (InstanceState::Open, Arc::default()),
        );
        let handled = Arc::new(AtomicU64::new(0));
        let workers = (0..workers)
            .map(|_| {
                let (mut puller, handler, handled) =
                    (Puller::new(Arc::clone(&served)), Arc::clone(&handler), Arc::clone(&handled));
                thread::spawn(move || work(&mut puller, spins, &handler, &handled))
            })
            .collect();
        Self { number, served, workers, handled }
    }

    fn end(self) -> u64 {
        self.served.end();
        self.workers.into_iter().for_each(|worker| worker.join().unwrap());
        self.handled.load(Ordering::Relaxed)
    }
}

fn attach(served: &ServedCallers, table: &RouteTable, number: u32) {
    served.attach(AttachedCaller {
        attachment: 1,
        table: Arc::new(InstanceSide::in_process(table.table(), number)),
        eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap(),
        identity: Arc::new(CallerWithDomain {
            identity: CallerIdentity { name: "test".to_owned(), process_id: 1, user_id: 1, started_ns: 1 },
            domain: std::sync::Weak::<()>::new(),
        }),
        reply_version: 1,
        watchers: Arc::clone(served.watchers()),
        reply_older: 0,
        types: Arc::default(),
    });
}

fn work(puller: &mut Puller, spins: bool, handler: &Handler, handled: &AtomicU64) {
    let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
    while !puller.served().has_ended() {
        let Some(mut claimed) = puller.take() else {
            if spins {
                std::hint::spin_loop();
            } else {
                puller.park(Duration::from_secs(1));
            }
            continue;
        };
        let header = claimed.read(&mut user_headers, &mut payload).unwrap();
        if !claimed.begin() {
            claimed.answer(ReplyStatus::NotServed, &[]);
            continue;
        }
        handled.fetch_add(1, Ordering::Relaxed);
        match handler(&header, &payload) {
            Some((status, reply)) => {
                claimed.answer(status, &reply);
            }
            // Simulates the death of its process.
            None => std::mem::forget(claimed),
        }
    }
}

fn increment() -> Handler {
    Arc::new(|_, payload| Some((ReplyStatus::Reply, payload.iter().map(|byte| byte.wrapping_add(1)).collect())))
}

fn timeout_in(milliseconds: u64) -> RemoteOffer {
    let deadline_ns = monotonic_ns() + milliseconds * 1_000_000;
    RemoteOffer {
        header: RequestHeader { class: 2, deadline_ns, ..RequestHeader::default() },
        ..RemoteOffer::default()
    }
}

fn call(table: &Arc<RouteTable>, waiting: Waiting, payload: &[u8], reply: &mut Vec<u8>) -> AttemptEnd {
    Attempt::start(table, timeout_in(20_000), &[], payload).unwrap().wait(waiting, reply)
}

fn claimed(table: &Arc<RouteTable>) -> (TestInstance, Attempt, crate::server::puller::ClaimedRequest) {
    let instance = TestInstance::start(table, 0, false, increment());
    let call = Attempt::start(table, timeout_in(20_000), &[], b"request").unwrap();
    let claimed = Puller::new(Arc::clone(&instance.served)).take().unwrap();
    (instance, call, claimed)
}

#[test]
fn withdrawn_call_never_begins() {
    let mut reply = Vec::new();
    let table = table(1, 100);
    let (instance, mut call, mut taken) = claimed(&table);
    assert_eq!(call.time_out(&mut reply), AttemptEnd::TimedOut { begun: false });
    assert!(!taken.begin(), "its time was over");
    drop((call, taken));
    assert_eq!(table.slots(), (1, 0, 0), "the instance has given the slot back");
    instance.end();

    let (instance, mut call, mut taken) = claimed(&table);
    table.close_instance(instance.number);
    assert!(matches!(call.try_end(&mut reply), Some(AttemptEnd::NotBegun(_))));
    assert!(!taken.begin(), "its connection has ended");
    drop((call, taken));
    assert_eq!(table.slots(), (1, 0, 0));
    instance.end();
}

#[test]
fn answer_before_withdrawal_counts() {
    let mut reply = Vec::new();
    let table = table(1, 100);
    let (instance, mut call, mut taken) = claimed(&table);
    assert!(taken.begin());
    assert!(taken.answer(ReplyStatus::Reply, b"just in time"));
    assert_eq!(call.time_out(&mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
    assert_eq!(reply, b"just in time");
    drop(call);
    assert_eq!(table.slots(), (1, 0, 0));
    instance.end();
}

#[test]
fn corrupt_claim_ends_the_call() {
    let table = table(1, 100);
    let (instance, mut call, taken) = claimed(&table);
    table.table().claim(0).free(1);
    assert!(
        matches!(call.wait(Waiting::Park, &mut Vec::new()), AttemptEnd::Unknown(_)),
        "freed by an instance gone mad"
    );
    drop((call, taken));
    let (instance_again, mut call, taken) = claimed(&table);
    let _ = table.table().claim(0).withdraw(2);
    assert!(matches!(call.wait(Waiting::Park, &mut Vec::new()), AttemptEnd::Unknown(_)), "withdrawn by one");
    drop((call, taken));
    instance.end();
    instance_again.end();
}

#[test]
fn long_request_releases_its_memory() {
    let length = 3 << 20;
    let table = table(2, length);
    let forward: Handler = Arc::new(|_, _| Some((ReplyStatus::Forward, b"elsewhere".to_vec())));
    let instance = TestInstance::start(&table, 1, false, forward);
    let payload: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
    let mut call = Attempt::start(&table, timeout_in(20_000), &[], &payload).unwrap();
    assert_eq!(call.wait(Waiting::Park, &mut Vec::new()), AttemptEnd::Answered(ReplyStatus::Forward));
    assert!(call.request().unwrap().2 == payload, "it goes on as it came");
    let taken = || rustix::fs::fstat(table.table().request_region().fd()).unwrap().st_blocks * 512;
    assert!(taken() >= length as i64);
    drop(call);
    assert!(taken() <= 2 << 20, "answered: {} bytes are kept", taken());
    let one_way = RemoteOffer { one_way: true, ..timeout_in(20_000) };
    Attempt::start(&table, one_way, &[], &payload).unwrap().leave();
    gapless_testkit::wait::until("it is to go on, and is given up", || {
        table.take_forwarded().into_iter().for_each(|ticket| drop(Attempt::of_sent(&table, ticket)));
        table.slots() == (2, 0, 0)
    });
    assert!(taken() <= 2 << 20, "one way: {} bytes are kept", taken());
    instance.end();
}

#[test]
fn any_reply_length_comes_back() {
    let table = table(8, 100_000);
    let instance = TestInstance::start(&table, 2, false, increment());
    let mut reply = Vec::new();
    for length in (0..600).chain([4095, 4096, 4097, 65_536, 100_000]) {
        let payload: Vec<u8> = (0..length).map(|index| index as u8).collect();
        assert_eq!(call(&table, Waiting::Park, &payload, &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
        assert_eq!(reply.len(), length);
        assert!(reply.iter().zip(&payload).all(|(reply, sent)| *reply == sent.wrapping_add(1)));
    }
    assert_eq!(table.slots(), (8, 0, 0));
    assert_eq!(instance.end(), 605);
}

#[test]
fn threads_get_one_answer_per_call() {
    let table = table(64, 256);
    let instances =
        [TestInstance::start(&table, 2, false, increment()), TestInstance::start(&table, 2, false, increment())];
    let calls = rounds(5_000, 500);
    let threads: Vec<_> = (0..8_u64)
        .map(|number| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut reply = Vec::new();
                for each in 0..calls {
                    let payload = (number << 32 | each).to_le_bytes();
                    assert_eq!(
                        call(&table, Waiting::Park, &payload, &mut reply),
                        AttemptEnd::Answered(ReplyStatus::Reply)
                    );
                    assert_eq!(reply, payload.map(|byte| byte.wrapping_add(1)));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(table.slots(), (64, 0, 0));
    assert_eq!(instances.map(TestInstance::end).iter().sum::<u64>(), 8 * calls);
}

#[test]
fn new_instance_takes_waiting_requests() {
    let table = table(2, 64);
    let none = Attempt::start(&table, timeout_in(1_000), &[], b"x").unwrap_err();
    assert_eq!(none, NotOffered::NoInstance);
    table.wait_for_change(&mut RemoteOffer::default(), Duration::from_millis(1));
    let instance = TestInstance::start(&table, 1, false, increment());
    instance.served.suspend();
    let mut first = Attempt::start(&table, timeout_in(20_000), &[], b"a").unwrap();
    let second = Attempt::start(&table, timeout_in(20_000), &[], b"b").unwrap();
    let full = Attempt::start(&table, timeout_in(20_000), &[], b"c").unwrap_err();
    assert_eq!(full, NotOffered::Full);
    drop(second);
    instance.served.resume();
    let mut reply = Vec::new();
    assert_eq!(first.wait(Waiting::Park, &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
    drop(first);
    assert_eq!((reply, table.slots()), (b"b".to_vec(), (2, 0, 0)));
    assert_eq!(instance.end(), 1);
}

#[test]
fn timed_out_slot_is_quarantined() {
    let table = table(1, 64);
    let release = Arc::new(AtomicBool::new(false));
    let blocked = Arc::clone(&release);
    let instance = TestInstance::start(
        &table,
        1,
        false,
        Arc::new(move |_, payload| {
            while !blocked.load(Ordering::Acquire) {
                thread::yield_now();
            }
            Some((ReplyStatus::Reply, payload.to_vec()))
        }),
    );
    let mut reply = Vec::new();
    let mut late = Attempt::start(&table, timeout_in(30), &[], b"late").unwrap();
    assert_eq!(late.wait(Waiting::Park, &mut reply), AttemptEnd::TimedOut { begun: true });
    drop(late);
    assert_eq!(table.slots(), (0, 1, 0), "in quarantine");
    let refused = Attempt::start(&table, timeout_in(30), &[], b"x").unwrap_err();
    assert_eq!(refused, NotOffered::Full);
    release.store(true, Ordering::Release);
    gapless_testkit::wait::until("the instance has noticed", || table.slots() == (1, 0, 0));
    assert_eq!(call(&table, Waiting::Park, b"next", &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
    assert_eq!(reply, b"next");
    instance.end();
}

#[test]
fn death_ends_requests_and_frees_slots() {
    let table = table(4, 64);
    let dying = TestInstance::start(&table, 1, false, Arc::new(|_, _| None));
    let number = dying.number;
    let waiter = {
        let table = Arc::clone(&table);
        thread::spawn(move || call(&table, Waiting::Park, b"x", &mut Vec::new()))
    };
    gapless_testkit::wait::until("its handler has begun", || dying.handled.load(Ordering::Relaxed) == 1);
    table.close_instance(number);
    let ended = AttemptEnd::Unknown("the process that had it has died, or has left the domain");
    assert_eq!(waiter.join().unwrap(), ended);
    assert_eq!(table.slots(), (3, 1, 0), "its process may still write");
    table.remove_instance(number);
    assert_eq!(table.slots(), (4, 0, 0));
    dying.end();
}

#[test]
fn claimed_request_is_not_reassigned() {
    let table = table(1, 64);
    let known = TestInstance::start(&table, 0, false, increment());
    let eventfd = gapless_agent::wake_fd::create().unwrap();
    let served = Arc::new(ServedCallers::new(Bell::create().unwrap(), eventfd));
    let number = known.number + 1;
    table.expect_instance(number);
    attach(&served, &table, number);
    let call = Attempt::start(&table, timeout_in(20_000), &[], b"x").unwrap();
    let claimed = Puller::new(served).take().unwrap();
    drop(call);
    assert_eq!(table.slots(), (0, 1, 0));
    drop(claimed);
    assert_eq!(table.slots(), (1, 0, 0));
    known.end();
}

#[test]
fn late_end_frees_the_slot() {
    let table = table(1, 64);
    for has_begun in [false, true] {
        let (instance, call, mut taken) = claimed(&table);
        assert!(!has_begun || taken.begin());
        // Simulates the death of its process.
        std::mem::forget(taken);
        table.close_instance(instance.number);
        table.remove_instance(instance.number);
        drop(call);
        assert_eq!(table.slots(), (1, 0, 0));
        instance.end();
    }
}

/// The woken worker's instance stops before it looks, so the others must look.
#[test]
fn sleeper_wakes_when_another_stops() {
    for stop in [
        (|table, number| table.set_instance_state(number, InstanceState::Suspended, &Arc::default()))
            as fn(&RouteTable, u32),
        RouteTable::close_instance,
        RouteTable::remove_instance,
    ] {
        let table = table(4, 64);
        let instances = [0, 1].map(|_| TestInstance::start(&table, 0, false, increment()));
        let waker = std::task::Waker::from(Arc::<WakeCount>::default());
        let mut pullers = instances.each_ref().map(|instance| Puller::new(Arc::clone(&instance.served)));
        for puller in &mut pullers {
            assert!(puller.poll_take(&mut std::task::Context::from_waker(&waker)).is_pending());
        }
        let was_rung = |instance: &TestInstance| rustix::io::read(instance.served.eventfd(), &mut [0; 8]).is_ok();
        let call = Attempt::start(&table, timeout_in(20_000), &[], b"x").unwrap();
        assert_eq!(instances.each_ref().map(was_rung), [true, false]);
        stop(&table, instances[0].number);
        assert!(was_rung(&instances[1]), "it would sleep beside what was offered");
        drop((call, pullers));
    }
}

/// Two callers ring the same instances; the worker of the first is awake already, and has not looked.
#[test]
fn fully_rung_instance_is_skipped() {
    let tables = [0, 1].map(|_| table(4, 64));
    let instances = [0, 1].map(|_| TestInstance::start(&tables[0], 0, false, increment()));
    for instance in &instances {
        attach(&instance.served, &tables[1], instance.number);
        let bell = instance.served.bell().region().fd().try_clone_to_owned().unwrap();
        let bell = Region::open(bell, BELL_LENGTH, true).unwrap();
        let memory = (bell, instance.served.eventfd().try_clone().unwrap());
        tables[1].add_instance(
            (instance.number, instance.number.into()),
            memory,
            (InstanceState::Open, Arc::default()),
        );
    }
    let waker = std::task::Waker::from(Arc::<WakeCount>::default());
    let mut pullers = instances.each_ref().map(|instance| Puller::new(Arc::clone(&instance.served)));
    for puller in &mut pullers {
        assert!(puller.poll_take(&mut std::task::Context::from_waker(&waker)).is_pending());
    }
    let was_rung = |instance: &TestInstance| rustix::io::read(instance.served.eventfd(), &mut [0; 8]).is_ok();
    let calls = tables.each_ref().map(|table| Attempt::start(table, timeout_in(20_000), &[], b"x").unwrap());
    assert_eq!(instances.each_ref().map(was_rung), [true, true]);
    drop((calls, pullers));
}

#[test]
fn classes_are_served_8_4_2_1() {
    let table = table(64, 8);
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let instance = TestInstance::start(
        &table,
        1,
        false,
        Arc::new(move |header, _| {
            seen.lock().unwrap().push(header.class);
            Some((ReplyStatus::Reply, Vec::new()))
        }),
    );
    instance.served.suspend();
    let calls: Vec<_> = (0..60)
        .map(|number| {
            let mut offer = timeout_in(20_000);
            offer.header.class = number % 4;
            Attempt::start(&table, offer, &[], &[number]).unwrap()
        })
        .collect();
    instance.served.resume();
    for mut call in calls {
        assert_eq!(call.wait(Waiting::Park, &mut Vec::new()), AttemptEnd::Answered(ReplyStatus::Reply));
    }
    let order = order.lock().unwrap().clone();
    let count = |class: u8| order[..15].iter().filter(|each| **each == class).count();
    assert_eq!([0, 1, 2, 3].map(count), [8, 4, 2, 1]);
    instance.end();
}

#[test]
fn reply_and_deadline_wake_a_task() {
    let table = table(4, 64);
    let instance = TestInstance::start(&table, 1, false, increment());
    let woken = Arc::new(WakeCount::default());
    let waker = std::task::Waker::from(Arc::clone(&woken));
    let context = std::task::Context::from_waker(&waker);
    let mut call = Attempt::start(&table, timeout_in(20_000), &[], b"1").unwrap();
    let mut reply = Vec::new();
    let mut poll = |call: &mut Attempt| call.poll(&context, || {}, &mut reply);
    if poll(&mut call).is_pending() {
        gapless_testkit::wait::until("it is woken", || table.give_notices() && woken.count() > 0);
        assert!(poll(&mut call).is_ready());
    }
    drop(call);
    instance.served.suspend();
    let mut late = Attempt::start(&table, timeout_in(20), &[], b"2").unwrap();
    woken.take();
    assert!(poll(&mut late).is_pending());
    gapless_testkit::wait::until("its time is over", || {
        table.expire();
        woken.count() > 0
    });
    assert_eq!(poll(&mut late), std::task::Poll::Ready(AttemptEnd::TimedOut { begun: false }));
    drop(late);
    assert_eq!(table.slots(), (4, 0, 0));
    instance.end();
}

#[test]
fn ended_calls_drop_deadlines() {
    let table = table(4, 64);
    let instance = TestInstance::start(&table, 1, false, increment());
    let context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..1000 {
        let mut call = Attempt::start(&table, timeout_in(600_000), &[], b"1").unwrap();
        let _ = call.poll(&context, || {}, &mut Vec::new());
        assert!(table.deadlines() <= 16);
        drop(call);
        gapless_testkit::wait::until("its slot is free", || table.slots() == (4, 0, 0));
    }
    instance.end();
}

#[test]
fn unclaimed_request_is_taken_back() {
    let table = table(8, 64);
    let [leaving, staying] = [(); 2].map(|()| TestInstance::start(&table, 1, false, increment()));
    [&leaving, &staying].iter().for_each(|instance| instance.served.suspend());
    let offer = |target| Attempt::start(&table, RemoteOffer { target, ..timeout_in(20_000) }, &[], b"1").unwrap();
    let mut reply = Vec::new();
    let (mut meant, mut any) = (offer(leaving.number), offer(0));
    let waiting = thread::spawn({
        let mut meant = offer(leaving.number);
        move || meant.wait(Waiting::Park, &mut Vec::new())
    });
    let one_way = RemoteOffer { one_way: true, target: leaving.number, ..timeout_in(20_000) };
    Attempt::start(&table, one_way, &[], b"1").unwrap().leave();
    table.set_instance_state(leaving.number, InstanceState::Draining, &Arc::default());
    assert_eq!(meant.try_end(&mut reply), Some(AttemptEnd::NotTaken));
    assert_eq!(waiting.join().unwrap(), AttemptEnd::NotTaken);
    assert_eq!(any.try_end(&mut reply), None, "another instance is there");
    table.set_instance_state(staying.number, InstanceState::Draining, &Arc::default());
    assert_eq!(any.try_end(&mut reply), Some(AttemptEnd::NotTaken));
    drop((meant, any));
    assert_eq!(table.slots(), (7, 0, 1), "nobody waits for the one, so it waits for an instance");
    assert_eq!(leaving.end() + staying.end(), 0);
    let instance = TestInstance::start(&table, 1, false, increment());
    gapless_testkit::wait::until("an instance that comes takes it", || table.slots() == (8, 0, 0));
    assert_eq!(instance.end(), 1);
}

#[test]
fn less_urgent_calls_never_overtake() {
    let table = table(1, 64);
    let instance = TestInstance::start(&table, 0, false, increment());
    let first = Attempt::start(&table, timeout_in(20_000), &[], &[]).unwrap();
    let woken = Arc::new(WakeCount::default());
    let mut waiting = timeout_in(20_000);
    table.want_change(&std::task::Waker::from(Arc::clone(&woken)), &mut waiting);
    let offer = |offer: RemoteOffer| Attempt::start(&table, offer, &[], &[]).map(drop);
    drop(first);
    assert!(woken.count() > 0, "it is called to the slot");
    let mut lowest = timeout_in(20_000);
    lowest.header.class = 3;
    let mut overtaken = 0;
    while let Ok(other) = Attempt::start(&table, timeout_in(20_000), &[], &[]) {
        overtaken += 1;
        assert_eq!(offer(waiting), Err(NotOffered::Full));
        table.want_change(&std::task::Waker::from(Arc::clone(&woken)), &mut waiting);
        drop(other);
        assert_eq!(offer(lowest), Err(NotOffered::Full));
    }
    assert_eq!(overtaken, 8);
    assert_eq!(offer(waiting), Ok(()));
    let held = Attempt::start(&table, timeout_in(20_000), &[], &[]).unwrap();
    table.join_queue(&mut timeout_in(20_000));
    drop(held);
    assert_eq!(offer(lowest), Err(NotOffered::Full));
    let mut later = lowest;
    gapless_testkit::wait::until("the slot is another's", || {
        table.wait_for_change(&mut later, Duration::from_millis(1));
        offer(later).is_ok()
    });
    assert_eq!(offer(lowest), Ok(()), "no call waits any more");
    instance.end();
}

#[test]
fn taken_back_request_has_not_begun() {
    let table = table(1, 64);
    let instance = TestInstance::start(&table, 0, false, increment());
    let mut call = Attempt::start(&table, timeout_in(20_000), &[], b"1").unwrap();
    table.set_instance_state(instance.number, InstanceState::Draining, &Arc::default());
    assert!(Puller::new(Arc::clone(&instance.served)).take().is_none());
    assert_eq!(call.try_end(&mut Vec::new()), Some(AttemptEnd::NotTaken));
    drop(call);
    instance.end();
}

#[test]
fn close_ends_offers() {
    let table = table(4, 64);
    let instance = TestInstance::start(&table, 1, false, increment());
    instance.served.suspend();
    let mut call = Attempt::start(&table, timeout_in(20_000), &[], b"1").unwrap();
    let woken = Arc::new(WakeCount::default());
    let waker = std::task::Waker::from(Arc::clone(&woken));
    let context = std::task::Context::from_waker(&waker);
    assert!(call.poll(&context, || {}, &mut Vec::new()).is_pending());
    table.close();
    assert!(woken.count() > 0, "its task is told");
    assert_eq!(call.poll(&context, || {}, &mut Vec::new()), std::task::Poll::Ready(AttemptEnd::NotTaken));
    drop(call);
    instance.end();
}

/// Prints the cost of a call; run with `--ignored --nocapture` in a release build.
#[test]
#[ignore = "prints figures"]
fn cost_of_a_call() {
    for (name, spins, waiting) in [("spinning", true, Waiting::Spin), ("parked", false, Waiting::Park)] {
        let table = table(64, 4096);
        let instance = TestInstance::start(&table, 1, spins, increment());
        for length in [1, 64, 256, 1024, 4096] {
            let payload = vec![7; length];
            let mut reply = Vec::new();
            let mut times: Vec<u64> = (0..if spins { 200_000 } else { 5_000 })
                .map(|_| {
                    let begun_ns = monotonic_ns();
                    assert_eq!(call(&table, waiting, &payload, &mut reply), AttemptEnd::Answered(ReplyStatus::Reply));
                    monotonic_ns() - begun_ns
                })
                .collect();
            times.sort_unstable();
            println!("{name} {length} B: p50 {} ns, p99 {} ns", times[times.len() / 2], times[times.len() * 99 / 100]);
        }
        instance.end();
    }
}

#[test]
fn dropped_claim_is_not_served() {
    let table = table(1, 100);
    let (instance, mut call, taken) = claimed(&table);
    drop(taken);
    assert_eq!(call.try_end(&mut Vec::new()), Some(AttemptEnd::Answered(ReplyStatus::NotServed)));
    drop(call);
    assert_eq!(table.slots(), (1, 0, 0));
    instance.end();
}

/// A long request is copied without the lock; its only instance goes meanwhile.
#[test]
fn departure_during_copy_is_refused() {
    const LENGTH: usize = 4 << 20;
    let table = table(4, LENGTH);
    let payload = vec![7; LENGTH];
    let mut refused = 0;
    for _ in 0..1000 {
        let instance = TestInstance::start(&table, 0, false, increment());
        let (all, number) = (table.slots().0, instance.number);
        thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let offer = RemoteOffer { target: number, ..timeout_in(60_000) };
                let ended = Attempt::start(&table, offer, &[], &payload);
                ended.map(|mut call| call.wait(Waiting::Park, &mut Vec::new()))
            });
            while table.slots().0 == all && !calling.is_finished() {
                std::hint::spin_loop();
            }
            table.close_instance(number);
            table.remove_instance(number);
            match calling.join().unwrap() {
                Err(NotOffered::NoInstance) => refused += 1,
                Ok(AttemptEnd::NotBegun(_) | AttemptEnd::NotTaken) => {}
                other => panic!("{other:?}"),
            }
        });
        instance.end();
        assert_eq!(table.slots(), (4, 0, 0), "its slot is free");
        if refused == 3 {
            return;
        }
    }
    panic!("{refused} of 1000 instances went while the request was copied");
}

#[track_caller]
fn run_without_deadlock(run: impl FnOnce() + Send + 'static) {
    let (tell, told) = std::sync::mpsc::channel();
    let running = thread::spawn(move || {
        run();
        tell.send(()).unwrap();
    });
    let ended = told.recv_timeout(gapless_testkit::wait::PATIENCE);
    assert_ne!(ended, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "deadlock on its own lock");
    running.join().unwrap();
}

struct Last(Box<dyn Fn() + Send + Sync>);

impl std::task::Wake for Last {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Last {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn last(run: impl Fn() + Send + Sync + 'static) -> std::task::Waker {
    Arc::new(Last(Box::new(run))).into()
}

#[test]
fn replaced_task_drops_without_a_lock() {
    let noop = || std::task::Context::from_waker(std::task::Waker::noop());
    run_without_deadlock(move || {
        let table = table(1, 64);
        let (instance, mut call, taken) = claimed(&table);
        let (closing, number) = (Arc::clone(&table), instance.number);
        let before = last(move || closing.close_instance(number));
        let mut reply = Vec::new();
        assert!(call.poll(&std::task::Context::from_waker(&before), || {}, &mut reply).is_pending());
        drop(before);
        let ended = call.poll(&noop(), || {}, &mut reply);
        assert!(matches!(ended, std::task::Poll::Ready(AttemptEnd::NotBegun(_))), "it was closed meanwhile: {ended:?}");
        drop((call, taken));
        instance.end();
    });
    run_without_deadlock(|| {
        let table = table(1, 64);
        let instance = TestInstance::start(&table, 0, false, increment());
        let one_way = RemoteOffer { one_way: true, ..timeout_in(20_000) };
        Attempt::start(&table, one_way, &[], b"x").unwrap().leave();
        let looking = Arc::clone(&table);
        let (before, mut first, mut second) =
            (last(move || drop(looking.open_numbers())), RemoteOffer::default(), RemoteOffer::default());
        table.want_change(&before, &mut first);
        drop(before);
        table.leave_queue(first.place.unwrap());
        table.want_change(std::task::Waker::noop(), &mut second);
        instance.end();
    });
    run_without_deadlock(move || {
        let table = table(1, 64);
        let instance = TestInstance::start(&table, 0, false, increment());
        let mut puller = Puller::new(Arc::clone(&instance.served));
        let resuming = Arc::clone(&instance.served);
        let before = last(move || resuming.resume());
        assert!(puller.poll_take(&mut std::task::Context::from_waker(&before)).is_pending());
        drop(before);
        assert!(puller.poll_take(&mut noop()).is_pending());
        instance.end();
    });
}

#[test]
fn busy_task_yields_to_others() {
    let table = table(128, 8);
    let instance = TestInstance::start(&table, 0, false, increment());
    let woken = Arc::<WakeCount>::default();
    let waker = std::task::Waker::from(Arc::clone(&woken));
    let mut task = std::task::Context::from_waker(&waker);
    let mut puller = Puller::new(Arc::clone(&instance.served));
    let (mut taken, mut pauses) = (0, 0);
    while taken < 500 {
        Attempt::start(&table, RemoteOffer { one_way: true, ..timeout_in(20_000) }, &[], b"x").unwrap().leave();
        match puller.poll_take(&mut task) {
            std::task::Poll::Ready(claimed) => {
                claimed.unwrap().answer(ReplyStatus::Reply, &[]);
                taken += 1;
            }
            std::task::Poll::Pending => {
                assert_eq!(woken.take(), 1, "it goes on by itself");
                pauses += 1;
            }
        }
    }
    assert!((5..=50).contains(&pauses), "{pauses} pauses");
    drop(puller);
    instance.end();
}

/// The application's code for rewriting a request may be slow, and may call.
#[test]
fn rewrite_runs_unlocked() {
    static TABLE: std::sync::OnceLock<Arc<RouteTable>> = std::sync::OnceLock::new();
    fn rewrite((from, to): (u64, u64), payload: &[u8]) -> Result<Vec<u8>, crate::MessageError> {
        assert_eq!((from, to, payload), (7, 8, &b"old"[..]));
        assert_eq!(TABLE.get().unwrap().open_numbers().len(), 1);
        Ok(b"new".to_vec())
    }
    run_without_deadlock(|| {
        let shape = CallTableShape::new(1, 100).unwrap();
        let table = Arc::new(
            RouteTable::create("test.route".into(), shape, (7, rewrite), &CounterDestination::in_memory()).unwrap(),
        );
        let table = TABLE.get_or_init(|| table);
        let instance = TestInstance::start(table, 0, false, increment());
        let mut offer = RemoteOffer { one_way: true, ..timeout_in(20_000) };
        offer.header.fingerprint = 7;
        Attempt::start(table, offer, &[], b"old").unwrap().leave();
        table.set_request_fingerprint(8);
        assert_eq!(Attempt::start(table, timeout_in(20_000), &[], b"x").unwrap_err(), NotOffered::Full);
        assert!(!table.has_ended(), "it waits to be rewritten");
        assert!(table.give_notices());
        let claimed = Puller::new(Arc::clone(&instance.served)).take().unwrap();
        let (mut headers, mut payload) = (Vec::new(), Vec::new());
        assert_eq!((claimed.read(&mut headers, &mut payload).unwrap().fingerprint, &*payload), (8, &b"new"[..]));
        claimed.answer(ReplyStatus::Reply, &[]);
        assert!(table.has_ended());
        instance.end();
    });
}
