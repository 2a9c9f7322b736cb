//! A bridge that stops, is replaced, or begins again.

use super::{BridgeCore, CorePhase, TopicEnd};
use crate::effects::{BridgeError, DeliveryToken, Effect};
use crate::record::RecordWriter;
use gapless_agent::monotonic::saturating_ns;

/// Between the last reply and the tombstone, which is in another topic and must not overtake it.
const LAST_REPLIES_NS: u64 = 200_000_000;
const LAST_REPORTS_NS: u64 = 1_000_000_000;

impl BridgeCore {
    pub(super) fn renew_incarnation(&mut self, incarnation: u64, reason: &str, now_ns: u64, effects: &mut Vec<Effect>) {
        if !self.is_marked() && self.phase != CorePhase::Reading {
            return;
        }
        let reason = format!("records of bridge {} were lost: {reason}", self.id.name);
        self.calls_out.lose_all(&reason, &mut self.peers, effects);
        self.with_calls_in(now_ns, effects, |calls, context| calls.cancel_all(None, context));
        if matches!(self.phase, CorePhase::Stopping { .. } | CorePhase::Leaving { .. }) {
            return;
        }
        self.id.incarnation = incarnation;
        self.writer = RecordWriter::new(&self.id);
        (self.mark, self.inbox_end) = (None, TopicEnd::default());
        self.send_mark(now_ns, effects);
    }

    pub(super) fn stop(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        match self.phase {
            CorePhase::Stopping { .. } | CorePhase::Leaving { .. } => {}
            CorePhase::Joining | CorePhase::Serving => {
                let until_ns = now_ns + saturating_ns(self.options.limits.stop_time);
                for route in std::mem::take(&mut self.relayed).into_keys() {
                    effects.push(Effect::Withdraw { route });
                }
                self.phase = CorePhase::Stopping { until_ns };
                self.calls_in.stop();
                self.is_lease_due = true;
            }
            _ => {
                self.end_calls("the bridge stops", now_ns, effects);
                self.finish(Ok(()), effects);
            }
        }
    }

    pub(super) fn continue_stopping(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        if let CorePhase::Stopping { until_ns } = self.phase {
            let is_idle = self.calls_out.is_empty() && self.calls_in.len() == 0 && self.calls_in.is_quiet();
            if is_idle && until_ns > now_ns + LAST_REPLIES_NS {
                self.phase = CorePhase::Stopping { until_ns: now_ns + LAST_REPLIES_NS };
            }
            if now_ns < until_ns {
                return;
            }
            let reason = format!("bridge {} stops, and the call had not ended in time", self.id.name);
            self.end_calls(&reason, now_ns, effects);
            self.last_sent += 1;
            let record = self.writer.lease(&self.id.name, "", None);
            self.send(DeliveryToken::Lease(self.last_sent), &self.presence.clone(), record, effects);
            self.phase = CorePhase::Leaving { until_ns: now_ns + LAST_REPORTS_NS, is_delivered: false };
        } else if let CorePhase::Leaving { until_ns, is_delivered } = self.phase
            && (now_ns >= until_ns || is_delivered && self.calls_in.is_quiet())
        {
            self.finish(Ok(()), effects);
        }
    }

    pub(super) fn end_calls(&mut self, reason: &str, now_ns: u64, effects: &mut Vec<Effect>) {
        self.calls_out.end_all(reason, &mut self.peers, effects);
        self.with_calls_in(now_ns, effects, |calls, context| calls.cancel_all(Some(reason), context));
    }

    pub(super) fn finish(&mut self, result: Result<(), BridgeError>, effects: &mut Vec<Effect>) {
        for route in std::mem::take(&mut self.relayed).into_keys() {
            effects.push(Effect::Withdraw { route });
        }
        self.phase = CorePhase::Ended;
        effects.push(Effect::Ended(result));
    }
}
