//! The threads of a run, and which of them are pinned to CPUs that are too few for them.

use gapless_agent::{CpuMask, ThreadPlan};
use gapless_stream::AgentRole;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct BusyThread {
    pub name: String,
    /// `None` leaves it to the scheduler.
    pub cpus: Option<BTreeSet<usize>>,
}

impl BusyThread {
    pub(super) fn new(name: &str, cpus: Option<&[usize]>) -> Self {
        Self { name: name.to_owned(), cpus: cpus.map(|cpus| cpus.iter().copied().collect()) }
    }

    pub(super) fn all_of(plan: &ThreadPlan<AgentRole>) -> Vec<Self> {
        let of = |mask: CpuMask| mask.iter().collect();
        plan.threads
            .iter()
            .map(|thread| Self { name: format!("thread {}", thread.spec.name), cpus: thread.spec.cpus.map(of) })
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedThread {
    pub name: String,
    pub cpus: String,
}

pub(super) fn of_this_process() -> Vec<NamedThread> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let described = |task: std::fs::DirEntry| {
        let read = |file| std::fs::read_to_string(task.path().join(file)).ok();
        let (name, status) = (read("comm")?, read("status")?);
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(NamedThread { name: name.trim().to_owned(), cpus: cpus.trim().to_owned() })
    };
    tasks.flatten().filter_map(described).collect()
}

/// One line for each set of CPUs to which more of these threads are pinned than it has; unpinned threads run on any of
/// `available`.
pub(super) fn shared_cpus(threads: &[BusyThread], available: &BTreeSet<usize>) -> Vec<String> {
    let mut masks: Vec<&BTreeSet<usize>> = threads.iter().filter_map(|thread| thread.cpus.as_ref()).collect();
    masks.push(available);
    masks.sort_unstable_by_key(|mask| (mask.len(), *mask));
    masks.dedup();
    let mut notes = Vec::new();
    for mask in masks {
        let is_confined = |thread: &&BusyThread| thread.cpus.as_ref().unwrap_or(available).is_subset(mask);
        let names: Vec<&str> = threads.iter().filter(is_confined).map(|thread| &*thread.name).collect();
        if names.len() > mask.len() {
            let cpus: Vec<String> = mask.iter().map(usize::to_string).collect();
            notes.push(format!(
                "{} share CPU {}: each waits for the scheduler while another runs, for milliseconds; give each a CPU of its own",
                names.join(", "),
                cpus.join(",")
            ));
        }
    }
    notes
}

pub(super) fn described(threads: &[BusyThread], plan: &ThreadPlan<AgentRole>) -> Value {
    let list = threads.iter().map(|thread| {
        let planned = plan.threads.iter().find(|planned| thread.name == format!("thread {}", planned.spec.name));
        let agents = planned.map(|planned| planned.agents.iter().map(AgentRole::to_string).collect::<Vec<_>>());
        json!({"name": thread.name, "cpus": thread.cpus, "agents": agents})
    });
    Value::Array(list.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_threads_are_listed() {
        let (begin, begun) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let body = move || {
            begin.send(()).unwrap();
            ended.recv().unwrap_or_default();
        };
        let started = std::thread::Builder::new().name("by-name".to_owned()).spawn(body);
        begun.recv().unwrap();
        let found = of_this_process();
        drop(end);
        started.unwrap().join().unwrap();
        assert!(found.iter().any(|thread| thread.name == "by-name" && !thread.cpus.is_empty()), "{found:?}");
    }

    #[test]
    fn threads_that_share_cpus_are_named() {
        let threads = [
            BusyThread::new("driver", Some(&[0])),
            BusyThread::new("thread service", Some(&[1, 2, 3])),
            BusyThread::new("thread journaler", Some(&[0])),
            BusyThread::new("thread sender", Some(&[1])),
            BusyThread::new("thread free", None),
        ];
        let available = BTreeSet::from([0, 1, 2, 3, 4]);
        let notes = shared_cpus(&threads, &available);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("driver, thread journaler share CPU 0: "), "{notes:?}");
        let crowded: Vec<_> = ["a", "b", "c"].map(|name| BusyThread::new(name, Some(&[1, 2]))).into();
        assert!(shared_cpus(&crowded, &available)[0].starts_with("a, b, c share CPU 1,2: "));
        assert!(shared_cpus(&crowded[..2], &available).is_empty());
        let notes = shared_cpus(&threads, &BTreeSet::from([0, 1, 2, 3]));
        assert!(notes[1].contains("thread free share CPU 0,1,2,3: "), "five on four: {notes:?}");
    }
}
