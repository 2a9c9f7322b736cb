//! [`Seats`]: which agent of a node sits on which thread, and how each is woken.

use crate::EngineError;
use crate::options::NodeOptions;
use gapless_agent::plan::cores_available;
use gapless_agent::{AgentSpec, PlanKind, ThreadPlan, Waker};
use gapless_stream::Tier;

/// A clean stop may take this long: what was taken is handled, and a last snapshot written.
const DRAIN_NS_MAX: u64 = 600_000_000_000;

/// The agents' threads: which, and how each is woken.
pub(crate) struct Seats {
    pub plan: ThreadPlan,
    pub wakers: Vec<Waker>,
}

impl Seats {
    pub fn new(options: &NodeOptions) -> Result<Self, EngineError> {
        let threads = &options.threads;
        let is_durable = options.tier != Tier::Memory;
        // All of them are on the path of a message. The weights are their shares of its time.
        let mut agents = vec![AgentSpec::new("sequencer").hot()];
        if is_durable {
            agents.push(
                AgentSpec::new("journaler")
                    .detachable()
                    .alone(threads.detach_persister)
                    .hot()
                    .cpus(threads.persister_cpus),
            );
        }
        agents.push(AgentSpec::new("service").hot().weight(2).cpus(threads.service_cpus));
        if threads.detach_sender || threads.plan == PlanKind::Max {
            agents.push(
                AgentSpec::new("sender").detachable().alone(threads.detach_sender).hot().cpus(threads.sender_cpus),
            );
        }
        let mut plan =
            gapless_agent::plan(threads.plan, threads.optimize_for, &agents, cores_available(), threads.callers_hot);
        for thread in &mut plan.threads {
            thread.spec.drain_ns_max = DRAIN_NS_MAX;
        }
        let wakers = plan.threads.iter().map(|_| Waker::new()).collect::<Result<_, _>>();
        Ok(Self { wakers: wakers.map_err(EngineError::system("making a waker"))?, plan })
    }

    pub fn seat(&self, agent: &str) -> Option<usize> {
        self.plan.threads.iter().position(|thread| thread.agents.iter().any(|name| name == agent))
    }

    pub fn waker(&self, agent: &str) -> Waker {
        let seat = self.seat(agent).expect("the plan seats every agent");
        self.wakers[seat].clone()
    }

    /// The wakers of `agents` that sit on another thread than `from` (`None`: a helper thread).
    pub fn downstream(&self, from: Option<&str>, agents: &[&str]) -> Vec<Waker> {
        let own = from.and_then(|from| self.seat(from));
        let mut seats: Vec<usize> = agents.iter().filter_map(|agent| self.seat(agent)).collect();
        seats.dedup();
        seats.into_iter().filter(|seat| Some(*seat) != own).map(|seat| self.wakers[seat].clone()).collect()
    }
}
