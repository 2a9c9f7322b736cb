//! Assignment of a service host's agents to threads.

use crate::EngineError;
use crate::options::ServiceHostOptions;
use gapless_agent::plan::cores_available;
use gapless_agent::{AgentSpec, PlanKind, ThreadAssignment};
use gapless_stream::AgentRole;
use gapless_transport::Tier;

/// Limit of a clean stop: handling all accepted frames, and a last snapshot.
const DRAIN_NS_MAX: u64 = 600_000_000_000;

pub(crate) fn of_host(options: &ServiceHostOptions) -> Result<ThreadAssignment<AgentRole>, EngineError> {
    let threads = &options.threads;
    let is_durable = options.tier != Tier::Memory;
    // All agents are on the path of a message; weights are their shares of its time.
    let mut agents = vec![AgentSpec::new(AgentRole::Sequencer).hot()];
    if is_durable {
        let journaler = AgentSpec::new(AgentRole::Journaler).detachable().alone(threads.detach_persister);
        agents.push(journaler.hot().cpus(threads.persister_cpus));
    }
    agents.push(AgentSpec::new(AgentRole::Service).hot().weight(2).cpus(threads.service_cpus));
    if threads.detach_sender || threads.plan == PlanKind::Max {
        let sender = AgentSpec::new(AgentRole::Sender).detachable().alone(threads.detach_sender);
        agents.push(sender.hot().cpus(threads.sender_cpus));
    }
    let mut plan =
        gapless_agent::plan(threads.plan, threads.optimize_for, &agents, cores_available(), threads.callers_hot);
    for thread in &mut plan.threads {
        thread.spec.drain_ns_max = DRAIN_NS_MAX;
    }
    ThreadAssignment::new(plan).map_err(EngineError::system("making a waker"))
}
