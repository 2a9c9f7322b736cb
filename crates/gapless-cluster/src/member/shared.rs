//! What is known of a member outside of its agent, and what can be asked of it.

use super::MemberRequest;
use super::requests::{AdminCommand, Outcome};
use crate::consensus::{MemberId, Members, Parting, Status};
use crate::link::LinkStatistics;
use gapless_agent::Waker;
use gapless_stream::member_service::Snapshots;
use gapless_transport::mailbox::Mailbox;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The status is renewed so often, ns.
pub(super) const STATUS_INTERVAL_NS: u64 = 20_000_000;
/// Requests that may wait.
const REQUESTS_MAX: usize = 64;

/// How a member stands.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberStatus {
    /// Who it is.
    pub member: MemberId,
    /// How its consensus stands.
    pub consensus: Status,
    /// Who is a member.
    pub members: Members,
    /// To whom it is connected, and what went there.
    pub links: Vec<(MemberId, bool, LinkStatistics)>,
    /// Who was not let in when it last came, and why.
    pub refused: Vec<(MemberId, String)>,
    /// Of a new member: from whom it has not heard yet. It takes part when it has heard from all.
    pub waits_for: Vec<MemberId>,
    /// The last sequence that is journaled here.
    pub journaled_sequence: u64,
    /// The last sequence that readers here see.
    pub released_sequence: u64,
    /// Sessions open.
    pub sessions: u64,
    /// Messages of a leader that found no room here.
    pub dropped_full: u64,
    /// Frames that are being fetched from a leader's journal: up to which sequence.
    pub fetching_to: Option<u64>,
    /// How often this member was too far behind for its leader's log and has fetched what it missed, since the start.
    pub fetched: u64,
    /// The newest sequence behind which the states of the full members were compared here, while this one led.
    pub compared_sequence: Option<u64>,
    /// The members whose logs part from this one's, and where.
    pub parted: Vec<(MemberId, Parting)>,
    /// How often such a log was found, since the start.
    pub partings: u64,
    /// How far the stream's time is ahead of this machine's clock, ns; `None` as long as it is not known.
    pub time_ahead_ns: Option<i64>,
    /// The term of the leader whose time this one went on with when it last began to lead; 0 if it had none but its
    /// clock's.
    pub time_from_term: u64,
}

/// Between the agent and everybody else.
pub struct MemberShared {
    status: Mutex<Option<MemberStatus>>,
    pub(super) requests: Mailbox<MemberRequest>,
    waker: Waker,
    /// Of a member that runs a service.
    snapshots: Arc<OnceLock<Arc<dyn Snapshots>>>,
    /// One at a time is taken for who asks from outside.
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

    pub(super) fn tell(&self, status: MemberStatus) {
        *lock(&self.status) = Some(status);
    }

    /// How it stood a few milliseconds ago; `None` before its first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        lock(&self.status).clone()
    }

    /// Asks for something, and waits until the agent has said yes or no; `None` if it has not within `timeout`.
    #[must_use]
    pub fn ask(&self, command: AdminCommand, timeout: Duration) -> Option<Outcome> {
        self.post(command)?.recv_timeout(timeout).ok()
    }

    /// Where the service's agent puts its snapshots, once.
    pub(super) fn snapshots_slot(&self) -> Arc<OnceLock<Arc<dyn Snapshots>>> {
        Arc::clone(&self.snapshots)
    }

    pub(super) fn snapshots(&self) -> Option<&Arc<dyn Snapshots>> {
        self.snapshots.get()
    }

    /// Takes a snapshot of the service that runs here, and waits until it is on the device. The sequencer's state is
    /// written, too, so that the journal before both may go as far as its settings say. Commits go on meanwhile.
    ///
    /// # Errors
    /// A witness or another member without a service, another snapshot that is being taken, or why it cannot be.
    pub fn snapshot(&self, is_over: &dyn Fn() -> bool) -> Result<u64, String> {
        let snapshots = self.snapshots.get().ok_or_else(|| {
            let is_witness = self.status().is_some_and(|status| status.members.witnesses.contains(&status.member));
            let who = if is_witness { "a witness" } else { "this member" };
            format!("{who} runs no service, of which a snapshot could be taken; ask a member whose program runs one")
        })?;
        // Acquire and release: one taker is behind the other.
        if self.is_taking.swap(true, Ordering::Acquire) {
            return Err("another snapshot is being taken; ask again".to_owned());
        }
        let taken = snapshots.take(is_over);
        self.is_taking.store(false, Ordering::Release);
        if taken.is_ok() {
            // Too much is asked for already: the state is written when it is due.
            let _ = self.post(AdminCommand::KeepState);
        }
        taken
    }

    /// Asks for something; `None` if too much was asked for already.
    #[must_use]
    pub fn post(&self, command: AdminCommand) -> Option<Receiver<Outcome>> {
        let (answer, outcome) = sync_channel(1);
        self.requests.push(MemberRequest { command, answer }).ok()?;
        self.waker.wake();
        Some(outcome)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder leaves it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
