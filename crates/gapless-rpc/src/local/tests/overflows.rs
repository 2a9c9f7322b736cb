//! The interface of the overflow: order, limits, delayed and lost requests.

use super::*;
use crate::local::{ByteQueues, EncodedOverflow};
use crate::message::{Encoding, Message, MessageError};
use crate::options::Priority;
use crate::outcome::CallError;
use gapless_testkit::random::Random;
use gapless_testkit::wait;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// [`UNREADABLE`] panics when it is decoded, [`UNWRITABLE`] when encoded.
#[derive(Debug, PartialEq, Eq)]
struct Number(u64);

const UNREADABLE: u64 = u64::MAX - 1;
const UNWRITABLE: u64 = u64::MAX - 2;

type Route = LocalRoute<Number, u64>;

fn call(route: &Route, request: u64) -> crate::local::LocalCall<u64> {
    route.call(Number(request), LocalOffer::default()).unwrap()
}

fn next(worker: &mut LocalWorker<Number, u64>) -> IncomingRequest<Number, u64> {
    worker.try_next().expect("a request waits")
}

fn serve(route: &Route) -> JoinHandle<u64> {
    let mut worker = route.worker().unwrap();
    std::thread::spawn(move || {
        let mut served = 0;
        while let Some(incoming) = worker.next_blocking(Waiting::Park) {
            incoming.handle(|request, _| Ok(request.0 + 1));
            served += 1;
        }
        served
    })
}

impl Message for Number {
    const TYPE_NAME: &'static str = "Number";
    const ENCODING: Encoding = Encoding::Bytes;
    fn fingerprint() -> u64 {
        64
    }
    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        if self.0 == u64::MAX {
            return Err(MessageError { type_name: Self::TYPE_NAME, reason: "too large".to_owned() });
        }
        assert_ne!(self.0, UNWRITABLE, "it panics when it is written");
        into.extend_from_slice(&self.0.to_le_bytes());
        Ok(())
    }
    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let error = |_| MessageError { type_name: Self::TYPE_NAME, reason: format!("{} bytes", bytes.len()) };
        let number = u64::from_le_bytes(bytes.try_into().map_err(error)?);
        assert_ne!(number, UNREADABLE, "it panics when it is read");
        Ok(Self(number))
    }
}

#[derive(Default)]
struct Disk {
    queues: [VecDeque<Vec<u8>>; 4],
    length_max: usize,
    is_slow: bool,
    most: usize,
}

#[derive(Clone, Default)]
struct SharedDisk(Arc<Mutex<Disk>>);

impl ByteQueues for SharedDisk {
    fn push(&mut self, class: Priority, bytes: &[u8]) -> Result<(), String> {
        let mut disk = self.0.lock().unwrap();
        if disk.queues[class as usize].len() >= disk.length_max {
            return Err("the disk is full".to_owned());
        }
        disk.queues[class as usize].push_back(bytes.to_vec());
        disk.most = disk.most.max(disk.queues[class as usize].len());
        Ok(())
    }
    fn pop(&mut self, class: Priority, into: &mut Vec<u8>) -> Result<bool, String> {
        let mut disk = self.0.lock().unwrap();
        if disk.is_slow {
            return Ok(false);
        }
        let bytes = disk.queues[class as usize].pop_front().expect("it is asked only for what was pushed");
        into.extend_from_slice(&bytes);
        Ok(true)
    }
}

fn overflowing(queue_max: usize, length_max: usize) -> (Route, SharedDisk) {
    let disk = SharedDisk::default();
    disk.0.lock().unwrap().length_max = length_max;
    let overflow = Some(Box::new(EncodedOverflow::new(disk.clone())) as _);
    (Route::new("test", LocalOptions { queue_max, overflow, ..LocalOptions::default() }).unwrap(), disk)
}

#[test]
fn overflow_keeps_order() {
    let (route, disk) = overflowing(4, 1_000);
    let calls: Vec<_> = (0..500).map(|request| call(&route, request)).collect();
    assert_eq!(route.queued(), (4, 496));
    let mut worker = route.worker().unwrap();
    for request in 0..500 {
        let incoming = next(&mut worker);
        assert_eq!(incoming.request.0, request);
        incoming.answer.reply(request * 2);
    }
    assert!(worker.try_next().is_none());
    calls.into_iter().zip(0..).for_each(|(call, request)| assert_eq!(call.wait(Waiting::Park), Ok(request * 2)));
    assert_eq!(route.queued(), (0, 0));
    assert_eq!(disk.0.lock().unwrap().most, 496);
}

#[test]
fn full_disk_is_busy() {
    let (route, _disk) = overflowing(1, 2);
    (0..3).for_each(|request| route.send(Number(request), LocalOffer::default()).unwrap());
    let reason = |request| route.send(Number(request), LocalOffer::default()).unwrap_err().error.to_string();
    assert!(reason(3).contains("the disk is full"));
    assert!(reason(u64::MAX).contains("too large"));
    let mut worker = route.worker().unwrap();
    (0..3).for_each(|request| assert_eq!(next(&mut worker).request.0, request));
}

#[test]
fn unread_request_waits_for_refill() {
    let (route, disk) = overflowing(2, 100);
    disk.0.lock().unwrap().is_slow = true;
    let calls: Vec<_> = (0..20).map(|request| call(&route, request)).collect();
    let serving: Vec<_> = (0..3).map(|_| serve(&route)).collect();
    wait::until("the memory is empty", || route.queued() == (0, 18));
    route.drain();
    disk.0.lock().unwrap().is_slow = false;
    route.refill();
    calls.into_iter().zip(0..).for_each(|(call, request)| assert_eq!(call.wait(Waiting::Park), Ok(request + 1)));
    assert_eq!(serving.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 20);
}

#[test]
fn corrupt_request_has_not_begun() {
    let (route, disk) = overflowing(1, 100);
    let calls: Vec<_> = (0..5).map(|request| call(&route, request)).collect();
    disk.0.lock().unwrap().queues[Priority::Normal as usize][1].pop();
    let serving = serve(&route);
    for (request, call) in calls.into_iter().enumerate() {
        let outcome = call.wait(Waiting::Park);
        if request == 2 {
            assert!(matches!(outcome, Err(CallError::NotBegun { reason, .. }) if reason.contains("7 bytes")));
        } else {
            assert_eq!(outcome, Ok(request as u64 + 1));
        }
    }
    route.drain();
    assert_eq!(serving.join().unwrap(), 4);
}

#[test]
fn panicking_request_has_not_begun() {
    let (route, _disk) = overflowing(1, 100);
    let is_unlucky = |request: u64| request % 5 == 3;
    let calls: Vec<_> =
        (0..50).map(|request| call(&route, if is_unlucky(request) { UNREADABLE } else { request })).collect();
    let unsent = route.call(Number(UNWRITABLE), LocalOffer::default()).unwrap_err();
    assert!(unsent.error.to_string().contains("it panics when it is written"), "{unsent:?}");
    let serving: Vec<_> = (0..3).map(|_| serve(&route)).collect();
    for (request, call) in (0..).zip(calls) {
        let outcome = call.wait(Waiting::Park);
        if is_unlucky(request) {
            assert!(matches!(&outcome, Err(CallError::NotBegun { reason, .. }) if reason.contains("when it is read")));
        } else {
            assert_eq!(outcome, Ok(request + 1));
        }
    }
    route.drain();
    assert_eq!(serving.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>(), 40);
}

#[test]
fn loss_callback_may_call() {
    let (route, disk) = overflowing(1, 100);
    let calls: Vec<_> = (0..3).map(|request| call(&route, request)).collect();
    disk.0.lock().unwrap().queues[Priority::Normal as usize][0].pop();
    let (told, is_told) = std::sync::mpsc::channel();
    for call in calls {
        let (route, told) = (route.clone(), told.clone());
        call.on_outcome(move |outcome| {
            let is_lost = outcome.is_err();
            let again = is_lost.then(|| [7, 8].map(|number| route.send(Number(number), LocalOffer::default()).is_ok()));
            told.send((is_lost, again)).unwrap();
        });
    }
    let serving = serve(&route);
    let mut outcomes: Vec<_> =
        (0..3).map(|_| is_told.recv_timeout(wait::PATIENCE).expect("no call is stuck")).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [(false, None), (false, None), (true, Some([true; 2]))]);
    route.drain();
    assert_eq!(serving.join().unwrap(), 4);
}

/// A worker whose waker polls it immediately, as some executors do.
struct PolledAtOnce {
    worker: Mutex<LocalWorker<Number, u64>>,
    is_woken: AtomicBool,
    taken: std::sync::mpsc::Sender<u64>,
}

impl PolledAtOnce {
    fn poll(self: &Arc<Self>) {
        let waker = std::task::Waker::from(Arc::clone(self));
        let mut task = std::task::Context::from_waker(&waker);
        self.is_woken.store(true, Ordering::SeqCst);
        while self.is_woken.load(Ordering::SeqCst) {
            let Ok(mut worker) = self.worker.try_lock() else { return };
            self.is_woken.store(false, Ordering::SeqCst);
            while let std::task::Poll::Ready(Some(incoming)) = worker.poll_next(&mut task) {
                self.taken.send(incoming.request.0).unwrap();
                incoming.answer.reply(0);
            }
        }
    }
}

impl std::task::Wake for PolledAtOnce {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

#[test]
fn waker_may_poll_its_worker() {
    let (route, disk) = overflowing(1, 100);
    disk.0.lock().unwrap().is_slow = true;
    (0..20).for_each(|request| route.send(Number(request), LocalOffer::default()).unwrap());
    let (taken, is_taken) = std::sync::mpsc::channel();
    let worker = Mutex::new(route.worker().unwrap());
    Arc::new(PolledAtOnce { worker, is_woken: AtomicBool::new(false), taken }).poll();
    assert_eq!(route.queued(), (0, 19));
    disk.0.lock().unwrap().is_slow = false;
    let refilled = std::thread::spawn(move || route.refill());
    for request in 0..20 {
        assert_eq!(is_taken.recv_timeout(wait::PATIENCE), Ok(request), "it waits for its own lock");
    }
    refilled.join().unwrap();
}

#[test]
fn ending_route_ends_requests_on_disk() {
    let (route, _disk) = overflowing(1, 100);
    let calls: Vec<_> = (0..5).map(|request| call(&route, request)).collect();
    route.withdraw();
    for call in calls {
        assert!(matches!(call.wait(Waiting::Park), Err(CallError::NotBegun { .. })));
    }
}

#[test]
fn order_holds_between_memory_and_disk() {
    let (route, disk) = overflowing(16, 1_000_000);
    let seed = gapless_testkit::random::printed_seed();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut worker = route.worker().unwrap();
    let taken = Arc::clone(&seen);
    // One worker, so that the order of takes is visible.
    let serving = std::thread::spawn(move || {
        while let Some(incoming) = worker.next_blocking(Waiting::Park) {
            taken.lock().unwrap().push(incoming.request.0);
            incoming.answer.reply(incoming.request.0);
        }
    });
    let callers: Vec<_> = (0..4_u64)
        .map(|caller| {
            let route = route.clone();
            std::thread::spawn(move || {
                let mut random = Random::new(seed ^ caller);
                let class = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low][caller as usize];
                for burst in 0..100 {
                    let calls: Vec<_> = (0..random.below(100))
                        .map(|number| caller << 32 | burst << 16 | number)
                        .map(|request| route.call(Number(request), LocalOffer::default().with_priority(class)).unwrap())
                        .collect();
                    calls.into_iter().for_each(|call| assert!(call.wait(Waiting::Park).is_ok()));
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    route.drain();
    serving.join().unwrap();
    assert!(disk.0.lock().unwrap().most > 16);
    let seen = seen.lock().unwrap();
    for caller in 0..4 {
        assert!(seen.iter().filter(|request| *request >> 32 == caller).is_sorted());
    }
}
