//! Reads one directory repeatedly: counters, the member's status, the nodes connected to its stream. Never writes, and
//! outlives the processes that it reads.

use crate::commands::domain_directory::lacks_owner_permissions;
use gapless_agent::CountersReader;
use gapless_client::control::{Controller, NodeReading, StatusFeed};
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, StatusReport, ask};
use gapless_rpc::Domain;
use gapless_rpc::domain::{CallReading, DomainReading, InstanceReading, UnreadableCounters, read_domain};
use gapless_stream::directory_record::DirectoryRecord;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(1);

const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Each request leaves a connection in a silent process's queue.
const SILENT_REQUEST_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Running,
    Gone,
    Stopped,
}

impl ProcessState {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Gone => "gone",
            Self::Stopped => "stopped",
        }
    }
}

/// `None`: no earlier value of the same process.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CounterReading {
    pub label: String,
    pub value: u64,
    pub per_s: Option<f64>,
}

#[derive(Clone, Debug)]
pub(super) struct DirectoryReading {
    pub directory: PathBuf,
    pub state: ProcessState,
    /// The last process while none runs.
    pub process: Option<u32>,
    pub restarts: u64,
    /// False for a mere domain.
    pub has_node: bool,
    pub counters: Vec<CounterReading>,
    pub member: Option<StatusReport>,
    pub nodes: Vec<NodeReading>,
    pub routes: Vec<(InstanceReading, Option<f64>)>,
    pub calls: Vec<(CallReading, Option<f64>)>,
    pub unreadable: Vec<UnreadableCounters>,
    pub silent: Vec<u32>,
    pub problem: Option<String>,
}

impl DirectoryReading {
    pub(super) fn counter(&self, label: &str) -> Option<&CounterReading> {
        self.counters.iter().find(|counter| counter.label == label)
    }

    pub(super) fn has_routes(&self) -> bool {
        !self.routes.is_empty() || !self.calls.is_empty() || !self.unreadable.is_empty()
    }
}

struct TopSample {
    at: Instant,
    process: u32,
    values: Vec<(String, u64)>,
}

pub(super) struct ReadingSource {
    layout: StreamLayout,
    directory: PathBuf,
    feed: StatusFeed,
    before: Option<TopSample>,
    process: Option<u32>,
    restarts: u64,
    instances: Vec<InstanceReading>,
    calls: Vec<CallReading>,
    instances_at: Instant,
    silent: (Vec<u32>, Option<Instant>),
    was_used: bool,
    has_node: bool,
}

impl ReadingSource {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            layout: StreamLayout::new(directory),
            directory: directory.to_owned(),
            feed: StatusFeed::new(Controller::new(directory).with_wait_reporter(|_, _| {})),
            before: None,
            process: None,
            restarts: 0,
            instances: Vec::new(),
            calls: Vec::new(),
            instances_at: Instant::now(),
            silent: (Vec::new(), None),
            was_used: false,
            has_node: false,
        }
    }

    /// A silent member or stream delays it by seconds.
    pub(super) fn read(&mut self) -> DirectoryReading {
        let mut problem = None;
        let now = self.sample().unwrap_or_else(|error| {
            problem = Some(error.to_string());
            None
        });
        if let Some(now) = &now {
            self.restarts += u64::from(self.process.is_some_and(|before| before != now.process));
            self.process = Some(now.process);
        }
        let DomainReading { instances, calls, unreadable, .. } = self.domain(&mut problem);
        let has_routes = !instances.is_empty() || !calls.is_empty() || !unreadable.is_empty();
        self.was_used |= has_routes;
        let (routes, calls) = self.rated(instances, calls);
        let silent = self.silent(!routes.is_empty());
        self.has_node |= is_of_a_node(&self.layout, &self.directory);
        let state = match (now.is_some() || has_routes, self.process.is_some() || self.was_used) {
            (true, _) => ProcessState::Running,
            (false, true) => ProcessState::Gone,
            (false, false) => ProcessState::Stopped,
        };
        let (mut member, mut nodes) = (None, Vec::new());
        if state == ProcessState::Running {
            member = note(&mut problem, self.member());
            if self.layout.socket().exists() {
                let read = self.feed.read(TIMEOUT).map(|reading| reading.nodes).map_err(|error| error.to_string());
                nodes = note(&mut problem, read);
            }
        }
        let counters = now.as_ref().map(|now| with_rates(now, self.before.as_ref())).unwrap_or_default();
        self.before = now;
        let (directory, process, restarts, has_node) =
            (self.directory.clone(), self.process, self.restarts, self.has_node);
        DirectoryReading {
            directory,
            state,
            process,
            restarts,
            has_node,
            counters,
            member,
            nodes,
            routes,
            calls,
            unreadable,
            silent,
            problem,
        }
    }

    /// `None` also for the file of a killed process.
    fn sample(&self) -> Result<Option<TopSample>, Box<dyn std::error::Error>> {
        let reader = match CountersReader::open(self.layout.counters()) {
            Ok(reader) => reader,
            Err(gapless_agent::Error::CountersIo { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let process = reader.owner_pid();
        // The process id may belong to another namespace, and there to another process.
        if !reader.is_owned() {
            return Ok(None);
        }
        Ok(Some(TopSample { at: Instant::now(), process, values: reader.read()? }))
    }

    fn domain(&self, problem: &mut Option<String>) -> DomainReading {
        let read = if self.directory.is_dir() { read_domain(&self.directory) } else { Ok(DomainReading::default()) };
        note(problem, read.map_err(|error| error.to_string()))
    }

    fn rated(
        &mut self,
        instances: Vec<InstanceReading>,
        calls: Vec<CallReading>,
    ) -> (RatedReadings<InstanceReading>, RatedReadings<CallReading>) {
        let seconds = self.instances_at.elapsed().as_secs_f64();
        let copy = |copy: &InstanceReading| (copy.route.clone(), copy.process_id, copy.statistics.begun);
        let routes = rated(&instances, &self.instances, seconds, copy);
        let call = |calls: &CallReading| (calls.route.clone(), calls.process_id, calls.statistics.offered);
        let rated_calls = rated(&calls, &self.calls, seconds, call);
        (self.instances, self.calls, self.instances_at) = (instances, calls, Instant::now());
        (routes, rated_calls)
    }

    fn silent(&mut self, is_served: bool) -> Vec<u32> {
        let is_due = self.silent.0.is_empty() || self.silent.1.is_none_or(|at| at.elapsed() >= SILENT_REQUEST_INTERVAL);
        if !is_served || is_due {
            // Asking would change the mode of a closed directory.
            let is_asked = is_served && !lacks_owner_permissions(&self.directory);
            let asked = is_asked.then(|| Domain::silent_processes(&self.directory, ANSWER_MAX).ok()).flatten();
            self.silent = (asked.unwrap_or_default(), Some(Instant::now()));
        }
        self.silent.0.clone()
    }

    fn member(&self) -> Result<Option<StatusReport>, String> {
        if !self.directory.join(MEMBER_SOCKET).exists() {
            return Ok(None);
        }
        match ask(&self.directory, &AdminRequest::Status) {
            Ok(AdminAnswer::Status(report)) => Ok(Some(*report)),
            Ok(AdminAnswer::Refused(reason)) => Err(reason),
            Ok(_) => Err("the member answers something else".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

pub(super) fn is_of_a_node(layout: &StreamLayout, directory: &Path) -> bool {
    layout.counters().exists()
        || layout.journal().is_dir()
        || DirectoryRecord::path(layout).exists()
        || directory.join(MEMBER_SOCKET).exists()
}

/// Rate since an earlier reading of the same route and process.
type RatedReadings<R> = Vec<(R, Option<f64>)>;

fn rated<R: Clone>(now: &[R], before: &[R], seconds: f64, of: impl Fn(&R) -> (String, u32, u64)) -> RatedReadings<R> {
    let rate = |reading: &R| {
        let (route, process_id, count) = of(reading);
        let old = before.iter().map(&of).find(|old| (&old.0, old.1) == (&route, process_id))?;
        Some(count.saturating_sub(old.2) as f64 / seconds)
    };
    now.iter().map(|reading| (reading.clone(), rate(reading))).collect()
}

const MEMBER_SOCKET: &str = "cluster.socket";

fn note<T: Default>(problem: &mut Option<String>, read: Result<T, String>) -> T {
    read.unwrap_or_else(|error| {
        problem.get_or_insert(error);
        T::default()
    })
}

fn with_rates(now: &TopSample, before: Option<&TopSample>) -> Vec<CounterReading> {
    let before = before.filter(|before| before.process == now.process && before.at < now.at);
    let rate = |label: &str, value: u64| {
        let before = before?;
        let (_, old) = before.values.iter().find(|(old, _)| old == label)?;
        Some((value as f64 - *old as f64) / now.at.duration_since(before.at).as_secs_f64())
    };
    let reading = |(label, value): &(String, u64)| CounterReading {
        label: label.clone(),
        value: *value,
        per_s: rate(label, *value),
    };
    now.values.iter().map(reading).collect()
}
