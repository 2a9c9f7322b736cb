//! One system under test in one way of use: its server, and callers that are only connected. The calling end is in this
//! process.

use super::{check_interrupted, failed};
use crate::Result;
use crate::child_process::{Child, ChildRole};
use gapless_load::peers::subject::PeerCaller;
use gapless_load::rpc::exchange::{BlockEdge, CallExchange, CallTotals};
use gapless_load::rpc::server_process::{ServerAssignment, ServerRequest, ServerTask, StreamReceipt, now_ns};
use gapless_load::rpc::subject::{SystemBroker, SystemEndpoint, WaitMode};
use gapless_measure::affinity::{available_cpus, pair_of_cores, pin_current_thread};
use gapless_measure::reporting::word;
use std::sync::atomic::AtomicBool;

const WARM_UP: u64 = 10;
const WARM_UP_MIN: u64 = 64;

pub(super) struct RpcUnderTest<'a> {
    pub(super) endpoint: SystemEndpoint,
    pub(super) waiting: WaitMode,
    broker: &'a SystemBroker,
    route: String,
    server: Child<'a>,
    caller: Box<dyn PeerCaller>,
    next_ticket: u64,
    interrupted: &'a AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuTimes {
    pub(super) client_ns: u64,
    pub(super) server_ns: u64,
    pub(super) broker_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct OneWayStream {
    pub(super) received: StreamReceipt,
    /// Time from the first send to the last arrival; 0 if that did not arrive.
    pub(super) elapsed_ns: u64,
    pub(super) sent: u64,
    pub(super) cpu: CpuTimes,
}

impl<'a> RpcUnderTest<'a> {
    /// Starts a resting server, and connects the caller.
    pub(super) fn start(
        endpoint: SystemEndpoint,
        waiting: WaitMode,
        broker: &'a SystemBroker,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let acknowledgement = endpoint.acknowledgement().unwrap_or("plain");
        // A route of its own: a resting server is asked nothing.
        let route = format!("gapless.increment.{acknowledgement}.{}", word(waiting));
        let cpu = pair_of_cores().map(|(_, second)| second).filter(|_| waiting == WaitMode::Spinning);
        let assignment = ServerAssignment { endpoint, route, waiting, task: ServerTask::Serve { cpu } };
        let name = format!("the server of {}", assignment.endpoint.system());
        let mut server = Child::start(super::NAME, &name, (ChildRole::RpcServer, &assignment), interrupted)?;
        let ServerAssignment { endpoint, route, .. } = assignment;
        server.receive::<bool>()?;
        let caller = endpoint.caller(&route, waiting)?;
        Ok(Self { endpoint, waiting, broker, route, server, caller, next_ticket: 0, interrupted })
    }

    /// Runs `measure` while the server serves, on its own core if both ends spin.
    pub(super) fn serve<T: Send>(&mut self, measure: impl FnOnce(&mut Self) -> Result<T> + Send) -> Result<T>
    where
        Self: Send,
    {
        self.server.ask::<bool>(&ServerRequest::Serve)?;
        let measured = std::thread::scope(|scope| {
            let measurer = scope.spawn(|| {
                if let Some((first, _)) = pair_of_cores().filter(|_| self.waiting == WaitMode::Spinning) {
                    pin_current_thread(&[first])?;
                }
                measure(self)
            });
            measurer.join().unwrap_or_else(|_| Err(failed("the client panicked")))
        });
        // A server that spins would take a core from the next measurement; its end may be the cause of an error.
        let rested = self.server.ask::<bool>(&ServerRequest::Rest);
        let measured = measured.map_err(|error| self.server.check_running().err().unwrap_or(error))?;
        rested?;
        Ok(measured)
    }

    /// Warms up before the calls.
    pub(super) fn calls(&mut self, size: usize, count: u64, in_flight: usize) -> Result<(CallTotals, CpuTimes)> {
        let (server, broker, interrupted) = (&mut self.server, self.broker, self.interrupted);
        let mut exchange = CallExchange::new(&mut *self.caller, size, &mut self.next_ticket);
        let warm_up = (count / WARM_UP).max(WARM_UP_MIN);
        exchange.calls(warm_up, in_flight, &mut |_| check_interrupted(interrupted))?;
        // Excludes the CPU time of a server that spins while replies are checked.
        let (mut sum, mut before) = (CpuTimes::default(), CpuTimes::default());
        let mut edge = |edge: BlockEdge| {
            check_interrupted(interrupted)?;
            let now = CpuTimes::now(server, broker)?;
            match edge {
                BlockEdge::Begin => before = now,
                BlockEdge::End => sum = sum.plus(now.since(before)),
            }
            Ok(())
        };
        let calls = exchange.calls(count, in_flight, &mut edge)?;
        let cpu = CpuTimes { client_ns: calls.cpu_ns, ..sum };
        Ok((calls, cpu))
    }

    /// Warms up first. Times from sending the first message to the arrival of the last: a late receiver would see only
    /// what sockets have gathered.
    pub(super) fn one_way(&mut self, size: usize, count: u64) -> Result<OneWayStream> {
        self.stream(size, (count / WARM_UP).max(WARM_UP_MIN))?;
        check_interrupted(self.interrupted)?;
        self.stream(size, count)
    }

    fn stream(&mut self, size: usize, count: u64) -> Result<OneWayStream> {
        self.server.ask::<bool>(&ServerRequest::Expect { size, count })?;
        let mut exchange = CallExchange::new(&mut *self.caller, size, &mut self.next_ticket);
        let before = CpuTimes::now(&mut self.server, self.broker)?;
        let begin_ns = now_ns();
        let client_ns = exchange.stream(count)?;
        let received: StreamReceipt = self.server.ask(&ServerRequest::Received)?;
        let cpu = CpuTimes { client_ns, ..CpuTimes::now(&mut self.server, self.broker)?.since(before) };
        Ok(OneWayStream { received, elapsed_ns: received.last_at_ns.saturating_sub(begin_ns), sent: count, cpu })
    }

    /// Connects `count` idle callers in a process of their own, until the value is dropped.
    pub(super) fn hold_callers(&mut self, count: usize) -> Result<Child<'a>> {
        let (endpoint, route) = (self.endpoint.clone(), self.route.clone());
        let assignment =
            ServerAssignment { endpoint, route, waiting: WaitMode::Blocking, task: ServerTask::HoldCallers { count } };
        let mut child =
            Child::start(super::NAME, "the idle callers", (ChildRole::RpcServer, &assignment), self.interrupted)?;
        child.receive::<usize>()?;
        match self.server.ask::<Option<usize>>(&ServerRequest::Callers)? {
            Some(connected) if connected != count + 1 => {
                Err(failed(format!("{connected} callers are connected; {} were expected", count + 1)))
            }
            _ => Ok(child),
        }
    }
}

impl CpuTimes {
    fn now(server: &mut Child<'_>, broker: &SystemBroker) -> Result<Self> {
        Ok(Self { client_ns: 0, server_ns: server.ask(&ServerRequest::Cpu)?, broker_ns: broker.cpu_ns() })
    }

    fn since(self, before: Self) -> Self {
        // The time of an ended thread is missing.
        let broker_ns = self.broker_ns.zip(before.broker_ns).map(|(now, then)| now.saturating_sub(then));
        Self { client_ns: 0, server_ns: self.server_ns.saturating_sub(before.server_ns), broker_ns }
    }

    fn plus(self, other: Self) -> Self {
        let broker_ns = other.broker_ns.map(|ns| ns + self.broker_ns.unwrap_or(0));
        Self { client_ns: self.client_ns, server_ns: self.server_ns + other.server_ns, broker_ns }
    }
}

pub(super) fn has_two_cores() -> bool {
    available_cpus().len() > 1
}
