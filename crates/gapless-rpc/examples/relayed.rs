//! Relayed calls compared with direct ones: two domains in one process, and a thread that carries requests from one to
//! the other.
//!
//! ```sh
//! cargo run --release -p gapless-rpc --example relayed            # 20,000 calls of each kind
//! cargo run --release -p gapless-rpc --example relayed -- 1000
//! ```

use gapless_rpc::relay::{Relay, RelayedCall, RelayedCaller, RelayedRequest};
use gapless_rpc::{Call, CallContext, CallOptions, Caller, CallerOptions, Domain, DomainOptions};
use gapless_testkit::allocations::{CountingAllocator, during};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

type Failure = Box<dyn std::error::Error>;

const LENGTH: usize = 72;
/// Calls of one kind before the other kind has its turn.
const BLOCK: usize = 1_000;

fn main() -> Result<(), Failure> {
    let calls: usize = std::env::args().nth(1).map_or(Ok(20_000), |calls| calls.parse())?;
    let folder = tempfile::tempdir()?;
    let open = |name: &str| Domain::open_directory(folder.path().join(name), DomainOptions::default());
    let (server, far, near) = (open("far")?, open("far")?, open("near")?);
    let _served = server.serve("echo").handle(|bytes: Vec<u8>, _: &CallContext| Ok(bytes))?;
    for spins in [false, true] {
        let carrier = Carrier { spins, ..Carrier::default() };
        let relay = near.relay("echo").open()?;
        let elsewhere = far.relayed_caller("echo", Default::default(), Default::default())?;
        let own = carrier.clone();
        let thread = std::thread::spawn(move || own.carry(relay, &elsewhere));
        let (direct, relayed) = (caller(&open("far")?)?, caller(&open("near")?)?);
        let mut times = [Vec::new(), Vec::new()];
        for block in 0..calls.div_ceil(BLOCK) {
            for (caller, times) in [&direct, &relayed].into_iter().zip(&mut times) {
                let count = BLOCK.min(calls - block * BLOCK);
                times.extend((0..count).map(|_| time_of(caller)).collect::<Result<Vec<_>, _>>()?);
            }
        }
        carrier.ends.store(true, Ordering::SeqCst);
        thread.thread().unpark();
        drop(thread.join());
        println!("{} of {LENGTH} bytes; the carrying thread {}", calls, if spins { "spins" } else { "sleeps" });
        for (kind, times) in ["direct", "relayed"].into_iter().zip(&mut times) {
            times.sort_unstable();
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_nanos() as f64 / 1e3;
            println!("  {kind:<8} p50 {:>8.1} µs   p99 {:>8.1} µs", at(0.5), at(0.99));
        }
        let (carried, allocations) = (carrier.carried(), carrier.allocations.load(Ordering::SeqCst));
        println!("  allocations of the carrying thread for each call: {:.2}", allocations as f64 / carried as f64);
    }
    Ok(())
}

fn caller(domain: &Domain) -> Result<Caller<Vec<u8>, Vec<u8>>, Failure> {
    let call = CallOptions { wait_for_route: Some(Duration::from_secs(10)), ..CallOptions::default() };
    let caller = domain.caller_with("echo", CallerOptions { call, ..CallerOptions::default() })?;
    caller.call(vec![0; LENGTH])?;
    Ok(caller)
}

fn time_of(caller: &Caller<Vec<u8>, Vec<u8>>) -> Result<Duration, Failure> {
    let request = vec![7; LENGTH];
    let began = Instant::now();
    let reply = caller.call(request)?;
    let took = began.elapsed();
    if reply.len() == LENGTH { Ok(took) } else { Err(format!("{} bytes came back", reply.len()).into()) }
}

#[derive(Clone, Default)]
struct Carrier {
    spins: bool,
    ends: Arc<AtomicBool>,
    carried: Arc<AtomicU64>,
    allocations: Arc<AtomicU64>,
}

struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Carrier {
    fn carried(&self) -> u64 {
        self.carried.load(Ordering::SeqCst).max(1)
    }

    fn carry(&self, mut relay: Relay, elsewhere: &RelayedCaller) {
        let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
        let mut under_way = Vec::new();
        while !self.ends.load(Ordering::SeqCst) {
            let mut task = Context::from_waker(&waker);
            let allocated = during(|| self.turn(&mut relay, elsewhere, &mut under_way, &mut task));
            self.allocations.fetch_add(allocated, Ordering::SeqCst);
            if self.spins {
                std::hint::spin_loop();
            } else {
                std::thread::park();
            }
        }
    }

    fn turn(
        &self,
        relay: &mut Relay,
        elsewhere: &RelayedCaller,
        under_way: &mut Vec<(RelayedRequest, Call<Vec<u8>>)>,
        task: &mut Context<'_>,
    ) {
        while let Some(mut request) = self.next(relay, task) {
            if request.begin() {
                self.carried.fetch_add(1, Ordering::SeqCst);
                let (payload, timeout) = (request.take_payload(), request.remaining());
                let call = elsewhere.start(RelayedCall { payload, timeout, ..RelayedCall::default() });
                under_way.push((request, call));
            }
        }
        for at in (0..under_way.len()).rev() {
            let call = &mut under_way[at].1;
            let ended = match Pin::new(call) {
                mut call if self.spins => call.try_take(),
                call => match call.poll(task) {
                    Poll::Ready(outcome) => Some(outcome),
                    Poll::Pending => None,
                },
            };
            if let Some(outcome) = ended {
                let (request, _) = under_way.swap_remove(at);
                match outcome {
                    Ok(reply) => request.reply(&reply),
                    Err(error) => request.end(&error),
                };
            }
        }
    }

    fn next(&self, relay: &mut Relay, task: &mut Context<'_>) -> Option<RelayedRequest> {
        if self.spins {
            return relay.take();
        }
        match relay.poll_take(task) {
            Poll::Ready(request) => request,
            Poll::Pending => None,
        }
    }
}
