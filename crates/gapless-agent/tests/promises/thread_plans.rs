#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_agent::{AgentSpec, CpuMask, IdleStrategy, OptimizeFor, PlanKind, ThreadPlan, plan};
use proptest::prelude::*;

fn mask(text: &str) -> Option<CpuMask> {
    Some(text.parse().unwrap())
}

fn node() -> Vec<AgentSpec<&'static str>> {
    vec![
        AgentSpec::new("sequencer").hot(),
        AgentSpec::new("journaler").detachable().hot().weight(4),
        AgentSpec::new("service").hot().weight(2),
        AgentSpec::new("sender").detachable().hot(),
        AgentSpec::new("watcher").detachable(),
    ]
}

fn picture(plan: &ThreadPlan<&'static str>) -> Vec<String> {
    let picture = |thread: &gapless_agent::PlannedThread<&'static str>| {
        let waiting = match (thread.spec.hot, thread.spec.effective_idle()) {
            (true, IdleStrategy::Spin) => "hot",
            (false, IdleStrategy::SPIN_YIELD_PARK) => "warm",
            (false, IdleStrategy::SHARED_CORE) => "shared",
            other => panic!("no plan makes {other:?}"),
        };
        let cpus = thread.spec.cpus.map_or(String::new(), |cpus| format!(" {cpus}"));
        format!("{} {waiting}{cpus}", thread.agents.join("+"))
    };
    plan.threads.iter().map(picture).collect()
}

#[test]
fn each_kind_on_each_machine() {
    use OptimizeFor::{Latency, Throughput};
    use PlanKind::{Default, Max, Min};
    let chain = "sequencer+journaler+service+sender";
    // (kind, optimised for, cores, spinning callers, threads, notes)
    let cases: Vec<(PlanKind, OptimizeFor, usize, usize, Vec<String>, usize)> = vec![
        (Min, Latency, 2, 1, vec![format!("{chain} hot"), "watcher shared".into()], 0),
        (Min, Throughput, 16, 1, vec![format!("{chain} hot"), "watcher shared".into()], 0),
        // A caller spins on the only core: another spinning thread would take time from it.
        (Min, Latency, 1, 1, vec![format!("{chain} shared"), "watcher shared".into()], 1),
        (Min, Latency, 1, 0, vec![format!("{chain} hot"), "watcher shared".into()], 0),
        // The default never spins forever, and never splits the chain for latency.
        (Default, Latency, 2, 1, vec![format!("{chain} warm"), "watcher shared".into()], 0),
        (Default, Latency, 16, 1, vec![format!("{chain} warm"), "watcher shared".into()], 0),
        (Default, Latency, 1, 1, vec![format!("{chain} shared"), "watcher shared".into()], 1),
        (Default, Throughput, 2, 1, vec![format!("{chain} warm"), "watcher shared".into()], 0),
        (Default, Throughput, 3, 0, vec![format!("{chain} warm"), "watcher shared".into()], 0),
        (
            Default,
            Throughput,
            4,
            1,
            vec!["sequencer+service+sender warm".into(), "journaler warm".into(), "watcher shared".into()],
            0,
        ),
        (Default, Throughput, 4, 2, vec![format!("{chain} warm"), "watcher shared".into()], 0),
        (Default, Throughput, 4, 9, vec![format!("{chain} shared"), "watcher shared".into()], 1),
        (
            Default,
            Throughput,
            8,
            1,
            vec![
                "sequencer+service warm".into(),
                "journaler warm".into(),
                "sender warm".into(),
                "watcher shared".into(),
            ],
            0,
        ),
        (
            Max,
            Latency,
            8,
            1,
            vec!["sequencer+service hot".into(), "journaler hot".into(), "sender hot".into(), "watcher shared".into()],
            0,
        ),
        // The business logic first, then the heaviest; the last with a core shares it.
        (
            Max,
            Throughput,
            3,
            1,
            vec![
                "sequencer+service hot".into(),
                "journaler shared".into(),
                "sender shared".into(),
                "watcher shared".into(),
            ],
            2,
        ),
        (
            Max,
            Latency,
            2,
            1,
            vec![
                "sequencer+service shared".into(),
                "journaler shared".into(),
                "sender shared".into(),
                "watcher shared".into(),
            ],
            3,
        ),
    ];
    for (kind, optimize_for, cores, callers, threads, notes) in cases {
        let plan = plan(kind, optimize_for, &node(), cores, callers);
        let case = format!("{kind} {optimize_for} {cores} cores {callers} callers\n{plan}");
        assert_eq!(picture(&plan), threads, "{case}");
        assert_eq!(plan.notes.len(), notes, "{case}");
    }
}

#[test]
fn downgrade_is_noted_with_reason() {
    let plan = plan(PlanKind::Max, OptimizeFor::Latency, &node(), 2, 1);
    let printed = plan.to_string();
    assert!(
        printed.contains("note: thread journaler has no core for itself (2 cores, 1 taken by callers"),
        "{printed}"
    );
    assert!(printed.contains("note: thread service shares its core with thread journaler"), "{printed}");
    assert!(printed.contains("thread service: sequencer, service; spin-yield-park:5us"), "{printed}");
}

#[test]
fn hot_mask_spins_for_latency_only() {
    let mut agents = node();
    agents[2].cpus = mask("[1]");
    let latency = plan(PlanKind::Default, OptimizeFor::Latency, &agents, 4, 1);
    assert_eq!(picture(&latency)[0], "sequencer+journaler+service+sender hot [1]");
    let throughput = plan(PlanKind::Default, OptimizeFor::Throughput, &agents, 2, 1);
    assert_eq!(picture(&throughput)[0], "sequencer+journaler+service+sender warm [1]");
}

#[test]
fn own_mask_means_own_thread() {
    let mut agents = node();
    agents[2].cpus = mask("[1]");
    agents[1].cpus = mask("[2]");
    agents[3].cpus = mask("[1]");
    let plan = plan(PlanKind::Default, OptimizeFor::Latency, &agents, 4, 1);
    assert_eq!(picture(&plan), ["sequencer+service+sender hot [1]", "journaler hot [2]", "watcher shared"]);
    assert!(plan.notes.is_empty(), "{plan}");
}

#[test]
fn useless_mask_is_noted() {
    let mut agents = node();
    agents[2].cpus = mask("[1]");
    agents[1].cpus = mask("[2]");
    let plan = plan(PlanKind::Min, OptimizeFor::Latency, &agents, 4, 1);
    assert_eq!(picture(&plan)[0], "sequencer+journaler+service+sender hot [1]");
    assert_eq!(
        plan.notes,
        ["CPU mask [2] of journaler is not used: it shares the thread of service, which is pinned to [1]"]
    );
}

#[test]
fn threads_on_one_cpu_do_not_both_spin() {
    let mut agents = node();
    agents[2].cpus = mask("[1]");
    agents[1].cpus = mask("[1]");
    agents[3].cpus = mask("[1,2]");
    let plan = plan(PlanKind::Max, OptimizeFor::Latency, &agents, 8, 1);
    assert_eq!(
        picture(&plan),
        ["sequencer+service shared [1]", "journaler shared [1]", "sender hot [1,2]", "watcher shared"]
    );
    assert!(plan.notes[0].contains("thread service shares its core with thread journaler"), "{plan}");
    assert!(plan.notes[1].contains("its CPUs are taken by thread service"), "{plan}");
}

#[test]
fn core_is_lent_within_its_mask() {
    let mut agents = node();
    agents[2].cpus = mask("[1]");
    agents[1].cpus = mask("[0]");
    agents[3].cpus = mask("[0]");
    let apart = plan(PlanKind::Max, OptimizeFor::Latency, &agents, 2, 1);
    assert_eq!(
        picture(&apart),
        ["sequencer+service hot [1]", "journaler shared [0]", "sender shared [0]", "watcher shared"]
    );
    assert_eq!(apart.notes.len(), 2, "{apart}");
    agents[3].cpus = mask("[0,1]");
    let met = plan(PlanKind::Max, OptimizeFor::Latency, &agents, 2, 1);
    assert_eq!(picture(&met)[0], "sequencer+service shared [1]");
    assert!(met.notes.iter().any(|note| note.contains("thread service shares its core with thread sender")), "{met}");
}

#[test]
fn alone_agent_gets_its_own_thread() {
    let mut agents = node();
    agents[1].alone = true;
    for (cores, journaler, main) in [(2, "shared", "shared"), (8, "hot", "hot")] {
        let plan = plan(PlanKind::Min, OptimizeFor::Latency, &agents, cores, 1);
        let expected =
            [format!("sequencer+service+sender {main}"), format!("journaler {journaler}"), "watcher shared".into()];
        assert_eq!(picture(&plan), expected, "{plan}");
    }
}

#[test]
fn detachable_agents_have_a_main() {
    let agents = [AgentSpec::new("a").detachable(), AgentSpec::new("b").detachable().hot()];
    assert_eq!(picture(&plan(PlanKind::Min, OptimizeFor::Latency, &agents, 2, 0)), ["a shared", "b hot"]);
    assert_eq!(picture(&plan(PlanKind::Max, OptimizeFor::Latency, &agents[..1], 2, 0)), ["a hot"]);
    assert!(plan::<&str>(PlanKind::Max, OptimizeFor::Latency, &[], 2, 0).threads.is_empty());
}

#[test]
fn plan_kind_round_trip() {
    for kind in [PlanKind::Min, PlanKind::Default, PlanKind::Max] {
        assert_eq!(kind.to_string().parse::<PlanKind>().unwrap(), kind);
    }
    for optimize_for in [OptimizeFor::Latency, OptimizeFor::Throughput] {
        assert_eq!(optimize_for.to_string().parse::<OptimizeFor>().unwrap(), optimize_for);
    }
    assert!("maximum".parse::<PlanKind>().unwrap_err().to_string().contains("min, default or max"));
    assert!("speed".parse::<OptimizeFor>().unwrap_err().to_string().contains("latency or throughput"));
}

proptest! {
    #[test]
    fn spinning_threads_fit_the_cores(
        kind in prop_oneof![Just(PlanKind::Min), Just(PlanKind::Default), Just(PlanKind::Max)],
        optimize_for in prop_oneof![Just(OptimizeFor::Latency), Just(OptimizeFor::Throughput)],
        traits in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<u32>(), proptest::option::of(0_usize..6)), 0..9),
        cores in 0_usize..20,
        callers in 0_usize..20,
    ) {
        let agents: Vec<AgentSpec<usize>> = traits.iter().enumerate().map(|(index, &(detachable, hot, weight, cpu))| AgentSpec {
            role: index, detachable, hot, weight, cpus: cpu.and_then(|cpu| CpuMask::of(&[cpu])), alone: weight % 3 == 0, spins: weight % 5 == 0,
        }).collect();
        let plan = plan(kind, optimize_for, &agents, cores, callers);
        let mut seen: Vec<usize> = plan.threads.iter().flat_map(|thread| thread.agents.clone()).collect();
        for thread in &plan.threads {
            prop_assert!(thread.agents.is_sorted());
            prop_assert!(!thread.agents.is_empty());
        }
        seen.sort();
        for agent in agents.iter().filter(|agent| agent.alone && agent.detachable) {
            let thread = &plan.threads[plan.thread_of(agent.role).unwrap()];
            let is_main = agents.iter().all(|agent| agent.detachable);
            prop_assert!(thread.agents.len() == 1 || is_main, "agent {} wants a thread of its own: {}", agent.role, plan);
        }
        prop_assert_eq!(seen, agents.iter().map(|agent| agent.role).collect::<Vec<_>>());
        let spinning = plan.threads.iter().filter(|thread| thread.spec.idle != IdleStrategy::SHARED_CORE).count();
        prop_assert!(spinning <= cores.saturating_sub(callers), "{}", plan);
        let together = agents.iter().filter(|agent| !agent.detachable).map(|agent| plan.thread_of(agent.role)).collect::<std::collections::HashSet<_>>();
        prop_assert!(together.len() <= 1, "agents that are not detachable share a thread: {}", plan);
    }
}
