//! `gapless-rpc` validates data of other processes; if this thread dies regardless, the supervisor starts another one.

use super::drains::Drains;
use super::pings::{PingStep, Pings};
use super::protocol::{PingOutcome, WatchRequest, WatchRequests, WatcherCommand, WatcherReport};
use super::route_offers::RouteOffers;
use crate::instance_name::InstanceName;
use crate::process_facts::session;
use crate::supervision::event::ProcessEvent;
use gapless_agent::wake_fd;
use gapless_rpc::domain::RouteWatch;
use gapless_rpc::{Call, CallError, Caller, CallerOptions, Domain, DomainOptions, InstanceQuery, Reach, RpcError};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

const REOPEN_PAUSE: Duration = Duration::from_millis(500);
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const PAYLOAD_LENGTH_MAX: usize = 64 << 10;

pub struct Watcher {
    path: PathBuf,
    commands: Sender<WatcherCommand>,
    reports: Sender<WatcherReport>,
    waker: Arc<OwnedFd>,
    domain: Option<OpenDomain>,
    open_at: Instant,
    problem: Option<String>,
    requests: WatchRequests,
    ready: BTreeSet<(InstanceName, u64)>,
    pings: BTreeMap<(InstanceName, u64), Pings>,
    drains: Drains,
    offered: RouteOffers,
    last_question: u64,
}

struct OpenDomain {
    /// Kept while instances are pinged: they stay connected to a caller.
    callers: BTreeMap<String, Caller<Vec<u8>, Vec<u8>>>,
    _watch: RouteWatch,
    domain: Domain,
}

impl Watcher {
    pub fn new(
        path: PathBuf,
        commands: Sender<WatcherCommand>,
        reports: Sender<WatcherReport>,
        waker: Arc<OwnedFd>,
    ) -> Self {
        Self {
            path,
            commands,
            reports,
            waker,
            domain: None,
            open_at: Instant::now(),
            problem: None,
            requests: WatchRequests::new(),
            ready: BTreeSet::new(),
            pings: BTreeMap::new(),
            drains: Drains::default(),
            offered: RouteOffers::default(),
            last_question: 0,
        }
    }

    /// Runs until [`WatcherCommand::End`] or the end of the supervisor's thread.
    pub fn run(mut self, commands: &Receiver<WatcherCommand>) {
        loop {
            self.open();
            self.check();
            let left = self.next().map(|next| next.saturating_duration_since(Instant::now()));
            let command = match left {
                Some(left) => commands.recv_timeout(left),
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let command = match command {
                Ok(command) => Some(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Takes all pending messages before any deadline is judged.
            for command in command.into_iter().chain(commands.try_iter()) {
                if matches!(command, WatcherCommand::End) {
                    return;
                }
                self.take(command);
            }
        }
    }

    fn take(&mut self, command: WatcherCommand) {
        match command {
            WatcherCommand::Watch(requests) => self.watch(requests),
            WatcherCommand::Changed => {
                let known = self.domain.as_ref().map(|open| open.domain.offered_routes());
                self.offered = RouteOffers::of(known.unwrap_or_default());
            }
            WatcherCommand::Answered { question, answer } => {
                let mut stuck = Vec::new();
                for (key, pings) in &mut self.pings {
                    if let PingStep::Stuck(reason) = pings.answered(question, answer) {
                        stuck.push((key.clone(), reason));
                    }
                }
                stuck.into_iter().for_each(|(key, reason)| self.report_stuck(key, reason));
            }
            WatcherCommand::End => {}
        }
    }

    fn watch(&mut self, requests: WatchRequests) {
        self.requests = requests;
        let now = Instant::now();
        let key = |(instance, request): (&InstanceName, &WatchRequest)| (instance.clone(), request.incarnation);
        let wanted: BTreeSet<_> = self.requests.iter().map(key).collect();
        self.ready.retain(|key| wanted.contains(key));
        let config =
            |key: &(InstanceName, u64)| self.requests.get(&key.0).filter(|request| request.incarnation == key.1);
        self.pings
            .retain(|key, pings| config(key).is_some_and(|request| request.ping.as_ref() == Some(pings.config())));
        for (instance, request) in &self.requests {
            if let Some(ping) = &request.ping {
                let key = (instance.clone(), request.incarnation);
                self.pings.entry(key).or_insert_with(|| Pings::new(ping.clone(), now));
            }
        }
    }

    fn open(&mut self) {
        let now = Instant::now();
        if self.domain.is_some() || now < self.open_at {
            return;
        }
        match open(&self.path, self.commands.clone()) {
            Ok(open) => {
                self.domain = Some(open);
                self.take(WatcherCommand::Changed);
                if self.problem.take().is_some() {
                    self.report(WatcherReport::Problem(None));
                }
            }
            Err(reason) => {
                self.open_at = now + REOPEN_PAUSE;
                if self.problem.as_ref() != Some(&reason) {
                    self.problem = Some(reason.clone());
                    self.report(WatcherReport::Problem(Some(reason)));
                }
            }
        }
    }

    fn check(&mut self) {
        let now = Instant::now();
        self.check_readiness();
        self.check_pings(now);
        self.check_drains();
        let pinged: BTreeSet<&str> = self.pings.values().map(|pings| pings.config().route.as_str()).collect();
        self.domain.iter_mut().for_each(|open| open.callers.retain(|route, _| pinged.contains(route.as_str())));
    }

    fn check_readiness(&mut self) {
        let mut ready = Vec::new();
        for (instance, request) in &self.requests {
            let key = (instance.clone(), request.incarnation);
            let serves = |route: &String| self.offered.open(request.process_id, route).is_some();
            if request.ready.as_ref().is_some_and(serves) && !self.ready.contains(&key) {
                ready.push(key);
            }
        }
        for (instance, incarnation) in ready {
            self.ready.insert((instance.clone(), incarnation));
            self.report(WatcherReport::Happened(ProcessEvent::Ready { instance, incarnation }));
        }
    }

    fn check_pings(&mut self, now: Instant) {
        for (key, mut pings) in std::mem::take(&mut self.pings) {
            let process_id = self.requests.get(&key.0).map_or(0, |request| request.process_id);
            let config = pings.config().clone();
            let offer = self.offered.open(process_id, &config.route).map(|offer| offer.process_id);
            // An instance that has not announced its routes cannot be pinged; its ping times out.
            let is_unheard = || self.domain.as_ref().is_some_and(|open| is_unheard(&open.domain, process_id));
            match (pings.poll(now, offer.is_some() || is_unheard()), offer) {
                (PingStep::Ask, Some(process_id)) => {
                    let sent = self.ask(&config.route, process_id, config.within);
                    sent.into_iter().for_each(|number| pings.sent(number));
                }
                (PingStep::Stuck(reason), _) => self.report_stuck(key.clone(), reason),
                (PingStep::Ask | PingStep::Wait, _) => {}
            }
            self.pings.insert(key, pings);
        }
    }

    fn check_drains(&mut self) {
        let domain = self.domain.as_ref().map(|open| &open.domain);
        for (instance, incarnation) in self.drains.poll(&self.requests, domain) {
            self.report(WatcherReport::Drained { instance, incarnation });
        }
    }

    fn ask(&mut self, route: &str, process_id: u32, within: Duration) -> Option<u64> {
        let call = self.domain.as_mut()?.ask(route, process_id, within);
        let call = call.inspect_err(|error| tracing::warn!("asking process {process_id}: {error}")).ok()??;
        self.last_question += 1;
        let (question, commands) = (self.last_question, self.commands.clone());
        call.on_end(move |outcome| {
            let answer = match outcome {
                Ok(_) | Err(CallError::BadMessage { .. }) => PingOutcome::Answered,
                Err(CallError::TimedOut { .. }) => PingOutcome::TimedOut,
                Err(_) => PingOutcome::NotDelivered,
            };
            // The watcher may have ended.
            let _ = commands.send(WatcherCommand::Answered { question, answer });
        });
        Some(question)
    }

    fn report_stuck(&self, (instance, incarnation): (InstanceName, u64), reason: String) {
        self.report(WatcherReport::Happened(ProcessEvent::Stuck { instance, incarnation, reason }));
    }

    fn report(&self, report: WatcherReport) {
        // The supervisor may have ended.
        let _ = self.reports.send(report);
        wake_fd::signal(&self.waker);
    }

    fn next(&self) -> Option<Instant> {
        let again = self.domain.is_none().then_some(self.open_at);
        let pings = self.pings.values().filter_map(Pings::next);
        let drains = self.drains.are_waiting().then(|| Instant::now() + DRAIN_POLL_INTERVAL);
        pings.chain(again).chain(drains).min()
    }
}

impl OpenDomain {
    fn ask(&mut self, route: &str, process_id: u32, within: Duration) -> Result<Option<Call<Vec<u8>>>, Box<dyn Error>> {
        if !self.callers.contains_key(route) {
            let options = CallerOptions { reach: Reach::OtherProcesses, ..CallerOptions::default() };
            self.callers.insert(route.to_owned(), self.domain.caller_with(route, options)?);
        }
        Ok(self.callers[route].query_instance(process_id, InstanceQuery::Ping, within)?)
    }
}

fn open(path: &Path, commands: Sender<WatcherCommand>) -> Result<OpenDomain, String> {
    let failed = |error: RpcError| format!("what is served is not known: {error}");
    let options = DomainOptions {
        process_name: Some("gapless supervisor".to_owned()),
        payload_length_max: PAYLOAD_LENGTH_MAX,
        group: group(path),
        ..DomainOptions::default()
    };
    let domain = Domain::open_directory(path, options).map_err(failed)?;
    let watch = domain.watch_routes(move || drop(commands.send(WatcherCommand::Changed))).map_err(failed)?;
    Ok(OpenDomain { callers: BTreeMap::new(), _watch: watch, domain })
}

fn group(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().filter(|found| found.mode() & 0o070 != 0).map(|found| found.gid())
}

fn is_unheard(domain: &Domain, process_id: u32) -> bool {
    domain.unknown_servers().into_iter().any(|other| other == process_id || session(other) == Some(process_id))
}
