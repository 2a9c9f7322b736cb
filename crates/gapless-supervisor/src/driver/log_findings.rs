//! Reports findings of the log keeper once, and shows them while they last.

use super::service::SupervisorDriver;
use crate::control::protocol::SupervisorEvent;
use crate::logs::LogFinding;

impl SupervisorDriver {
    pub fn report_log_findings(&mut self) {
        for finding in self.logs.take_findings() {
            let event = match finding {
                LogFinding::DiskFull(folder) => {
                    self.full_disks.insert(folder.clone());
                    SupervisorEvent::DiskFull { folder }
                }
                LogFinding::DiskHasRoom(folder) => {
                    self.full_disks.remove(&folder);
                    SupervisorEvent::DiskHasRoom { folder }
                }
                LogFinding::NotRotated(log, reason) => SupervisorEvent::LogNotCut { log, reason },
            };
            self.report_supervisor_event(event);
        }
    }

    /// All current problems.
    pub fn problems(&self) -> Option<String> {
        let full =
            self.full_disks.iter().map(|folder| SupervisorEvent::DiskFull { folder: folder.clone() }.to_string());
        let of_routes = self.routes.as_ref().and_then(|routes| routes.problem.clone());
        let here = [&self.problem, &self.refused_file, &self.probe_failure.reason].into_iter().flatten().cloned();
        let all: Vec<String> = here.chain(of_routes).chain(full).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}
