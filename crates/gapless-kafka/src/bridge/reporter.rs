//! On a thread of its own: an operator that takes no events (a full pipe) stops nothing.

use super::{BridgeEvent, RunError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const WAITING_MAX: usize = 1024;

pub(super) struct Reporter {
    events: SyncSender<BridgeEvent>,
    dropped: u64,
}

#[derive(Debug)]
pub(super) struct ReporterEnd(Mutex<Receiver<()>>);

impl Reporter {
    pub(super) fn start(
        mut on_event: impl FnMut(&BridgeEvent) + Send + 'static,
    ) -> Result<(Self, ReporterEnd), RunError> {
        let (events, waiting) = sync_channel::<BridgeEvent>(WAITING_MAX);
        let (ending, ended) = channel();
        let run = move || {
            waiting.iter().for_each(|event| on_event(&event));
            drop(ending);
        };
        let system = |error| RunError::System { operation: "starting a thread for events", error };
        std::thread::Builder::new().name("gapless-events".to_owned()).spawn(run).map_err(system)?;
        Ok((Self { events, dropped: 0 }, ReporterEnd(Mutex::new(ended))))
    }

    pub(super) fn report(&mut self, event: BridgeEvent) {
        if self.dropped > 0 && self.events.try_send(BridgeEvent::Dropped { events: self.dropped }).is_ok() {
            self.dropped = 0;
        }
        if self.dropped > 0 || self.events.try_send(event).is_err() {
            self.dropped += 1;
        }
    }
}

impl ReporterEnd {
    /// Waits until all events are taken, for `timeout` at most. The reporter must be dropped first.
    pub(super) fn wait(&self, timeout: Duration) {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout);
        if ended == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("events of a bridge are not taken at its end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::BridgeNotice;

    #[test]
    fn a_full_pipe_stops_nothing() {
        let (open_pipe, pipe) = channel::<()>();
        let (printed, lines) = channel();
        let (mut reporter, end) = Reporter::start(move |event| {
            let _open = pipe.recv();
            printed.send(event.clone()).unwrap();
        })
        .unwrap();
        let sent = WAITING_MAX as u64 + 100;
        (0..sent).for_each(|_| reporter.report(BridgeEvent::Notice(BridgeNotice::BrokerBack)));
        end.wait(Duration::from_millis(1));
        drop(open_pipe);
        let first: Vec<_> = (0..WAITING_MAX).map(|_| lines.recv().unwrap()).collect();
        assert!(first.iter().all(|event| *event == BridgeEvent::Notice(BridgeNotice::BrokerBack)));
        reporter.report(BridgeEvent::Notice(BridgeNotice::Serving));
        drop(reporter);
        end.wait(gapless_testkit::wait::PATIENCE);
        let rest: Vec<_> = lines.iter().collect();
        let dropped: u64 =
            rest.iter().map(|event| if let BridgeEvent::Dropped { events } = event { *events } else { 0 }).sum();
        let back = rest.iter().filter(|event| **event == BridgeEvent::Notice(BridgeNotice::BrokerBack)).count();
        assert_eq!((WAITING_MAX + back) as u64 + dropped, sent, "{rest:?}");
        assert_eq!(rest.last(), Some(&BridgeEvent::Notice(BridgeNotice::Serving)));
    }
}
