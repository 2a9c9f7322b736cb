//! State of a member for users outside its agent, and their requests to it.

use super::MemberRequest;
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

/// Interval at which the status is updated, ns.
pub(super) const STATUS_INTERVAL_NS: u64 = 20_000_000;
/// Largest number of queued requests.
const REQUESTS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct MemberStatus {
    pub member: MemberId,
    pub consensus: ConsensusStatus,
    pub members: Members,
    /// Members that it has a link to, whether each is connected, and the counters of the link.
    pub links: Vec<(MemberId, bool, LinkStatistics)>,
    /// Members that were refused at their last connection, with the reason.
    pub refused: Vec<(MemberId, String)>,
    /// On a new member: the voters from which it has not received a message yet. It takes part once it has received one
    /// from each.
    pub waits_for: Vec<MemberId>,
    /// Last sequence that is journaled here.
    pub journaled_sequence: u64,
    /// Last sequence that readers here see.
    pub released_sequence: u64,
    pub sessions: u64,
    /// Messages of a leader for which the window had no room.
    pub dropped_full: u64,
    /// Sequence up to which frames are being fetched from a leader's journal.
    pub fetching_to: Option<u64>,
    /// Number of fetches, since the start, of frames that the leader's log did not hold.
    pub fetched: u64,
    /// Newest sequence at which the states of the full members were compared here, while this member led.
    pub compared_sequence: Option<u64>,
    /// Members whose logs diverge from this one's, with the place.
    pub divergent: Vec<(MemberId, LogDivergence)>,
    /// Number of such logs found since the start.
    pub divergences: u64,
    /// Offset of the stream's time from this machine's clock, ns; `None` while it is not known.
    pub time_ahead_ns: Option<i64>,
    /// Term of the leader whose time this member continued when it last began to lead; 0 if it only had its own clock.
    pub time_from_term: u64,
}

/// State shared by the agent and its users.
pub struct MemberShared {
    status: Mutex<Option<MemberStatus>>,
    pub(super) requests: Mailbox<MemberRequest>,
    waker: Waker,
    /// Set on a member that runs a service.
    snapshots: Arc<OnceLock<Arc<dyn Snapshots>>>,
    /// Whether a snapshot is being taken on request; only one at a time.
    is_taking: AtomicBool,
}

impl MemberShared {
    pub(super) fn new(waker: Waker) -> Self {
        Self {
            status: Mutex::new(None),
            requests: Mailbox::new(REQUESTS_MAX),
            waker,
            snapshots: Arc::default(),
            is_taking: AtomicBool::new(false),
        }
    }

    pub(super) fn set_status(&self, status: MemberStatus) {
        *lock(&self.status) = Some(status);
    }

    /// Returns the state of a few milliseconds ago; `None` before the first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        lock(&self.status).clone()
    }

    /// Makes a request, and waits for the answer; `None` after `timeout`.
    #[must_use]
    pub fn ask(&self, command: AdminCommand, timeout: Duration) -> Option<AdminOutcome> {
        self.post(command)?.recv_timeout(timeout).ok()
    }

    /// Returns the slot into which the service's agent puts its snapshots, once.
    pub(super) fn snapshots_slot(&self) -> Arc<OnceLock<Arc<dyn Snapshots>>> {
        Arc::clone(&self.snapshots)
    }

    pub(super) fn snapshots(&self) -> Option<&Arc<dyn Snapshots>> {
        self.snapshots.get()
    }

    /// Takes a snapshot of the service that runs here, and waits until it is on the device. The sequencer's state is
    /// written, too, so that retention may delete the frames before both, as far as its settings allow. Commits
    /// continue meanwhile.
    ///
    /// # Errors
    /// A witness or another member without a service, another snapshot that is being taken, or the reason for which
    /// this one fails.
    pub fn snapshot(&self, is_over: &dyn Fn() -> bool) -> Result<u64, String> {
        let snapshots = self.snapshots.get().ok_or_else(|| {
            let is_witness = self.status().is_some_and(|status| status.members.witnesses.contains(&status.member));
            let who = if is_witness { "a witness" } else { "this member" };
            format!("{who} runs no service, of which a snapshot could be taken; ask a member whose program runs one")
        })?;
        // Acquire and release: two takers exclude each other, and the later one sees the effects of the earlier one.
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

    /// Makes a request; `None` if the queue is full.
    #[must_use]
    pub fn post(&self, command: AdminCommand) -> Option<Receiver<AdminOutcome>> {
        let (answer, outcome) = sync_channel(1);
        self.requests.push(MemberRequest { command, answer }).ok()?;
        self.waker.wake();
        Some(outcome)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A holder that panics does not leave it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
