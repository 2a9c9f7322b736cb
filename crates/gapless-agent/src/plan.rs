//! The plan is based on these costs:
//! - A hand-over between two cores costs the transfer of a cache line, 0.1–0.3 µs. For latency, the path of a message
//!   therefore stays on one thread, even if cores are free.
//! - For throughput the stages run in parallel, the heaviest first, as far as cores are free.
//! - A spinning thread without a core of its own takes time from the thread that it waits for. One that spins on a core
//!   needed by another makes that wait for the scheduler, milliseconds at each message. Both are downgraded to
//!   [`IdleStrategy::SHARED_CORE`], with a note in the plan.
//! - Spinning forever is only for those who ask and have a core for it: `min`, `max`, or `default` for latency with a
//!   CPU mask on a hot agent, or for an agent with `spins`. Otherwise threads spin while messages arrive and park when
//!   none do ([`IdleStrategy::SPIN_YIELD_PARK`]), so an idle node costs nothing.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use crate::cpu_mask::CpuMask;
use crate::error::Error;
use crate::idle::IdleStrategy;
use crate::thread::ThreadSpec;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptimizeFor {
    /// No delay for batching, no avoidable hand-overs.
    #[default]
    Latency,
    /// Larger batches, stages in parallel.
    Throughput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlanKind {
    /// One hot thread for a message's path; all other agents on a second thread that is not hot.
    Min,
    #[default]
    Default,
    /// Each detachable agent on a thread of its own.
    Max,
}

/// Cores from which the default plan spreads agents over threads, leaving one core for blocking helper threads and the
/// system.
pub const SPREADING_CORES_MIN: usize = 4;

/// Requirements of an agent; `R` identifies it, usually an enum of roles, whose display is the agent's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpec<R> {
    pub role: R,
    pub detachable: bool,
    /// On the path of a message: its delay adds to latency.
    pub hot: bool,
    /// Work per message relative to the others: the heaviest gets its own thread first.
    pub weight: u32,
    pub cpus: Option<CpuMask>,
    /// The user wants its own thread, whatever the plan; for detachable agents.
    pub alone: bool,
    /// The user wants its thread to spin forever, if that has a core of its own.
    pub spins: bool,
}

impl<R> AgentSpec<R> {
    /// An agent that runs with the business logic, is not hot, has weight 1 and no mask.
    #[must_use]
    pub fn new(role: R) -> Self {
        Self { role, detachable: false, hot: false, weight: 1, cpus: None, alone: false, spins: false }
    }

    #[must_use]
    pub fn detachable(mut self) -> Self {
        self.detachable = true;
        self
    }

    #[must_use]
    pub fn hot(mut self) -> Self {
        self.hot = true;
        self
    }

    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Gives it its own thread in every plan, if it is detachable.
    #[must_use]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Makes its thread spin forever, if that has its own core.
    #[must_use]
    pub fn spins(mut self, spins: bool) -> Self {
        self.spins = spins;
        self
    }

    #[must_use]
    pub fn cpus(mut self, cpus: Option<CpuMask>) -> Self {
        self.cpus = cpus;
        self
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlannedThread<R> {
    /// Named after its heaviest agent that is not detachable, else its first.
    pub spec: ThreadSpec,
    /// In the order of a message's path.
    pub agents: Vec<R>,
}

/// Assignment of agents to threads, and threads to cores; displayed with one line for each thread and note.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPlan<R> {
    /// In the order of a message's path, which is also the order of stopping.
    pub threads: Vec<PlannedThread<R>>,
    /// Decisions against the user's wishes, to be printed.
    pub notes: Vec<String>,
}

impl<R: Copy + Eq> ThreadPlan<R> {
    #[must_use]
    pub fn thread_of(&self, role: R) -> Option<usize> {
        self.threads.iter().position(|thread| thread.agents.contains(&role))
    }
}

/// Cores that this process may use, by affinity and its container's quota.
#[must_use]
pub fn cores_available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Assigns `agents`, given in the order of a message's path, to threads. `callers_hot_threads` counts the spinning
/// threads outside the node: a driver, clients on the same machine.
///
/// ```
/// use gapless_agent::{AgentSpec, OptimizeFor, PlanKind, plan};
/// let agents = [
///     AgentSpec::new("sequencer").hot(),
///     AgentSpec::new("journaler").detachable().hot().weight(4),
///     AgentSpec::new("service").hot().weight(2),
///     AgentSpec::new("sender").detachable().hot(),
/// ];
/// let on_a_laptop = plan(PlanKind::Default, OptimizeFor::Throughput, &agents, 2, 1);
/// assert_eq!(on_a_laptop.threads.len(), 1);
/// let on_a_server = plan(PlanKind::Default, OptimizeFor::Throughput, &agents, 16, 1);
/// assert_eq!(on_a_server.threads.len(), 3);
/// ```
#[must_use]
pub fn plan<R: Copy + Eq + fmt::Display>(
    kind: PlanKind,
    optimize_for: OptimizeFor,
    agents: &[AgentSpec<R>],
    cores_available: usize,
    callers_hot_threads: usize,
) -> ThreadPlan<R> {
    let mut notes = Vec::new();
    let mut threads = assign_threads(kind, optimize_for, agents, cores_available, callers_hot_threads);
    for thread in &mut threads {
        thread.cpus = choose_mask(thread, &mut notes);
    }
    let cores = assign_cores(&threads, cores_available, callers_hot_threads, &mut notes);
    let threads = threads
        .iter()
        .zip(cores)
        .map(|(thread, core)| {
            let has_core = core == CoreShare::Own;
            let asked_to_spin = match kind {
                PlanKind::Min | PlanKind::Max => true,
                PlanKind::Default => {
                    optimize_for == OptimizeFor::Latency
                        && thread.agents.iter().any(|agent| agent.hot && agent.cpus.is_some())
                }
            };
            let mut spec = ThreadSpec::new(&thread.name().to_string());
            spec.cpus = thread.cpus;
            spec.hot = has_core && (asked_to_spin || thread.agents.iter().any(|agent| agent.spins));
            spec.idle = match (has_core, spec.hot) {
                (true, true) => IdleStrategy::Spin,
                (true, false) => IdleStrategy::SPIN_YIELD_PARK,
                (false, _) => IdleStrategy::SHARED_CORE,
            };
            PlannedThread { spec, agents: thread.agents.iter().map(|agent| agent.role).collect() }
        })
        .collect();
    ThreadPlan { threads, notes }
}

struct DraftThread<'a, R> {
    agents: Vec<&'a AgentSpec<R>>,
    is_main: bool,
    cpus: Option<CpuMask>,
}

impl<'a, R: Copy> DraftThread<'a, R> {
    fn lead(&self) -> &'a AgentSpec<R> {
        let fixed = self.agents.iter().filter(|agent| !agent.detachable);
        fixed.max_by_key(|agent| agent.weight).or(self.agents.first()).expect("a thread has an agent")
    }

    fn name(&self) -> R {
        self.lead().role
    }

    fn is_busy(&self) -> bool {
        self.is_main || self.agents.iter().any(|agent| agent.hot)
    }

    fn weight(&self) -> u64 {
        self.agents.iter().map(|agent| u64::from(agent.weight)).sum()
    }
}

fn assign_threads<R: Copy>(
    kind: PlanKind,
    optimize_for: OptimizeFor,
    agents: &[AgentSpec<R>],
    cores_available: usize,
    callers_hot_threads: usize,
) -> Vec<DraftThread<'_, R>> {
    let main_index = agents
        .iter()
        .position(|agent| !agent.detachable)
        .or_else(|| agents.iter().position(|agent| agent.hot))
        .unwrap_or(0);
    let main_masks: Vec<CpuMask> = agents
        .iter()
        .enumerate()
        .filter(|&(index, agent)| index == main_index || !agent.detachable)
        .filter_map(|(_, agent)| agent.cpus)
        .collect();
    let can_leave = |index: usize| index != main_index && agents[index].detachable;
    let by_plan: Vec<bool> = match (kind, optimize_for) {
        (PlanKind::Min, _) => vec![false; agents.len()],
        (PlanKind::Max, _) => (0..agents.len()).map(can_leave).collect(),
        // A separate mask is a wish for a separate thread.
        (PlanKind::Default, OptimizeFor::Latency) => (0..agents.len())
            .map(|index| can_leave(index) && agents[index].cpus.is_some_and(|mask| !main_masks.contains(&mask)))
            .collect(),
        (PlanKind::Default, OptimizeFor::Throughput) => {
            let spare = usize::from(cores_available >= SPREADING_CORES_MIN);
            let beside_main = if cores_available < SPREADING_CORES_MIN {
                0
            } else {
                cores_available.saturating_sub(callers_hot_threads + spare + 1)
            };
            let mut by_weight: Vec<usize> =
                (0..agents.len()).filter(|&index| can_leave(index) && agents[index].hot).collect();
            by_weight.sort_by_key(|&index| (agents[index].cpus.is_none(), Reverse(agents[index].weight)));
            by_weight.truncate(beside_main);
            (0..agents.len()).map(|index| by_weight.contains(&index)).collect()
        }
    };
    let own_thread: Vec<bool> =
        (0..agents.len()).map(|index| by_plan[index] || (can_leave(index) && agents[index].alone)).collect();
    let mut threads: Vec<DraftThread<'_, R>> = Vec::new();
    let (mut main, mut beside) = (None, None);
    for (index, agent) in agents.iter().enumerate() {
        let is_beside = can_leave(index) && !agent.hot;
        let is_main = !own_thread[index] && !is_beside;
        let slot = match (own_thread[index], is_beside) {
            (true, _) => &mut None,
            (false, true) => &mut beside,
            (false, false) => &mut main,
        };
        let thread = *slot.get_or_insert_with(|| {
            threads.push(DraftThread { agents: Vec::new(), is_main, cpus: None });
            threads.len() - 1
        });
        threads[thread].agents.push(agent);
    }
    threads
}

/// Mask of a thread: its lead's, else that of an agent that cannot be detached, else the first one.
fn choose_mask<R: Copy + Eq + fmt::Display>(thread: &DraftThread<'_, R>, notes: &mut Vec<String>) -> Option<CpuMask> {
    let lead = thread.lead();
    let mut masked: Vec<&AgentSpec<R>> = thread.agents.iter().copied().filter(|agent| agent.cpus.is_some()).collect();
    masked.sort_by_key(|agent| (agent.role != lead.role, agent.detachable));
    let chosen = masked.first()?;
    for agent in &thread.agents {
        if let Some(mask) = agent.cpus.filter(|_| agent.cpus != chosen.cpus) {
            notes.push(format!(
                "CPU mask {mask} of {} is not used: it shares the thread of {}, which is pinned to {}",
                agent.role, chosen.role, chosen.cpus?
            ));
        }
    }
    chosen.cpus
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreShare {
    Own,
    /// A core also needed by threads without one: if its thread spun, those would wait milliseconds at each message.
    Lent,
    Shared,
}

/// Own cores go to the business logic first, then to threads with a mask, then to the heaviest; the last of them lends
/// its core to the threads without one.
fn assign_cores<R: Copy + fmt::Display>(
    threads: &[DraftThread<'_, R>],
    cores_available: usize,
    callers_hot_threads: usize,
    notes: &mut Vec<String>,
) -> Vec<CoreShare> {
    let mut order: Vec<usize> = (0..threads.len()).filter(|&index| threads[index].is_busy()).collect();
    order.sort_by_key(|&index| {
        let thread = &threads[index];
        (!thread.is_main, thread.cpus.is_none(), Reverse(thread.weight()))
    });
    let mut cores = vec![CoreShare::Shared; threads.len()];
    let free = cores_available.saturating_sub(callers_hot_threads);
    let mut with_core: Vec<usize> = Vec::new();
    for index in order {
        let thread = &threads[index];
        let taken = with_core.len();
        let rival = thread.cpus.and_then(|mask| find_rival(threads, &with_core, &mask));
        let reason = if let Some(rival) = rival {
            format!("its CPUs are taken by thread {}", threads[rival].name())
        } else if taken == free {
            format!(
                "{cores_available} cores, {callers_hot_threads} taken by callers that spin, {taken} by other threads"
            )
        } else {
            cores[index] = CoreShare::Own;
            with_core.push(index);
            continue;
        };
        let meets = |other: &&usize| match (thread.cpus, threads[**other].cpus) {
            (Some(own), Some(other)) => own.iter().any(|cpu| other.contains(cpu)),
            _ => true,
        };
        let lender =
            rival.or(with_core.iter().rev().find(meets).copied()).filter(|&lender| cores[lender] == CoreShare::Own);
        if let Some(lender) = lender {
            cores[lender] = CoreShare::Lent;
            notes.push(format!(
                "thread {} shares its core with thread {}: it hardly spins, too",
                threads[lender].name(),
                thread.name()
            ));
        }
        notes.push(format!(
            "thread {} has no core for itself ({reason}): it hardly spins and parks early",
            thread.name()
        ));
    }
    cores
}

fn find_rival<R>(threads: &[DraftThread<'_, R>], with_core: &[usize], mask: &CpuMask) -> Option<usize> {
    let is_within =
        |index: &usize| threads[*index].cpus.is_some_and(|other| other.iter().all(|cpu| mask.contains(cpu)));
    let rivals: Vec<usize> = with_core.iter().copied().filter(is_within).collect();
    (rivals.len() >= mask.count()).then(|| rivals.last().copied()).flatten()
}

impl<R: fmt::Display> fmt::Display for ThreadPlan<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for thread in &self.threads {
            let agents: Vec<String> = thread.agents.iter().map(R::to_string).collect();
            write!(f, "thread {}: {}; ", thread.spec.name, agents.join(", "))?;
            if thread.spec.hot {
                f.write_str("hot")?;
            } else {
                write!(f, "{}", thread.spec.idle)?;
            }
            match thread.spec.cpus {
                Some(cpus) => writeln!(f, "; CPUs {cpus}")?,
                None => writeln!(f, "; not pinned")?,
            }
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for OptimizeFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
        })
    }
}

impl FromStr for OptimizeFor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "latency" => Ok(Self::Latency),
            "throughput" => Ok(Self::Throughput),
            _ => Err(Error::Parse { what: "optimize for", expected: "latency or throughput", found: text.to_owned() }),
        }
    }
}

impl fmt::Display for PlanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Min => "min",
            Self::Default => "default",
            Self::Max => "max",
        })
    }
}

impl FromStr for PlanKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "min" => Ok(Self::Min),
            "default" => Ok(Self::Default),
            "max" => Ok(Self::Max),
            _ => Err(Error::Parse { what: "thread plan", expected: "min, default or max", found: text.to_owned() }),
        }
    }
}
