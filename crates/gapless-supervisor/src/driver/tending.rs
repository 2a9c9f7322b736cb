//! Exchange with the thread of [`Routes`]: what to watch, and its reports.

use super::routes::{Report, Routes, Wish, Wishes};
use super::service::Driver;
use crate::config::process::{ProcessConfig, Readiness};
use crate::copy_name::CopyName;
use crate::supervision::copy::Progress;

impl Driver {
    /// Updates the set of watched instances, and starts the thread when it is needed.
    pub fn tend_routes(&mut self) {
        if self.routes.as_ref().is_some_and(|routes| routes.domain() != self.config.domain) {
            self.lose_routes("another domain is in force");
        }
        let wishes = self.wishes();
        let needs = |process: &ProcessConfig| process.ping.is_some() || matches!(process.ready, Readiness::Route(_));
        let is_draining = self.watched.values().any(|watched| watched.draining.is_some());
        if self.routes.is_none() && (is_draining || self.config.processes.iter().any(needs)) {
            match Routes::begin(&self.config.domain) {
                Ok(routes) => self.routes = Some(routes),
                Err(error) => {
                    tracing::error!("{error}");
                    self.problem = Some(error.to_string());
                    self.give_up_draining();
                }
            }
        }
        self.routes.iter_mut().for_each(|routes| routes.wish(wishes.clone()));
    }

    fn wishes(&self) -> Wishes {
        let mut wishes = Wishes::new();
        for process in self.supervision.processes() {
            let (ready, ping) = (&process.config.ready, &process.config.ping);
            if ping.is_none() && !matches!(ready, Readiness::Route(_)) {
                continue;
            }
            for (number, copy) in process.copies() {
                let (ready, ping) = match (copy.progress(), ready) {
                    (Progress::Starting { .. }, Readiness::Route(route)) => (Some(route.clone()), None),
                    (Progress::Ready { .. }, _) => (None, ping.clone()),
                    _ => continue,
                };
                let Ok(name) = CopyName::new(&process.config.name, number) else { continue };
                let Some(watched) = self.watched.get(&name).filter(|watched| watched.ended.is_none()) else { continue };
                if let Some(process_id) = watched.process_id
                    && (ready.is_some() || ping.is_some())
                {
                    let incarnation = watched.incarnation;
                    wishes.insert(name, Wish { incarnation, process_id, ready, ping, is_to_drain: false });
                }
            }
        }
        for (name, watched) in self.watched.iter().filter(|(_, watched)| watched.draining.is_some()) {
            let incarnation = watched.incarnation;
            if let Some(process_id) = watched.process_id {
                let wish = Wish { incarnation, process_id, ready: None, ping: None, is_to_drain: true };
                wishes.insert(name.clone(), wish);
            }
        }
        wishes
    }

    pub fn hear_routes(&mut self) {
        if self.woken.has_routes {
            self.routes.iter().for_each(Routes::silence);
        }
        // Always polled: the end of the thread causes no wake-up.
        loop {
            let Some(routes) = &mut self.routes else { return };
            match routes.next() {
                Ok(None) => return,
                Ok(Some(Report::Happened(event))) => self.happened.push_back(event),
                Ok(Some(Report::Drained { copy, incarnation })) => self.note_drained(&copy, incarnation),
                Ok(Some(Report::Problem(problem))) => {
                    problem.iter().for_each(|problem| tracing::error!("{problem}"));
                    routes.problem = problem;
                }
                Err(reason) => self.lose_routes(&reason),
            }
        }
    }

    /// Drops the thread; [`Driver::tend_routes`] starts another one.
    fn lose_routes(&mut self, reason: &str) {
        tracing::warn!("routes are looked at anew: {reason}");
        self.routes = None;
        self.give_up_draining();
    }
}
