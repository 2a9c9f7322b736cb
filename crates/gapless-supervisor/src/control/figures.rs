//! [`FigureReader`]: resource usage and call statistics of instances. Calls are read from the counters of their domain,
//! as by `gapless top`, without a request to any process.

use super::client::Status;
use super::protocol::{CopyStatus, SupervisorStatus};
use crate::copy_name::CopyName;
use crate::process_facts::session;
use gapless_rpc::domain::{DomainReading, read_domain};
use gapless_transport::peer_process::PeerProcess;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Status of a supervisor with statistics of its instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    #[serde(flatten)]
    pub supervisor: SupervisorStatus,
    /// In the order of the configuration.
    pub copies: Vec<CopyFigures>,
    /// Reason for missing statistics of routes.
    pub missing: Option<String>,
}

/// Status and statistics of an instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopyFigures {
    #[serde(flatten)]
    pub copy: CopyStatus,
    /// CPU usage in percent of one core: since the previous look, or since the start of the process at the first.
    pub cpu_percent: Option<f64>,
    /// Reason why its process is stopped, if the kernel reports it as stopped.
    pub standstill: Option<&'static str>,
    pub routes: Vec<RouteFigures>,
}

/// Statistics of one route of an instance, up to a quarter of a second old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteFigures {
    pub route: String,
    /// Serving process: the instance itself or one of its children.
    pub process_id: u32,
    /// Calls begun.
    pub calls: u64,
    /// Calls being handled.
    pub in_flight: u64,
    /// Waiting calls: those in this process, and those of all other processes for the route, whichever instance takes
    /// them.
    pub queued: u64,
    /// Median handling time, ns; 0 before the first call has ended.
    pub p50_ns: u64,
    /// 99th percentile of the handling time, ns.
    pub p99_ns: u64,
}

/// Reads statistics; keeps the previous look for rates.
#[derive(Debug, Default)]
pub struct FigureReader {
    before: BTreeMap<CopyName, Look>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    process_id: u32,
    cpu_ms: u64,
    running_ms: u64,
}

impl FigureReader {
    pub fn look(&mut self, status: Status) -> Figures {
        let read = status.supervisor.domain.as_deref().map_or_else(|| Ok(DomainReading::default()), read);
        let (reading, mut missing) = match read {
            Ok(reading) => (reading, None),
            Err(reason) => (DomainReading::default(), Some(reason)),
        };
        if let Some(unreadable) = reading.unreadable.first() {
            missing = Some(unreadable.to_string());
        }
        let mut routes = routes(&reading);
        let mut now = BTreeMap::new();
        let copies = status.copies.into_iter().map(|copy| {
            let look = Look::at(&copy);
            let before = self.before.get(&copy.copy);
            now.extend(look.map(|look| (copy.copy.clone(), look)));
            let process_id = copy.process_id.filter(|_| !copy.process_in_other_namespace);
            let served = process_id.and_then(|process_id| routes.remove(&process_id));
            CopyFigures {
                cpu_percent: look.and_then(|look| look.cpu_percent(before)),
                standstill: process_id.and_then(|process_id| PeerProcess::numbered(process_id).standstill()),
                routes: served.unwrap_or_default(),
                copy,
            }
        });
        let copies = copies.collect();
        self.before = now;
        Figures { supervisor: status.supervisor, copies, missing }
    }
}

impl Look {
    fn at(copy: &CopyStatus) -> Option<Self> {
        Some(Self { process_id: copy.process_id?, cpu_ms: copy.cpu_ms?, running_ms: copy.running_ms? })
    }

    fn cpu_percent(self, before: Option<&Self>) -> Option<f64> {
        let of_same = |before: &&Self| before.process_id == self.process_id && before.running_ms <= self.running_ms;
        let (cpu_ms, running_ms) = before.filter(of_same).map_or((0, 0), |before| (before.cpu_ms, before.running_ms));
        let passed_ms = self.running_ms - running_ms;
        // One decimal: the kernel counts hundredths of a second.
        let percent = || self.cpu_ms.saturating_sub(cpu_ms) as f64 * 1000.0 / passed_ms as f64;
        (passed_ms > 0).then(|| percent().round() / 10.0)
    }
}

/// Reads the counters of a domain; empty if it does not exist yet.
fn read(domain: &Path) -> Result<DomainReading, String> {
    if !domain.is_dir() {
        return Ok(DomainReading::default());
    }
    // Members of a group without `steer` cannot read the domain.
    if std::fs::read_dir(domain).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
        return Err("only the user of the supervisor sees them".to_owned());
    }
    read_domain(domain).map_err(|error| error.to_string())
}

/// Statistics by session leader, which is the process of the instance.
fn routes(reading: &DomainReading) -> HashMap<u32, Vec<RouteFigures>> {
    let mut waiting: HashMap<&str, u64> = HashMap::new();
    for calls in &reading.calls {
        let offered = waiting.entry(&calls.route).or_default();
        *offered = offered.saturating_add(calls.statistics.in_flight);
    }
    // Both are read one after the other, so running calls may exceed the offered ones.
    for copy in &reading.copies {
        waiting.entry(&copy.route).and_modify(|offered| *offered = offered.saturating_sub(copy.statistics.in_flight));
    }
    let mut found: HashMap<u32, Vec<RouteFigures>> = HashMap::new();
    for copy in &reading.copies {
        let leader = session(copy.process_id).unwrap_or(copy.process_id);
        let waiting = waiting.get(copy.route.as_str()).copied().unwrap_or(0);
        found.entry(leader).or_default().push(RouteFigures {
            route: copy.route.clone(),
            process_id: copy.process_id,
            calls: copy.statistics.begun,
            in_flight: copy.statistics.in_flight,
            queued: copy.statistics.queued.saturating_add(waiting),
            p50_ns: copy.statistics.p50_ns,
            p99_ns: copy.statistics.p99_ns,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::protocol::CopyCondition;

    fn status(process_id: u32, cpu_ms: u64, running_ms: u64) -> Status {
        let copy = CopyStatus {
            copy: "a.1".parse().unwrap(),
            state: CopyCondition::Ready,
            process_id: Some(process_id),
            process_in_other_namespace: false,
            since_ms: 0,
            restarts: 0,
            last_end: None,
            last_reason: None,
            says: None,
            last_lines: Vec::new(),
            log: None,
            cpu_ms: Some(cpu_ms),
            running_ms: Some(running_ms),
            memory_bytes: None,
        };
        Status { supervisor: SupervisorStatus::default(), copies: vec![copy] }
    }

    #[test]
    fn cpu_usage_is_a_rate() {
        let mut reader = FigureReader::default();
        let mut percent =
            |process_id, cpu_ms, running_ms| reader.look(status(process_id, cpu_ms, running_ms)).copies[0].cpu_percent;
        assert_eq!(percent(7, 500, 1000), Some(50.0), "since the start of the process");
        assert_eq!(percent(7, 700, 2000), Some(20.0), "since the previous look");
        assert_eq!(percent(7, 700, 2000), None, "no time has passed");
        assert_eq!(percent(8, 30, 100), Some(30.0), "another process");
        assert_eq!(percent(8, 10, 0), None, "a new process with the same id");
    }

    #[test]
    fn unreadable_domain_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut status = status(7, 1, 1);
        status.supervisor.domain = Some(folder.path().join("none"));
        let mut reader = FigureReader::default();
        assert_eq!(reader.look(status.clone()).missing, None);
        std::fs::create_dir(folder.path().join("route-0.counters")).unwrap();
        status.supervisor.domain = Some(folder.path().to_owned());
        let missing = reader.look(status).missing.unwrap();
        assert!(missing.contains("what is there is not a file (route-0.counters)"), "{missing}");
    }
}
