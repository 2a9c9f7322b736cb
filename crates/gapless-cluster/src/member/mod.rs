//! [`Member`]: the agent of a cluster's member. Everything between a frame's arrival and its release happens here, in one
//! place and in one order (decision 24):
//!
//! 1. what other members have sent is looked through: a leader's frames go into the window, and what an answer to this
//!    leader lets go is released;
//! 2. what publishers have sent is appended, if this member leads;
//! 3. what was appended is proposed;
//! 4. messages leave, the leader's with the frames in the same write, before anything is journaled here;
//! 5. frames and records are journaled, and consensus is told;
//! 6. what a quorum has is released.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`Member`]: the order of things |
//! | [`core`] | all of it but the links |
//! | `member_journal` | the journal |
//! | [`snapshot_transfer`] | what a member gets that is too far behind for its leader's journal |
//! | `peers` | links follow the members |
//! | `advertised_endpoints` | where publishers find each member |
//! | [`recover`] | a member whose partners are lost becomes a cluster of one |
//! | `voting` | whether this one may vote |
//! | `member_files` | small sealed files: which directory this is, who the others are, that one was removed |
//! | `pending_checkpoint` | a checkpoint beside the journal |
//! | `ballot` | term and vote beside the journal |
//! | `durable` | the thread of tier `quorum-sync` |
//! | [`control`] | the socket by which others ask |
//! | `frame_fetch` | how frames of another's journal are fetched, a piece at a time, and checked |
//! | `catch_up` | frames that are fetched from a leader's journal, and served from one's own |
//! | `lagging_appends` | how fast members that lag behind the window are sent what they lack |
//! | `catch_up_budget` | how much of that goes beside what is published |
//! | `journal_readers` | where these, and those that fetch, are in the journal |
//! | `start` | [`ClusterMember`]: a member put together, and run |
//! | `member_environment` | [`MemberEnvironment`]: what a member takes from its machine, for simulations |
//! | [`shared`] | what is known outside of the agent |
//! | [`requests`] | what can be asked of it, and what becomes of that |

mod advertised_endpoints;
mod ballot;
mod catch_up;
mod catch_up_budget;
pub mod control;
pub mod core;
pub(crate) mod durable;
mod frame_fetch;
mod journal_readers;
mod lagging_appends;
pub mod member_environment;
mod member_files;
mod member_journal;
mod peers;
mod pending_checkpoint;
pub mod recover;
pub mod requests;
pub mod shared;
pub mod snapshot_transfer;
pub mod start;
mod voting;

pub use member_environment::MemberEnvironment;
pub use requests::MemberRequest;
pub use shared::MemberStatus;
pub use start::ClusterMember;

use self::core::Core;
use crate::ClusterError;
use crate::consensus::{MemberId, Message, Outgoing, wire};
use crate::link::wire::{Refusal, RefusalCode};
use crate::link::{Content, GoneReason, LinkEvent, Links};
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Now};
use gapless_stream::AgentRole;
use lagging_appends::LaggingAppends;
use peers::Peers;
use rustix::fd::BorrowedFd;
use shared::MemberShared;
use std::sync::Arc;

/// Frames of one message, bytes; entries whose frames do not fit leave with the next one.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// A leader whose followers wait for what it owes them looks again so soon, ns.
const LAGGING_AGAIN_NS: u64 = 200_000;
/// At a clean stop a leader hands over for so long at most, ns.
const HAND_OVER_NS_MAX: u64 = 2_000_000_000;
/// Who was removed answers for so long still, ns.
const REMOVED_LINGERS_NS: u64 = 2_000_000_000;

/// The agent.
pub struct Member {
    core: Core,
    links: Links,
    peers: Peers,
    /// When it ends, because it was removed, and who said so.
    removed: Option<(u64, String)>,
    shared: Arc<MemberShared>,
    /// What only says how far is committed, until the next turn.
    waiting: Vec<Outgoing>,
    /// What goes to members that lag behind the window.
    lagging: LaggingAppends,
    /// Frames of one message, bytes.
    message_bytes_max: usize,
    /// A message as bytes.
    bytes: Vec<u8>,
    /// When a stop no longer waits for the hand-over.
    closes_by_ns: Option<u64>,
}

impl Member {
    fn new(core: Core, links: Links, peers: Peers, shared: Arc<MemberShared>, message_bytes_max: usize) -> Self {
        Self {
            core,
            links,
            peers,
            removed: None,
            waiting: Vec::new(),
            shared,
            lagging: LaggingAppends::default(),
            message_bytes_max,
            bytes: Vec::new(),
            closes_by_ns: None,
        }
    }

    /// Sends what consensus wants to send. What only says how far is committed waits for the next turn: the reply that
    /// it is about leaves first, and often an append goes that says the same.
    fn send(&mut self) -> Result<(), ClusterError> {
        if self.core.outbox.is_empty() {
            return Ok(());
        }
        // What a new leader appends comes behind it.
        self.tell_time();
        let mut outbox = std::mem::take(&mut self.core.outbox);
        for outgoing in outbox.drain(..) {
            if outgoing.says_only_commit() {
                self.waiting.push(outgoing);
            } else {
                self.send_one(outgoing)?;
            }
        }
        self.core.outbox = outbox;
        Ok(())
    }

    /// Sends what waits since the last turn, but for what an append says that is about to leave.
    fn send_waiting(&mut self) -> Result<(), ClusterError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for outgoing in waiting.drain(..) {
            let says_so = |other: &Outgoing| other.to == outgoing.to && other.is_append() && !other.says_only_commit();
            if !self.core.outbox.iter().any(says_so) {
                self.send_one(outgoing)?;
            }
        }
        self.waiting = waiting;
        Ok(())
    }

    fn send_one(&mut self, outgoing: Outgoing) -> Result<(), ClusterError> {
        let to = outgoing.to;
        let frames = match outgoing.frames {
            None => &[][..],
            Some((first, last)) => match self.core.ingress.frames(first, last) {
                Some(found) if found.len() <= self.message_bytes_max || is_one_entry(&outgoing.message) => found,
                _ => {
                    // It gets them a piece at a time, from where it stands.
                    self.look_who_lags();
                    self.core.consensus.unreachable(to);
                    return Ok(());
                }
            },
        };
        if !transmit(&mut self.links, &mut self.bytes, &outgoing, frames) {
            // What was not sent is sent again from where the member stands.
            self.core.consensus.unreachable(to);
        }
        Ok(())
    }

    /// What has happened to connections.
    fn take_event(&mut self, event: LinkEvent) -> Result<(), ClusterError> {
        match event {
            LinkEvent::Connected(member) => {
                tracing::info!(member, "a member is connected");
                self.core.membership.refused.remove(&member);
                self.core.membership.connected.extend(MemberId::new(member));
                self.core.divergence.came(member);
                self.tell_history_to(member);
                self.peers.meet(member, &mut self.links)?;
                // Not sent, here and below: then it is not connected any more.
                let _ = self.links.send(member, Content::Endpoints, self.core.endpoints.own(), &[]);
                self.tell_time_to(member);
                if let Some(view) = self.core.consensus.membership_view() {
                    let _ = self.links.send(member, Content::Members, &view.to_bytes(), &[]);
                }
                if let Some(member) = MemberId::new(member) {
                    self.core.consensus.peer_came(member);
                }
            }
            LinkEvent::Gone(member, reason) => {
                tracing::info!(member, %reason, "a member is gone");
                if let Some(member) = MemberId::new(member) {
                    self.core.consensus.peer_gone(member);
                    self.core.catch_up.gone(member);
                    self.core.readers.forget(member);
                    self.core.snapshot_transfers.gone(member);
                    self.core.membership.connected.retain(|other| *other != member);
                }
                if !self.links.knows(member) {
                    self.core.endpoints.forget(member);
                }
                if let GoneReason::Refused(refusal) = reason {
                    self.is_refused(member, &refusal)?;
                }
            }
            LinkEvent::Refused(member, refusal) => {
                tracing::warn!(member, %refusal, "a member cannot be connected");
                self.is_refused(member, &refusal)?;
            }
            LinkEvent::NotWanted(member, refusal) => {
                tracing::warn!(member, %refusal, "a member is refused");
                self.core.membership.refused.insert(member, refusal.to_string());
            }
        }
        Ok(())
    }

    /// Some refusals are for good.
    fn is_refused(&mut self, by: u64, refusal: &Refusal) -> Result<(), ClusterError> {
        match refusal.code {
            RefusalCode::Removed => self.removed = Some((0, refusal.text.clone())),
            // More may have come here since it was said what this member has.
            RefusalCode::HasLess if self.core.log_state() != self.links.log_told(by) => {}
            RefusalCode::OtherDirectory | RefusalCode::HasLess => {
                let (member, reason) = (self.core.member.get(), refusal.to_string());
                return Err(ClusterError::NotTheSame { member, by, reason });
            }
            _ => {}
        }
        Ok(())
    }

    /// Links follow the members; everybody is told of them who may know less, also who goes.
    fn follow_members(&mut self) -> Result<(), ClusterError> {
        let own = self.core.member;
        if let Some(told) = self.core.membership.told.take() {
            if told.has_removed(own) {
                self.removed = Some((0, "another member says so".to_owned()));
            } else {
                self.peers.widen(&told.members, &mut self.links)?;
            }
        }
        if std::mem::take(&mut self.core.membership.is_changed)
            && let Some(view) = self.core.consensus.membership_view()
        {
            let (bytes, all) = (view.to_bytes(), self.links.peers().collect::<Vec<_>>());
            for peer in all {
                // Who is not connected is told when it is.
                let _ = self.links.send(peer, Content::Members, &bytes, &[]);
            }
            if view.has_removed(own) {
                // Others may still need its answers to learn of it.
                let until_ns = self.core.now.monotonic_ns + REMOVED_LINGERS_NS;
                self.removed.get_or_insert((until_ns, "its own journal says so".to_owned()));
            } else {
                for gone in self.peers.follow(&view.members, &mut self.links)? {
                    self.core.endpoints.forget(gone);
                    let Some(gone) = MemberId::new(gone) else { continue };
                    self.core.histories.forget(gone);
                    self.core.catch_up.gone(gone);
                    self.core.snapshot_transfers.forget(gone);
                    self.core.membership.connected.retain(|other| *other != gone);
                    self.core.membership.refused.remove(&gone.get());
                }
            }
        }
        match self.removed.take() {
            Some((at_ns, reason)) if self.core.now.monotonic_ns >= at_ns => {
                member_files::mark_removed(self.core.stream.layout.root(), &reason)?;
                Err(ClusterError::Removed { member: own.get(), reason })
            }
            waits => {
                self.removed = waits;
                Ok(())
            }
        }
    }

    /// What was asked for from outside.
    fn take_requests(&mut self) -> usize {
        let mut work = 0;
        while let Some(request) = self.shared.requests.pop() {
            work += 1;
            self.core.execute(request);
        }
        work
    }

    fn turn(&mut self, now: Now) -> Result<usize, ClusterError> {
        self.core.now = now;
        if self.core.voting.takes_part()? && !self.core.histories.is_stopping() {
            self.core.consensus.tick(now.monotonic_ns);
        }
        let mut work = self.waiting.len() + self.links.poll(now) + self.take_requests();
        while let Some(event) = self.links.next_event() {
            work += 1;
            self.take_event(event)?;
        }
        let (core, mut outcome, mut answers) = (&mut self.core, Ok(None), Vec::new());
        work += self.links.receive(|received| {
            if outcome.is_ok() {
                outcome = core.receive(&received);
                answers.extend(outcome.as_mut().ok().and_then(Option::take).map(|answer| (received.from, answer)));
            }
        });
        outcome?;
        for (member, answer) in answers {
            let _ = self.links.send(member, Content::History, &answer.to_bytes(), &[]);
        }
        self.core.answer()?;
        self.send()?;
        let is_released = !self.core.ingress.is_following() && self.core.release();
        work += self.core.take_from_publishers(now)?;
        let is_proposed = self.core.propose()?;
        if is_released && !is_proposed {
            // Who handles what was released has its turn first; consensus notes it in the next one.
            return Ok(work);
        }
        self.core.consensus.take_appends(&mut self.core.outbox);
        self.send_waiting()?;
        self.send()?;
        self.core.advance(&[])?;
        self.send()?;
        self.core.keep()?;
        self.core.voting.follow(self.core.consensus.is_behind())?;
        self.core.promote();
        if self.core.membership.has_news() || self.removed.is_some() {
            self.follow_members()?;
        }
        self.core.advance(&[])?;
        self.send()?;
        work += usize::from(self.send_to_lagging()?);
        self.core.catch_up(&mut self.links)?;
        self.core.release();
        self.check_divergence()?;
        self.tell_history()?;
        self.core.ingress.turn_state_writer();
        self.tell_retention_watermark();
        self.core.tell(&self.shared, &self.links);
        Ok(work)
    }
}

/// Whether one entry is all that a message has; it goes whole, however long it is.
fn is_one_entry(message: &Message) -> bool {
    message.get_entries().iter().filter(|entry| !entry.get_data().is_empty()).nth(1).is_none()
}

/// Gives a message to the link, with the frames of its entries; whether that took it.
fn transmit(links: &mut Links, bytes: &mut Vec<u8>, outgoing: &Outgoing, frames: &[u8]) -> bool {
    bytes.clear();
    wire::encode(&outgoing.message, bytes);
    if !frames.is_empty() {
        crash_point("leader_before_sending");
    }
    let sent = links.send(outgoing.to.get(), Content::Consensus, bytes, &[frames]);
    if !frames.is_empty() {
        crash_point("leader_after_sending");
    }
    sent.is_ok()
}

impl Agent for Member {
    fn name(&self) -> &str {
        AgentRole::Member.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        Ok(self.turn(now)?)
    }

    fn arm(&mut self) {
        self.links.arm();
        self.core.ingress.arm();
    }

    fn disarm(&mut self) {
        self.links.disarm();
        self.core.ingress.disarm();
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        self.links.watch(descriptors);
        self.core.ingress.watch(descriptors);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        if !self.waiting.is_empty() {
            return Some(self.core.now.monotonic_ns);
        }
        // Who does not take part yet has no ticks.
        let tick_ns = if self.core.voting.is_new() { u64::MAX } else { self.core.consensus.next_tick_ns() };
        let own = tick_ns.min(self.links.next_deadline_ns());
        // What others that are behind may be sent grows with time.
        let is_awaited = self.core.consensus.has_lagging() || self.core.catch_up.is_asked();
        let own = if is_awaited { own.min(self.core.now.monotonic_ns + LAGGING_AGAIN_NS) } else { own };
        Some(self.core.ingress.next_deadline_ns().map_or(own, |deadline_ns| deadline_ns.min(own)))
    }

    fn on_close(&mut self, now: Now) -> Result<(), AgentError> {
        self.closes_by_ns = Some(now.monotonic_ns + HAND_OVER_NS_MAX);
        self.core.hand_over();
        self.core.ingress.on_close(now)
    }

    fn is_drained(&self) -> bool {
        let is_late = self.closes_by_ns.is_some_and(|by_ns| self.core.now.monotonic_ns >= by_ns);
        is_late || !self.core.is_handing_over()
    }
}
