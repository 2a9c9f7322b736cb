use gapless_rpc::Waiting;
use gapless_rpc::local::{LocalOffer, LocalOptions, LocalRoute};
use gapless_testkit::allocations::{CountingAllocator, during};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn call_allocates_once_send_never() {
    let route = LocalRoute::<[u8; 72], [u8; 72]>::new("test", LocalOptions::default()).unwrap();
    let mut worker = route.worker().unwrap();
    let mut turn = |with_deadline: bool| {
        let offer = LocalOffer::default();
        let offer = if with_deadline { offer.with_timeout(Duration::from_secs(5)) } else { offer };
        let mut context = Context::from_waker(Waker::noop());
        assert!(worker.poll_next(&mut context).is_pending());
        let mut call = pin!(route.call([1; 72], offer).unwrap());
        assert!(call.as_mut().poll(&mut context).is_pending());
        worker.try_next().unwrap().handle(|bytes, _| Ok(bytes));
        assert!(call.as_mut().poll(&mut context).is_ready());
    };
    // Queues and lists grow once.
    turn(true);
    for with_deadline in [false, true] {
        assert_eq!(during(|| (0..1_000).for_each(|_| turn(with_deadline))), 1_000);
    }
    let sends = during(|| {
        for _ in 0..1_000 {
            route.send([1; 72], LocalOffer::default()).unwrap();
            worker.next_blocking(Waiting::Park).unwrap().handle(|bytes, _| Ok(bytes));
        }
    });
    assert_eq!(sends, 0);
}
