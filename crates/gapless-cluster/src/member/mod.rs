//! [`Member`]: the agent of a cluster's member. Everything between a frame's arrival and its release happens here, in
//! one place and in one order (decision 24):
//!
//! 1. messages of other members are processed: a leader's frames go into the window, and an answer to this leader may
//!    release frames;
//! 2. frames of publishers are appended, if this member leads;
//! 3. appended frames are proposed;
//! 4. messages are sent, the leader's with the frames in the same write, before anything is journaled here;
//! 5. frames and records are journaled, and consensus is notified;
//! 6. frames on a quorum are released.

mod advertised_endpoints;
mod ballot;
mod catch_up;
pub mod control;
pub mod core;
mod frame_fetch;
mod journal_readers;
pub(crate) mod journal_sync;
mod lagging_appends;
pub mod member_check;
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
mod waits;

pub use member_environment::MemberEnvironment;
pub use requests::MemberRequest;
pub use shared::MemberStatus;
pub use start::ClusterMember;

use self::core::MemberCore;
use crate::ClusterError;
use crate::consensus::{MemberId, Message, OutgoingMessage, wire};
use crate::link::wire::{LinkRefusal, LinkRefusalCode};
use crate::link::{DisconnectReason, LinkEvent, Links, MessageContent};
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Now};
use gapless_stream::AgentRole;
use lagging_appends::LaggingAppends;
use peers::Peers;
use requests::{AdminCommand, AdminOutcome, MembershipChangeError};
use rustix::fd::BorrowedFd;
use shared::MemberShared;
use std::sync::Arc;
use waits::MemberWaits;

/// Entries whose frames do not fit are sent with the next message.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
const LAGGING_AGAIN_NS: u64 = 200_000;
const HAND_OVER_NS_MAX: u64 = 2_000_000_000;
const REMOVED_LINGERS_NS: u64 = 2_000_000_000;

pub struct Member {
    core: MemberCore,
    links: Links,
    peers: Peers,
    removed: Option<(u64, String)>,
    shared: Arc<MemberShared>,
    /// Appends with only the commit index; they wait for the next turn.
    waiting: Vec<OutgoingMessage>,
    lagging: LaggingAppends,
    message_bytes_max: usize,
    bytes: Vec<u8>,
    closes_by_ns: Option<u64>,
    waits: MemberWaits,
}

impl Member {
    fn new(core: MemberCore, links: Links, peers: Peers, shared: Arc<MemberShared>, message_bytes_max: usize) -> Self {
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
            waits: MemberWaits::default(),
        }
    }

    /// An append with only the commit index waits for the next turn: the reply to the publisher leaves first, and often
    /// an append with entries carries the index, too.
    fn send(&mut self) -> Result<(), ClusterError> {
        if self.core.outbox.is_empty() {
            return Ok(());
        }
        // The time is sent before the frames that a new leader appends.
        self.send_time();
        let mut outbox = std::mem::take(&mut self.core.outbox);
        for outgoing in outbox.drain(..) {
            if outgoing.is_commit_only() {
                self.waiting.push(outgoing);
            } else {
                self.send_one(outgoing)?;
            }
        }
        self.core.outbox = outbox;
        Ok(())
    }

    fn send_waiting(&mut self) -> Result<(), ClusterError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for outgoing in waiting.drain(..) {
            let says_so =
                |other: &OutgoingMessage| other.to == outgoing.to && other.is_append() && !other.is_commit_only();
            if !self.core.outbox.iter().any(says_so) {
                self.send_one(outgoing)?;
            }
        }
        self.waiting = waiting;
        Ok(())
    }

    fn send_one(&mut self, outgoing: OutgoingMessage) -> Result<(), ClusterError> {
        let to = outgoing.to;
        let frames = match outgoing.frames {
            None => &[][..],
            Some((first, last)) => match self.core.ingress.frames(first, last) {
                Some(found) if found.len() <= self.message_bytes_max || is_one_entry(&outgoing.message) => found,
                _ => {
                    self.mark_lagging();
                    self.core.consensus.unreachable(to);
                    return Ok(());
                }
            },
        };
        if !transmit(&mut self.links, &mut self.bytes, &outgoing, frames) {
            // Entries that were not sent are resent from the member's present position.
            self.core.consensus.unreachable(to);
        }
        Ok(())
    }

    fn take_event(&mut self, event: LinkEvent) -> Result<(), ClusterError> {
        match event {
            LinkEvent::Connected(member) => {
                tracing::info!(member, "a member is connected");
                self.core.membership.refused.remove(&member);
                self.waits.peer_connected(member);
                self.core.membership.connected.extend(MemberId::new(member));
                self.core.divergence.peer_connected(member);
                self.send_history_to(member);
                self.peers.note_instance(member, &mut self.links)?;
                // Here and below, sending fails only without a connection.
                let _ = self.links.send(member, MessageContent::Endpoints, self.core.endpoints.own(), &[]);
                self.send_time_to(member);
                if let Some(view) = self.core.consensus.membership_view() {
                    let _ = self.links.send(member, MessageContent::Members, &view.to_bytes(), &[]);
                }
                if let Some(member) = MemberId::new(member) {
                    self.core.consensus.peer_connected(member);
                }
            }
            LinkEvent::Disconnected(member, reason) => {
                tracing::info!(member, %reason, "a member is gone");
                if let Some(member) = MemberId::new(member) {
                    self.core.consensus.peer_disconnected(member);
                    self.core.catch_up.peer_disconnected(member);
                    self.core.readers.forget(member);
                    self.core.snapshot_transfers.peer_disconnected(member);
                    self.core.membership.connected.retain(|other| *other != member);
                }
                if !self.links.is_peer(member) {
                    self.core.endpoints.forget(member);
                }
                if let DisconnectReason::Refused(refusal) = reason {
                    self.take_refusal(member, &refusal)?;
                }
            }
            LinkEvent::Refused(member, refusal) => {
                self.waits.log_refusal(member, &refusal, self.core.now.monotonic_ns);
                self.take_refusal(member, &refusal)?;
            }
            LinkEvent::NotWanted(member, refusal) => {
                tracing::warn!(member, %refusal, "a member is refused");
                self.core.membership.refused.insert(member, refusal.to_string());
            }
        }
        Ok(())
    }

    fn take_refusal(&mut self, by: u64, refusal: &LinkRefusal) -> Result<(), ClusterError> {
        match refusal.code {
            LinkRefusalCode::Removed => self.removed = Some((0, refusal.text.clone())),
            // The log may have grown since this state was sent.
            LinkRefusalCode::LostAcknowledged if self.core.log_state() != self.links.reported_log(by) => {}
            LinkRefusalCode::OtherDirectory | LinkRefusalCode::LostAcknowledged => {
                let (member, reason) = (self.core.member.get(), refusal.to_string());
                return Err(ClusterError::NotTheSame { member, by, reason });
            }
            _ => {}
        }
        Ok(())
    }

    /// Updates the links to the members, and notifies every connected member that may know less, including removed
    /// ones.
    fn follow_members(&mut self) -> Result<(), ClusterError> {
        let own = self.core.member;
        if let Some(view) = self.core.membership.received_view.take() {
            if view.has_removed(own) {
                self.removed = Some((0, "another member says so".to_owned()));
            } else {
                self.peers.add_missing_links(&view.members, &mut self.links)?;
            }
        }
        if std::mem::take(&mut self.core.membership.is_changed)
            && let Some(view) = self.core.consensus.membership_view()
        {
            let (bytes, all) = (view.to_bytes(), self.links.peers().collect::<Vec<_>>());
            for peer in all {
                // A member that is not connected is notified when it connects.
                let _ = self.links.send(peer, MessageContent::Members, &bytes, &[]);
            }
            if view.has_removed(own) {
                // Others may need this member's answers to learn of the removal.
                let until_ns = self.core.now.monotonic_ns + REMOVED_LINGERS_NS;
                self.removed.get_or_insert((until_ns, "its own journal says so".to_owned()));
            } else {
                for gone in self.peers.follow(&view.members, &mut self.links)? {
                    self.core.endpoints.forget(gone);
                    let Some(gone) = MemberId::new(gone) else { continue };
                    self.core.histories.forget(gone);
                    self.core.catch_up.peer_disconnected(gone);
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

    fn take_requests(&mut self) -> usize {
        let mut work = 0;
        while let Some(request) = self.shared.requests.pop() {
            work += 1;
            match self.refusal(&request) {
                Some(reason) => drop(request.answer.send(AdminOutcome::NotChanged(reason))),
                None => self.core.execute(request),
            }
        }
        work
    }

    /// Returns a refusal that only the links can decide: at the address of the new member another member is reached.
    fn refusal(&self, request: &MemberRequest) -> Option<MembershipChangeError> {
        let AdminCommand::Add(new) = &request.command else { return None };
        let (owner, address) = self.peers.owner_of(&new.addresses, self.core.consensus.members())?;
        (new.replaces != Some(owner))
            .then(|| MembershipChangeError::AddressTaken { address: address.to_owned(), owner })
    }

    fn turn(&mut self, now: Now) -> Result<usize, ClusterError> {
        self.core.now = now;
        if self.core.voting.participate_if_ready()? && !self.core.histories.is_stopping() {
            self.core.consensus.tick(now.monotonic_ns);
        }
        let mut work = self.waiting.len() + self.links.poll(now) + self.take_requests();
        while let Some(event) = self.links.next_event() {
            work += 1;
            self.take_event(event)?;
        }
        let (core, mut outcome, mut answers) = (&mut self.core, Ok(None), Vec::new());
        self.links.receive(|received| {
            // No message follows a heartbeat soon, so the thread need not stay awake.
            let is_heartbeat = received.content == MessageContent::Consensus && wire::is_heartbeat(received.consensus);
            work += usize::from(!is_heartbeat);
            if outcome.is_ok() {
                outcome = core.receive(&received);
                answers.extend(outcome.as_mut().ok().and_then(Option::take).map(|answer| (received.from, answer)));
            }
        });
        outcome?;
        for (member, answer) in answers {
            let _ = self.links.send(member, MessageContent::History, &answer.to_bytes(), &[]);
        }
        self.core.answer()?;
        self.send()?;
        let is_released = !self.core.ingress.is_following() && self.core.release();
        work += self.core.take_from_publishers(now)?;
        let is_proposed = self.core.propose()?;
        if is_released && !is_proposed {
            // Readers of released frames run first; consensus notes the release in the next turn.
            return Ok(work);
        }
        self.core.consensus.take_appends(&mut self.core.outbox);
        self.send_waiting()?;
        self.send()?;
        self.core.advance(&[])?;
        self.send()?;
        self.core.journal_frames()?;
        self.core.voting.note_rejoining(self.core.consensus.is_rejoining())?;
        self.core.promote();
        if self.core.membership.has_updates() || self.removed.is_some() {
            self.follow_members()?;
        }
        self.core.advance(&[])?;
        self.send()?;
        work += usize::from(self.send_to_lagging());
        self.core.catch_up(&mut self.links)?;
        self.core.release();
        self.check_divergence()?;
        self.send_histories()?;
        self.core.ingress.turn_state_writer();
        self.send_retention_watermark();
        self.core.publish_status(&self.shared, &self.links);
        self.waits.log_no_leader(&self.core, now.monotonic_ns);
        Ok(work)
    }
}

/// One entry is sent whole, however long.
fn is_one_entry(message: &Message) -> bool {
    message.get_entries().iter().filter(|entry| !entry.get_data().is_empty()).nth(1).is_none()
}

fn transmit(links: &mut Links, bytes: &mut Vec<u8>, outgoing: &OutgoingMessage, frames: &[u8]) -> bool {
    bytes.clear();
    wire::encode(&outgoing.message, bytes);
    if !frames.is_empty() {
        crash_point("leader_before_sending");
    }
    let sent = links.send(outgoing.to.get(), MessageContent::Consensus, bytes, &[frames]);
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
        let tick_ns = if self.core.voting.is_new() { u64::MAX } else { self.core.consensus.next_tick_ns() };
        let own = tick_ns.min(self.links.next_deadline_ns());
        // The budget for catching up grows with time.
        let is_awaited = self.core.consensus.has_lagging() || self.core.catch_up.has_requests();
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
