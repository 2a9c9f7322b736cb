//! Calls are read from the counters of their domain, without a request to any process.

use super::client::SupervisionStatus;
use super::protocol::{InstanceStatus, SupervisorStatus};
use crate::instance_name::InstanceName;
use crate::process_facts::session;
use gapless_rpc::domain::{DomainReading, read_domain};
use gapless_transport::peer_process::PeerProcess;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Status of a supervisor with statistics of its instances.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SupervisorStatistics {
    #[serde(flatten)]
    pub supervisor: SupervisorStatus,
    /// In the order of the configuration.
    pub instances: Vec<InstanceStatistics>,
    /// Reason for missing statistics of routes.
    pub missing: Option<String>,
}

/// Status and statistics of an instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceStatistics {
    #[serde(flatten)]
    pub instance: InstanceStatus,
    /// CPU usage in percent of one core: since the previous look, at first since the start of the process.
    pub cpu_percent: Option<f64>,
    /// Why its process is stopped, according to the kernel.
    pub standstill: Option<&'static str>,
    pub routes: Vec<RouteStatistics>,
}

/// Statistics of one route of an instance, up to a quarter of a second old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteStatistics {
    pub route: String,
    /// Serving process: the instance itself or one of its children.
    pub process_id: u32,
    /// Calls begun.
    pub calls: u64,
    /// Calls being handled.
    pub in_flight: u64,
    /// Waiting calls: in this process, and in all others for the route, whichever instance takes them.
    pub queued: u64,
    /// Median handling time, ns; 0 before the first call has ended.
    pub p50_ns: u64,
    /// 99th percentile of the handling time, ns.
    pub p99_ns: u64,
}

/// Reads statistics; keeps the previous look for rates.
#[derive(Debug, Default)]
pub struct StatisticsReader {
    before: BTreeMap<InstanceName, CpuSample>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuSample {
    process_id: u32,
    cpu_ms: u64,
    running_ms: u64,
}

impl StatisticsReader {
    pub fn read_all(&mut self, status: SupervisionStatus) -> SupervisorStatistics {
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
        let instances = status.instances.into_iter().map(|instance| {
            let sample = CpuSample::at(&instance);
            let before = self.before.get(&instance.instance);
            now.extend(sample.map(|sample| (instance.instance.clone(), sample)));
            let process_id = instance.process_id.filter(|_| !instance.process_in_other_namespace);
            let served = process_id.and_then(|process_id| routes.remove(&process_id));
            InstanceStatistics {
                cpu_percent: sample.and_then(|sample| sample.cpu_percent(before)),
                standstill: process_id.and_then(|process_id| PeerProcess::numbered(process_id).standstill()),
                routes: served.unwrap_or_default(),
                instance,
            }
        });
        let instances = instances.collect();
        self.before = now;
        SupervisorStatistics { supervisor: status.supervisor, instances, missing }
    }
}

impl CpuSample {
    fn at(instance: &InstanceStatus) -> Option<Self> {
        Some(Self { process_id: instance.process_id?, cpu_ms: instance.cpu_ms?, running_ms: instance.running_ms? })
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
fn routes(reading: &DomainReading) -> HashMap<u32, Vec<RouteStatistics>> {
    let mut waiting: HashMap<&str, u64> = HashMap::new();
    for calls in &reading.calls {
        let offered = waiting.entry(&calls.route).or_default();
        *offered = offered.saturating_add(calls.statistics.in_flight);
    }
    for instance in &reading.instances {
        waiting
            .entry(&instance.route)
            .and_modify(|offered| *offered = offered.saturating_sub(instance.statistics.in_flight));
    }
    let mut found: HashMap<u32, Vec<RouteStatistics>> = HashMap::new();
    for instance in &reading.instances {
        let leader = session(instance.process_id).unwrap_or(instance.process_id);
        let waiting = waiting.get(instance.route.as_str()).copied().unwrap_or(0);
        found.entry(leader).or_default().push(RouteStatistics {
            route: instance.route.clone(),
            process_id: instance.process_id,
            calls: instance.statistics.begun,
            in_flight: instance.statistics.in_flight,
            queued: instance.statistics.queued.saturating_add(waiting),
            p50_ns: instance.statistics.p50_ns,
            p99_ns: instance.statistics.p99_ns,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::protocol::InstanceCondition;

    fn status(process_id: u32, cpu_ms: u64, running_ms: u64) -> SupervisionStatus {
        let instance = InstanceStatus {
            instance: "a.1".parse().unwrap(),
            state: InstanceCondition::Ready,
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
        SupervisionStatus { supervisor: SupervisorStatus::default(), instances: vec![instance] }
    }

    #[test]
    fn cpu_usage_is_a_rate() {
        let mut reader = StatisticsReader::default();
        let mut percent = |process_id, cpu_ms, running_ms| {
            reader.read_all(status(process_id, cpu_ms, running_ms)).instances[0].cpu_percent
        };
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
        let mut reader = StatisticsReader::default();
        assert_eq!(reader.read_all(status.clone()).missing, None);
        std::fs::create_dir(folder.path().join("route-0.counters")).unwrap();
        status.supervisor.domain = Some(folder.path().to_owned());
        let missing = reader.read_all(status).missing.unwrap();
        assert!(missing.contains("what is there is not a file (route-0.counters)"), "{missing}");
    }
}
