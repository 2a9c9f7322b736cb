//! Heartbeats, and what follows from those that come back: the state of the broker and the broker's clock.

use super::{BridgeCore, CorePhase, Topic};
use crate::broker_time::BrokerTime;
use crate::calls_out::RecordPlace;
use crate::effects::{BridgeNotice, DeliveryToken, Effect};
use crate::peers::PeerState;

#[derive(Debug, Default)]
pub(super) struct TopicEnd {
    pub(super) time: BrokerTime,
    pub(super) next: Option<(i64, i64)>,
    pub(super) echo_ns: u64,
    unread: Option<UnreadRecords>,
}

#[derive(Clone, Copy, Debug)]
struct UnreadRecords {
    offset: i64,
    first_ns: u64,
    last_ns: u64,
}

impl TopicEnd {
    /// False for a record that was read before.
    pub(super) fn read(&mut self, offset: i64, append_time_ms: i64, now_ns: u64) -> bool {
        // A recreated topic counts from 0, and its records are younger.
        if self.next.is_some_and(|(next, last_ms)| offset < next && append_time_ms <= last_ms) {
            return false;
        }
        self.next = Some((offset + 1, append_time_ms));
        self.time.read(append_time_ms, now_ns);
        self.unread = self.unread.filter(|unread| offset < unread.offset);
        true
    }

    /// An own record was appended. After a gap of more than `gap_ns` the count begins again: the broker was away, and
    /// its reader may take longer to come back.
    fn appended(&mut self, offset: i64, gap_ns: u64, now_ns: u64) {
        if offset < 0 || self.next.is_some_and(|(next, _)| offset < next) {
            return;
        }
        self.unread = match self.unread {
            Some(unread) if now_ns.saturating_sub(unread.last_ns) <= gap_ns => {
                Some(UnreadRecords { last_ns: now_ns, ..unread })
            }
            _ => Some(UnreadRecords { offset, first_ns: now_ns, last_ns: now_ns }),
        };
    }

    fn is_stuck(&mut self, time_ns: u64) -> bool {
        let stuck = self.unread.take_if(|unread| unread.last_ns - unread.first_ns >= time_ns);
        stuck.is_some()
    }
}

#[derive(Debug, Default)]
pub(super) struct BrokerState {
    pub(super) lost_ns: Option<u64>,
    pub(super) connected_ns: Option<u64>,
    pub(super) last_reason: String,
}

impl BridgeCore {
    /// True while own records come back; otherwise the silence of others says nothing about them.
    pub(super) fn can_judge_peers(&self, now_ns: u64) -> bool {
        let silent_ns = now_ns.saturating_sub(self.echo_ns());
        self.broker.lost_ns.is_none() && self.is_joined() && silent_ns <= 2 * self.interval_ns()
    }

    pub(super) fn echo_ns(&self) -> u64 {
        self.inbox_end.echo_ns.min(self.presence_end.echo_ns)
    }

    /// A process that was stopped has read nothing meanwhile: no sign of others' silence.
    pub(super) fn detect_pause(&mut self, now_ns: u64) {
        let pause_ns = now_ns.saturating_sub(self.last_input_ns);
        if self.last_input_ns != 0 && pause_ns > 2 * self.interval_ns() {
            self.peers.extend_leases(now_ns + self.lease_ns());
            (self.inbox_end.echo_ns, self.presence_end.echo_ns) = (now_ns, now_ns);
        }
        self.last_input_ns = now_ns;
    }

    pub(super) fn broker_loss_reason(&self, now_ns: u64) -> Option<String> {
        let BrokerState { lost_ns, last_reason, .. } = &self.broker;
        let seconds = now_ns.saturating_sub((*lost_ns)?) / 1_000_000_000;
        let more = if last_reason.is_empty() { String::new() } else { format!(" ({last_reason})") };
        Some(format!("the broker of bridge {} cannot be reached since {seconds} s{more}", self.id.name))
    }

    pub(super) fn echo(
        &mut self,
        topic: Topic,
        sent: &str,
        append_time_ms: i64,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let silent_ns = now_ns.saturating_sub(self.echo_ns());
        let end = match topic {
            Topic::Inbox => &mut self.inbox_end,
            Topic::Presence => &mut self.presence_end,
        };
        end.echo_ns = now_ns;
        if let Ok(sent_ns) = sent.parse() {
            end.time.read_own(append_time_ms, sent_ns, now_ns);
        }
        if silent_ns > 2 * self.interval_ns() {
            // Records of others were late, too.
            self.peers.extend_leases(now_ns + 2 * self.interval_ns());
        }
        if topic == Topic::Presence && self.phase == CorePhase::Joining {
            self.phase = CorePhase::Serving;
            self.broker.connected_ns.get_or_insert(now_ns);
            let time = self.presence_end.time;
            self.peers.set_lease_ages(|append_ms| time.age_ns(append_ms, now_ns), now_ns);
            self.peers.expire(now_ns);
            effects.push(Effect::Notice(BridgeNotice::Serving));
            for peer in self.peers.iter().filter(|peer| peer.state == PeerState::Alive) {
                let (bridge, machine) = (peer.id.name.to_string(), self.peers.machine(&peer.id.name).to_owned());
                effects.push(Effect::Notice(BridgeNotice::PeerBegan { bridge, machine }));
            }
            self.update_routes(effects);
        }
        if let Some(lost_ns) = self.broker.lost_ns
            && self.inbox_end.echo_ns > lost_ns
            && self.presence_end.echo_ns > lost_ns
        {
            self.broker = BrokerState { connected_ns: Some(now_ns), ..BrokerState::default() };
            self.peers.extend_leases(now_ns + self.lease_ns());
            effects.push(Effect::Notice(BridgeNotice::BrokerBack));
        }
    }

    pub(super) fn heartbeat(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        if self.phase == (CorePhase::Marking { is_sent: false }) {
            return self.send_mark(now_ns, effects);
        }
        if !self.is_marked() || matches!(self.phase, CorePhase::Leaving { .. }) {
            return;
        }
        self.is_lease_due = true;
        let record = self.writer.control("ping", &now_ns.to_string(), None);
        self.send(DeliveryToken::Ping, &self.inbox.clone(), record, effects);
        if self.broker.lost_ns.is_none() {
            for peer in self.peers.due_pings(now_ns) {
                let peer = self.peers.get(peer);
                let record = self.writer.control("ping", "", Some(peer.id.incarnation));
                self.send(DeliveryToken::Control, &peer.inbox.clone(), record, effects);
            }
        }
    }

    pub(super) fn check_broker(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        let echo_ns = self.echo_ns();
        let is_lost = self.is_marked() && now_ns.saturating_sub(echo_ns) >= self.lease_ns();
        if !is_lost || self.broker.lost_ns.is_some() || matches!(self.phase, CorePhase::Leaving { .. }) {
            return;
        }
        self.broker.lost_ns = Some(echo_ns);
        let reason = self.broker_loss_reason(now_ns).unwrap_or_default();
        self.calls_out.lose_all(&reason, &mut self.peers, effects);
        effects.push(Effect::PurgeQueue);
        effects.push(Effect::Notice(BridgeNotice::BrokerLost { reason }));
    }

    pub(super) fn note_appended(&mut self, token: DeliveryToken, place: Option<&RecordPlace>, now_ns: u64) {
        let gap_ns = 2 * self.interval_ns();
        let end = match token {
            DeliveryToken::Ping => &mut self.inbox_end,
            DeliveryToken::Lease(_) => &mut self.presence_end,
            _ => return,
        };
        if let Some(place) = place {
            end.appended(place.offset, gap_ns, now_ns);
        }
    }

    pub(super) fn check_readers(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        let lease_ns = self.lease_ns();
        let is_mark_late =
            self.phase == CorePhase::Reading && now_ns.saturating_sub(self.inbox_end.echo_ns) >= lease_ns;
        if is_mark_late {
            self.inbox_end.echo_ns = now_ns;
        }
        if self.inbox_end.is_stuck(lease_ns) || is_mark_late {
            let reason = "records are appended to the inbox, and its reader gives none of them".to_owned();
            effects.push(Effect::ReopenInbox { reason });
        }
        if self.presence_end.is_stuck(lease_ns) {
            effects.push(Effect::SkipLeases);
        }
    }

    /// A record of the inbox loses requests and replies: the bridge begins again, so that callers hear of it. A lease
    /// is written again soon.
    pub(super) fn skip_unreadable(&mut self, topic: Topic, reason: String, effects: &mut Vec<Effect>) {
        self.counters.unreadable_records += 1;
        self.broker.last_reason.clone_from(&reason);
        effects.push(Effect::Notice(BridgeNotice::Unreadable { topic, reason: reason.clone() }));
        effects.push(match topic {
            Topic::Inbox => Effect::ReopenInbox { reason },
            Topic::Presence => Effect::SkipLeases,
        });
    }
}
