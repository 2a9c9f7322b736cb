//! The relay of these tests is a thread that polls a [`Relay`] of one domain and its calls in the other.

mod relayed_outcomes_match;
mod relays_share_a_route;
mod requests_keep_attributes;

use gapless_rpc::message::described::TypeDescription;
use gapless_rpc::relay::{Relay, RelayedCall, RelayedCaller, RelayedRequest};
use gapless_rpc::{Call, Domain, DomainOptions};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};

pub struct Domains {
    pub near: Domain,
    pub far: Domain,
    pub client: Domain,
    pub server: Domain,
    folder: tempfile::TempDir,
}

impl Domains {
    pub fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| open(&folder, name);
        Self { near: open("near"), far: open("far"), client: open("near"), server: open("far"), folder }
    }

    pub fn near_member(&self) -> Domain {
        open(&self.folder, "near")
    }

    pub fn far_member(&self) -> Domain {
        open(&self.folder, "far")
    }
}

fn open(folder: &tempfile::TempDir, name: &str) -> Domain {
    Domain::open_directory(folder.path().join(name), DomainOptions::default()).unwrap()
}

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub struct Carrier {
    ends: Arc<AtomicBool>,
    carried: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Carrier {
    pub fn start(relay: Relay, far: &Domain) -> Self {
        let (ends, carried, far) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default(), far.clone());
        let (own_ends, own_carried) = (Arc::clone(&ends), Arc::clone(&carried));
        let thread = std::thread::spawn(move || carry(relay, &far, &own_ends, &own_carried));
        Self { ends, carried, thread: Some(thread) }
    }

    pub fn carried(&self) -> usize {
        self.carried.load(Ordering::SeqCst)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let thread = self.thread.take().unwrap();
        thread.thread().unpark();
        let joined = thread.join();
        assert!(joined.is_ok() || std::thread::panicking());
    }
}

fn carry(mut relay: Relay, far: &Domain, ends: &AtomicBool, carried: &AtomicUsize) {
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut task = Context::from_waker(&waker);
    let mut callers = Callers::default();
    let mut under_way: Vec<(RelayedRequest, Call<Vec<u8>>)> = Vec::new();
    while !ends.load(Ordering::SeqCst) {
        while let Poll::Ready(Some(mut request)) = relay.poll_take(&mut task) {
            let caller = callers.of(far, &request);
            if request.begin() {
                carried.fetch_add(1, Ordering::SeqCst);
                let _ = request.watch(&waker);
                let call = caller.start(call_of(&mut request));
                under_way.push((request, call));
            }
        }
        let mut left = Vec::new();
        for (request, mut call) in under_way {
            match Pin::new(&mut call).poll(&mut task) {
                Poll::Ready(Ok(reply)) => drop(request.reply(&reply)),
                Poll::Ready(Err(error)) => drop(request.end(&error)),
                Poll::Pending if request.is_cancelled() => {}
                Poll::Pending => left.push((request, call)),
            }
        }
        under_way = left;
        std::thread::park();
    }
}

#[derive(Default)]
pub struct Callers(Vec<((TypeDescription, TypeDescription), RelayedCaller)>);

impl Callers {
    pub fn of(&mut self, far: &Domain, request: &RelayedRequest) -> RelayedCaller {
        let types = (request.request_type().clone(), request.reply_type().clone());
        if let Some((_, caller)) =
            self.0.iter().find(|(known, caller)| *known == types && caller.route() == &**request.route())
        {
            return caller.clone();
        }
        let caller = far.relayed_caller(request.route(), types.0.clone(), types.1.clone()).unwrap();
        self.0.push((types, caller.clone()));
        caller
    }
}

pub fn call_of(request: &mut RelayedRequest) -> RelayedCall {
    RelayedCall {
        payload: request.take_payload(),
        headers: request.headers().clone(),
        key: request.key(),
        priority: request.priority(),
        timeout: request.remaining(),
        is_one_way: request.is_one_way(),
        hops: request.hops(),
        attempt: request.attempt(),
        trace: request.trace().clone(),
        retry: gapless_rpc::Retry::default(),
        wait_for_route: None,
        instance: request.instance(),
        query: request.query(),
    }
}
