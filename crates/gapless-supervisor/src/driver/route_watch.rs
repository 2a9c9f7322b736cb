//! Exchange with the thread of `RouteObserver`: what to watch, and its reports.

use super::routes::{RouteObserver, WatchRequest, WatchRequests, WatcherReport};
use super::service::SupervisorDriver;
use crate::config::process::{ProcessConfig, Readiness};
use crate::instance_name::InstanceName;
use crate::supervision::instance::InstanceProgress;

impl SupervisorDriver {
    /// Updates the watched instances; starts the thread when needed.
    pub fn update_route_watch(&mut self) {
        if self.routes.as_ref().is_some_and(|routes| routes.domain() != self.config.domain) {
            self.drop_routes("another domain is in force");
        }
        let requests = self.requests();
        let needs = |process: &ProcessConfig| process.ping.is_some() || matches!(process.ready, Readiness::Route(_));
        let is_draining = self.watched.values().any(|watched| watched.draining.is_some());
        if self.routes.is_none() && (is_draining || self.config.processes.iter().any(needs)) {
            match RouteObserver::begin(&self.config.domain) {
                Ok(routes) => self.routes = Some(routes),
                Err(error) => {
                    tracing::error!("{error}");
                    self.problem = Some(error.to_string());
                    self.give_up_draining();
                }
            }
        }
        self.routes.iter_mut().for_each(|routes| routes.set_requests(requests.clone()));
    }

    fn requests(&self) -> WatchRequests {
        let mut requests = WatchRequests::new();
        for process in self.supervision.processes() {
            let (ready, ping) = (&process.config.ready, &process.config.ping);
            if ping.is_none() && !matches!(ready, Readiness::Route(_)) {
                continue;
            }
            for (number, instance) in process.instances() {
                let (ready, ping) = match (instance.progress(), ready) {
                    (InstanceProgress::Starting { .. }, Readiness::Route(route)) => (Some(route.clone()), None),
                    (InstanceProgress::Ready { .. }, _) => (None, ping.clone()),
                    _ => continue,
                };
                let Ok(name) = InstanceName::new(&process.config.name, number) else { continue };
                let Some(watched) = self.watched.get(&name).filter(|watched| watched.ended.is_none()) else { continue };
                if let Some(process_id) = watched.process_id
                    && (ready.is_some() || ping.is_some())
                {
                    let incarnation = watched.incarnation;
                    requests.insert(name, WatchRequest { incarnation, process_id, ready, ping, is_to_drain: false });
                }
            }
        }
        for (name, watched) in self.watched.iter().filter(|(_, watched)| watched.draining.is_some()) {
            let incarnation = watched.incarnation;
            if let Some(process_id) = watched.process_id {
                let request = WatchRequest { incarnation, process_id, ready: None, ping: None, is_to_drain: true };
                requests.insert(name.clone(), request);
            }
        }
        requests
    }

    pub fn handle_route_reports(&mut self) {
        if self.wake_sources.has_routes {
            self.routes.iter().for_each(RouteObserver::silence);
        }
        // Always polled: the end of the thread causes no wake-up.
        loop {
            let Some(routes) = &mut self.routes else { return };
            match routes.next() {
                Ok(None) => return,
                Ok(Some(WatcherReport::Happened(event))) => self.pending_events.push_back(event),
                Ok(Some(WatcherReport::Drained { instance, incarnation })) => self.note_drained(&instance, incarnation),
                Ok(Some(WatcherReport::Problem(problem))) => {
                    problem.iter().for_each(|problem| tracing::error!("{problem}"));
                    routes.problem = problem;
                }
                Err(reason) => self.drop_routes(&reason),
            }
        }
    }

    fn drop_routes(&mut self, reason: &str) {
        tracing::warn!("routes are looked at anew: {reason}");
        self.routes = None;
        self.give_up_draining();
    }
}
