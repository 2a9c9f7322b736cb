//! The bridge's status: asked by calls of a hidden route, answered by the bridge's thread.

use super::ready::WorkSource;
use super::{BridgeEvent, BridgeShared};
use crate::effects::BridgeNotice;
use crate::status::{BridgeStatus, STATUS_ROUTE};
use gapless_rpc::domain::ServedRoute;
use gapless_rpc::{CallContext, Domain, Json, Rejection, RpcError};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The bridge's thread never sleeps longer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct StatusResponder {
    brokers: Vec<String>,
    started: Instant,
    requests: Mutex<Vec<Sender<BridgeStatus>>>,
    reasons: Mutex<BrokerReasons>,
}

#[derive(Clone, Debug, Default)]
struct BrokerReasons {
    waiting: Option<String>,
    refused: Option<String>,
}

impl StatusResponder {
    pub(super) fn new(brokers: Vec<String>) -> Self {
        Self { brokers, started: Instant::now(), requests: Mutex::default(), reasons: Mutex::default() }
    }

    pub(super) fn note(&self, event: &BridgeEvent) {
        let mut reasons = self.reasons.lock().expect("nobody panics with the lock");
        match event {
            BridgeEvent::Waiting(_) | BridgeEvent::InboxLost { .. } | BridgeEvent::NotServing { .. } => {
                reasons.waiting = Some(event.to_string());
            }
            BridgeEvent::Notice(BridgeNotice::Serving) => reasons.waiting = None,
            BridgeEvent::Refused(error) => reasons.refused = Some(error.to_string()),
            _ => {}
        }
    }

    pub(super) fn answer(&self, status: impl FnOnce() -> BridgeStatus) {
        let requests = std::mem::take(&mut *self.requests.lock().expect("nobody panics with the lock"));
        if requests.is_empty() {
            return;
        }
        let mut status = status();
        let BrokerReasons { waiting, refused } = self.reasons.lock().expect("nobody panics with the lock").clone();
        status.process_id = std::process::id();
        status.running_ms = self.started.elapsed().as_millis() as u64;
        status.broker.brokers.clone_from(&self.brokers);
        status.broker.refused = refused;
        if !status.broker.is_connected && status.broker.reason.is_none() {
            status.broker.reason = waiting;
        }
        for question in requests {
            // A caller that no longer waits has dropped its end.
            let _ = question.send(status.clone());
        }
    }
}

impl BridgeShared {
    fn ask_status(&self) -> Option<BridgeStatus> {
        let (question, answer) = channel();
        self.status.requests.lock().expect("nobody panics with the lock").push(question);
        self.ready.signal(WorkSource::Status);
        answer.recv_timeout(ANSWER_MAX).ok()
    }
}

pub(super) fn serve(domain: &Domain, shared: &Arc<BridgeShared>) -> Result<ServedRoute, RpcError> {
    let shared = Arc::clone(shared);
    domain.serve(STATUS_ROUTE).hidden().handle(move |_question: Json, _context: &CallContext| {
        let status = shared.ask_status().ok_or("the bridge's thread does not answer")?;
        let json = serde_json::to_vec(&status).map_err(|error| Rejection::from(error.to_string()))?;
        Json::new(json).map_err(|error| Rejection::from(error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BridgeCore;
    use crate::bridge::Bridge;
    use crate::config::BridgeConfig;
    use crate::status::BridgePhase;
    use gapless_rpc::{CallOptions, Caller, DomainOptions};
    use gapless_testkit::wait::PATIENCE;
    use std::net::TcpListener;

    fn config(port: u16, directory: &str) -> BridgeConfig {
        let kafka = format!("[kafka]\nbrokers = [\"127.0.0.1:{port}\"]\nname = \"berlin\"\n");
        BridgeConfig::parse(&format!("{kafka}[domain]\ndirectory = \"{directory}\"\n"), "bridge.toml").unwrap()
    }

    #[test]
    fn status_needs_no_broker() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("domain");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let bridge = Bridge::start(config(port, directory.to_str().unwrap()), |_| {}).unwrap();
        let domain = Domain::open_directory(&directory, DomainOptions::default()).unwrap();
        let caller: Caller<Json, Json> = domain.caller(STATUS_ROUTE).unwrap();
        let patient = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
        let reply = caller.call_with(Json::new("null").unwrap(), &patient).unwrap();
        let status: BridgeStatus = serde_json::from_slice(reply.text()).unwrap();
        assert_eq!((&*status.name, &*status.prefix, status.phase), ("berlin", "gapless", BridgePhase::Starting));
        assert_eq!((status.process_id, status.protocol), (std::process::id(), 1));
        assert_eq!(status.broker.brokers, [format!("127.0.0.1:{port}")]);
        assert_eq!((status.broker.is_connected, status.broker.since_ms), (false, None));
        let known = domain.routes(PATIENCE).unwrap().routes;
        let is_alone = known.len() == 1 && known[0].is_hidden() && known[0].route == STATUS_ROUTE;
        assert!(is_alone && domain.offered_routes().is_empty(), "{known:?}");
        bridge.end().unwrap();
    }

    #[test]
    fn the_last_reason_is_in_the_status() {
        let desk = StatusResponder::new(vec!["a:1".to_owned()]);
        let core = BridgeCore::new(config(1, "d").core_options("m", "p"), 7);
        let reason = || {
            let (question, answer) = channel();
            desk.requests.lock().unwrap().push(question);
            desk.answer(|| core.status(super::super::now()));
            answer.recv().unwrap().broker.reason
        };
        assert_eq!(reason(), None);
        desk.note(&BridgeEvent::InboxLost { reason: "it was removed".to_owned() });
        assert_eq!(reason().as_deref(), Some("beginning again: it was removed"));
        desk.note(&BridgeEvent::Notice(BridgeNotice::Serving));
        assert_eq!(reason(), None);
    }
}
