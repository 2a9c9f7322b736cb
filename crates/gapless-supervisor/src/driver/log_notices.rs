//! Reports findings of the log keeper once, and shows them while they last.

use super::service::Driver;
use crate::control::protocol::SupervisorEvent;
use crate::logs::LogFound;

impl Driver {
    pub fn hear_of_logs(&mut self) {
        for found in self.logs.take_found() {
            let event = match found {
                LogFound::DiskFull(folder) => {
                    self.full_disks.insert(folder.clone());
                    SupervisorEvent::DiskFull { folder }
                }
                LogFound::DiskHasRoom(folder) => {
                    self.full_disks.remove(&folder);
                    SupervisorEvent::DiskHasRoom { folder }
                }
                LogFound::NotRotated(log, reason) => SupervisorEvent::LogNotCut { log, reason },
            };
            self.tell_of_supervisor(event);
        }
    }

    /// All current problems, for operators.
    pub fn problems(&self) -> Option<String> {
        let full =
            self.full_disks.iter().map(|folder| SupervisorEvent::DiskFull { folder: folder.clone() }.to_string());
        let of_routes = self.routes.as_ref().and_then(|routes| routes.problem.clone());
        let here = [&self.problem, &self.refused_file, &self.looks.reason].into_iter().flatten().cloned();
        let all: Vec<String> = here.chain(of_routes).chain(full).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}
