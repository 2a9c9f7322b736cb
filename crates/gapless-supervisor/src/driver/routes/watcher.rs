//! [`Watcher`]: the thread that watches the domain. It sleeps until a message or a deadline. Data of other processes in
//! the domain is read by `gapless-rpc`, which validates it; if the thread dies regardless, the supervisor starts
//! another one.

use super::drains::Drains;
use super::offered::Offered;
use super::pings::{Pings, Step};
use super::protocol::{Answer, Order, Report, Wish, Wishes};
use crate::copy_name::CopyName;
use crate::process_facts::session;
use crate::supervision::event::Event;
use gapless_agent::wake_fd;
use gapless_rpc::domain::RouteWatch;
use gapless_rpc::{Call, CallError, Caller, CallerOptions, CopyQuery, Domain, DomainOptions, Reach, RpcError};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Pause before another attempt to open the domain.
const OPEN_AGAIN: Duration = Duration::from_millis(500);
/// Poll interval for drains.
const DRAIN_LOOK: Duration = Duration::from_millis(20);
/// Payload limit of a ping and its reply, bytes; neither carries a payload of ours.
const PAYLOAD_LENGTH_MAX: usize = 64 << 10;

pub struct Watcher {
    path: PathBuf,
    orders: Sender<Order>,
    reports: Sender<Report>,
    bell: Arc<OwnedFd>,
    domain: Option<Open>,
    open_at: Instant,
    problem: Option<String>,
    wishes: Wishes,
    /// Instances that were reported as ready.
    ready: BTreeSet<(CopyName, u64)>,
    pings: BTreeMap<(CopyName, u64), Pings>,
    drains: Drains,
    offered: Offered,
    last_question: u64,
}

struct Open {
    /// By route. Kept while instances are pinged, because instances stay connected to a caller.
    callers: BTreeMap<String, Caller<Vec<u8>, Vec<u8>>>,
    _watch: RouteWatch,
    domain: Domain,
}

impl Watcher {
    pub fn new(path: PathBuf, orders: Sender<Order>, reports: Sender<Report>, bell: Arc<OwnedFd>) -> Self {
        Self {
            path,
            orders,
            reports,
            bell,
            domain: None,
            open_at: Instant::now(),
            problem: None,
            wishes: Wishes::new(),
            ready: BTreeSet::new(),
            pings: BTreeMap::new(),
            drains: Drains::default(),
            offered: Offered::default(),
            last_question: 0,
        }
    }

    /// Runs until [`Order::End`], or until the thread of the supervisor has ended.
    pub fn run(mut self, orders: &Receiver<Order>) {
        loop {
            self.open();
            self.look();
            let left = self.next().map(|next| next.saturating_duration_since(Instant::now()));
            let order = match left {
                Some(left) => orders.recv_timeout(left),
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let order = match order {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Takes all pending messages before any deadline is judged.
            for order in order.into_iter().chain(orders.try_iter()) {
                if matches!(order, Order::End) {
                    return;
                }
                self.take(order);
            }
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Watch(wishes) => self.watch(wishes),
            Order::Changed => {
                let known = self.domain.as_ref().map(|open| open.domain.offered_routes());
                self.offered = Offered::of(known.unwrap_or_default());
            }
            Order::Answered { question, answer } => {
                let mut stuck = Vec::new();
                for (key, pings) in &mut self.pings {
                    if let Step::Stuck(reason) = pings.answered(question, answer) {
                        stuck.push((key.clone(), reason));
                    }
                }
                stuck.into_iter().for_each(|(key, reason)| self.tell_stuck(key, reason));
            }
            Order::End => {}
        }
    }

    fn watch(&mut self, wishes: Wishes) {
        self.wishes = wishes;
        let now = Instant::now();
        let key = |(copy, wish): (&CopyName, &Wish)| (copy.clone(), wish.incarnation);
        let wanted: BTreeSet<_> = self.wishes.iter().map(key).collect();
        self.ready.retain(|key| wanted.contains(key));
        let config = |key: &(CopyName, u64)| self.wishes.get(&key.0).filter(|wish| wish.incarnation == key.1);
        self.pings.retain(|key, pings| config(key).is_some_and(|wish| wish.ping.as_ref() == Some(pings.config())));
        for (copy, wish) in &self.wishes {
            if let Some(ping) = &wish.ping {
                let key = (copy.clone(), wish.incarnation);
                self.pings.entry(key).or_insert_with(|| Pings::new(ping.clone(), now));
            }
        }
    }

    /// Opens the domain, if it is closed and a retry is due.
    fn open(&mut self) {
        let now = Instant::now();
        if self.domain.is_some() || now < self.open_at {
            return;
        }
        match open(&self.path, self.orders.clone()) {
            Ok(open) => {
                self.domain = Some(open);
                self.take(Order::Changed);
                if self.problem.take().is_some() {
                    self.tell(Report::Problem(None));
                }
            }
            Err(reason) => {
                self.open_at = now + OPEN_AGAIN;
                if self.problem.as_ref() != Some(&reason) {
                    self.problem = Some(reason.clone());
                    self.tell(Report::Problem(Some(reason)));
                }
            }
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        self.look_for_readiness();
        self.look_at_pings(now);
        self.look_at_drains();
        let asked: BTreeSet<&str> = self.pings.values().map(|pings| pings.config().route.as_str()).collect();
        self.domain.iter_mut().for_each(|open| open.callers.retain(|route, _| asked.contains(route.as_str())));
    }

    fn look_for_readiness(&mut self) {
        let mut ready = Vec::new();
        for (copy, wish) in &self.wishes {
            let key = (copy.clone(), wish.incarnation);
            let serves = |route: &String| self.offered.open(wish.process_id, route).is_some();
            if wish.ready.as_ref().is_some_and(serves) && !self.ready.contains(&key) {
                ready.push(key);
            }
        }
        for (copy, incarnation) in ready {
            self.ready.insert((copy.clone(), incarnation));
            self.tell(Report::Happened(Event::Ready { copy, incarnation }));
        }
    }

    fn look_at_pings(&mut self, now: Instant) {
        for (key, mut pings) in std::mem::take(&mut self.pings) {
            let process_id = self.wishes.get(&key.0).map_or(0, |wish| wish.process_id);
            let config = pings.config().clone();
            let offer = self.offered.open(process_id, &config.route).map(|offer| offer.process_id);
            // An instance that has not announced its routes cannot be pinged; its ping times out.
            let is_unheard = || self.domain.as_ref().is_some_and(|open| is_unheard(&open.domain, process_id));
            match (pings.look(now, offer.is_some() || is_unheard()), offer) {
                (Step::Ask, Some(process_id)) => {
                    let asked = self.ask(&config.route, process_id, config.within);
                    asked.into_iter().for_each(|number| pings.asked(number));
                }
                (Step::Stuck(reason), _) => self.tell_stuck(key.clone(), reason),
                (Step::Ask | Step::Wait, _) => {}
            }
            self.pings.insert(key, pings);
        }
    }

    /// Starts drains and reports those that are finished.
    fn look_at_drains(&mut self) {
        let domain = self.domain.as_ref().map(|open| &open.domain);
        for (copy, incarnation) in self.drains.look(&self.wishes, domain) {
            self.tell(Report::Drained { copy, incarnation });
        }
    }

    /// Sends a ping and returns its number; `None` if the process cannot be reached now.
    fn ask(&mut self, route: &str, process_id: u32, within: Duration) -> Option<u64> {
        let call = self.domain.as_mut()?.ask(route, process_id, within);
        let call = call.inspect_err(|error| tracing::warn!("asking process {process_id}: {error}")).ok()??;
        self.last_question += 1;
        let (question, orders) = (self.last_question, self.orders.clone());
        call.on_end(move |outcome| {
            let answer = match outcome {
                Ok(_) | Err(CallError::BadMessage { .. }) => Answer::Said,
                Err(CallError::TimedOut { .. }) => Answer::Nothing,
                Err(_) => Answer::NotAsked,
            };
            // The watcher may have ended.
            let _ = orders.send(Order::Answered { question, answer });
        });
        Some(question)
    }

    fn tell_stuck(&self, (copy, incarnation): (CopyName, u64), reason: String) {
        self.tell(Report::Happened(Event::Stuck { copy, incarnation, reason }));
    }

    fn tell(&self, report: Report) {
        // The supervisor may have ended.
        let _ = self.reports.send(report);
        wake_fd::ring(&self.bell);
    }

    fn next(&self) -> Option<Instant> {
        let again = self.domain.is_none().then_some(self.open_at);
        let pings = self.pings.values().filter_map(Pings::next);
        let drains = self.drains.are_waiting().then(|| Instant::now() + DRAIN_LOOK);
        pings.chain(again).chain(drains).min()
    }
}

impl Open {
    /// Sends a ping; `None` if the process cannot be reached now.
    fn ask(&mut self, route: &str, process_id: u32, within: Duration) -> Result<Option<Call<Vec<u8>>>, Box<dyn Error>> {
        if !self.callers.contains_key(route) {
            let options = CallerOptions { reach: Reach::OtherProcesses, ..CallerOptions::default() };
            self.callers.insert(route.to_owned(), self.domain.caller_with(route, options)?);
        }
        Ok(self.callers[route].query_copy(process_id, CopyQuery::Ping, within)?)
    }
}

/// Opens the domain of a directory. `orders` gets [`Order::Changed`] whenever served routes may have changed.
fn open(path: &Path, orders: Sender<Order>) -> Result<Open, String> {
    let failed = |error: RpcError| format!("what is served is not known: {error}");
    let options = DomainOptions {
        process_name: Some("gapless supervisor".to_owned()),
        payload_length_max: PAYLOAD_LENGTH_MAX,
        group: group(path),
        ..DomainOptions::default()
    };
    let domain = Domain::open_directory(path, options).map_err(failed)?;
    let watch = domain.watch_routes(move || drop(orders.send(Order::Changed))).map_err(failed)?;
    Ok(Open { callers: BTreeMap::new(), _watch: watch, domain })
}

/// Group for which instances may have created the domain.
fn group(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().filter(|found| found.mode() & 0o070 != 0).map(|found| found.gid())
}

/// Whether a process or one of its session has not announced its routes yet.
fn is_unheard(domain: &Domain, process_id: u32) -> bool {
    domain.unheard_processes().into_iter().any(|other| other == process_id || session(other) == Some(process_id))
}
