//! State of a member for users outside its agent, and their requests to it.

use super::MemberRequest;
use super::advertised_endpoints::EndpointsSlot;
use super::requests::{AdminCommand, AdminOutcome};
use crate::consensus::{ConsensusStatus, LogDivergence, MemberId, Members};
use crate::link::LinkStatistics;
use gapless_agent::Waker;
use gapless_stream::member_service::Snapshots;
use gapless_transport::mailbox::Mailbox;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub(super) const STATUS_INTERVAL_NS: u64 = 20_000_000;
const REQUESTS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct MemberStatus {
    pub member: MemberId,
    pub consensus: ConsensusStatus,
    pub members: Members,
    /// Member, whether it is connected, and the counters.
    pub links: Vec<(MemberId, bool, LinkStatistics)>,
    /// Refused at their last connection, with the reason.
    pub refused: Vec<(MemberId, String)>,
    /// On a new member: voters without a message so far; it takes part once it has one from each.
    pub waits_for: Vec<MemberId>,
    /// Last journaled sequence here.
    pub journaled_sequence: u64,
    /// Last sequence visible to readers here.
    pub released_sequence: u64,
    pub sessions: u64,
    /// The leader's messages without room in the window.
    pub dropped_full: u64,
    /// Last sequence to be fetched from a leader's journal.
    pub fetching_to: Option<u64>,
    /// Fetches since the start of frames that the leader's log did not hold.
    pub fetched: u64,
    /// Newest sequence at which it compared the full members' states as leader.
    pub compared_sequence: Option<u64>,
    /// Members with a divergent log, and the place.
    pub divergent: Vec<(MemberId, LogDivergence)>,
    /// Divergent logs since the start.
    pub divergences: u64,
    /// Stream's time minus this machine's clock; `None` while unknown.
    pub time_ahead_ns: Option<i64>,
    /// Term whose time this member continued as leader; 0 if it only had its own clock.
    pub time_from_term: u64,
}

/// Shared by the agent and its users.
pub struct MemberShared {
    status: Mutex<Option<MemberStatus>>,
    pub(super) requests: Mailbox<MemberRequest>,
    waker: Waker,
    snapshots: Arc<OnceLock<Arc<dyn Snapshots>>>,
    endpoints: EndpointsSlot,
    is_taking: AtomicBool,
}

impl MemberShared {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            status: Mutex::new(None),
            requests: Mailbox::new(REQUESTS_MAX),
            waker,
            snapshots: Arc::default(),
            endpoints: EndpointsSlot::default(),
            is_taking: AtomicBool::new(false),
        }
    }

    pub(super) fn set_status(&self, status: MemberStatus) {
        *lock(&self.status) = Some(status);
    }

    /// State of a few milliseconds ago; `None` before the first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        lock(&self.status).clone()
    }

    pub(super) fn endpoints_slot(&self) -> EndpointsSlot {
        Arc::clone(&self.endpoints)
    }

    /// Addresses for clients of each member that has been connected since the start, one a line: with
    /// [`TCP_PREFIX`](gapless_client::polled::TCP_PREFIX), or a socket of its machine.
    #[must_use]
    pub fn endpoints(&self) -> Vec<(u64, String)> {
        lock(&self.endpoints).clone()
    }

    /// Waits for the outcome; `None` after `timeout`.
    #[must_use]
    pub fn ask(&self, command: AdminCommand, timeout: Duration) -> Option<AdminOutcome> {
        self.post(command)?.recv_timeout(timeout).ok()
    }

    pub(super) fn snapshots_slot(&self) -> Arc<OnceLock<Arc<dyn Snapshots>>> {
        Arc::clone(&self.snapshots)
    }

    pub(super) fn snapshots(&self) -> Option<&Arc<dyn Snapshots>> {
        self.snapshots.get()
    }

    /// Takes a snapshot of the service here, and waits until it is on the device; commits continue. The sequencer's
    /// state is written, too, so that retention may delete the frames before both.
    ///
    /// # Errors
    /// No service here, another snapshot in progress, or the failure of this one.
    pub fn snapshot(&self, is_over: &dyn Fn() -> bool) -> Result<u64, String> {
        let snapshots = self.snapshots.get().ok_or_else(|| {
            let is_witness = self.status().is_some_and(|status| status.members.witnesses.contains(&status.member));
            let who = if is_witness { "a witness" } else { "this member" };
            format!("{who} runs no service, of which a snapshot could be taken; ask a member whose program runs one")
        })?;
        // Acquire, with the Release below: the later taker sees the effects of the earlier one.
        if self.is_taking.swap(true, Ordering::Acquire) {
            return Err("another snapshot is being taken; ask again".to_owned());
        }
        let taken = snapshots.take(is_over);
        self.is_taking.store(false, Ordering::Release);
        if taken.is_ok() {
            // If the queue is full, the state is written when it is due.
            let _ = self.post(AdminCommand::KeepState);
        }
        taken
    }

    /// `None` if the queue is full.
    #[must_use]
    pub fn post(&self, command: AdminCommand) -> Option<Receiver<AdminOutcome>> {
        let (answer, outcome) = sync_channel(1);
        self.requests.push(MemberRequest { command, answer }).ok()?;
        self.waker.wake();
        Some(outcome)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panicking holder leaves no half change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
