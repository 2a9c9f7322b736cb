//! [`ServingSide`] and [`CallingSide`]: whom the I/O thread calls.
//!
//! All of it is called on the I/O thread, one call at a time, with no lock held: it may give commands to the thread by its
//! [`IoHandle`](super::IoHandle), but must not sleep, or the deaths of others are noticed late.

use super::directory::CopyId;
use super::packets::{Attach, Hello, Refused, RouteDescription, RouteState};
use super::peer::PeerIdentity;
use gapless_transport::peer_process;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// A connection to a copy, by a number that is never used again in this process and domain: what the copy writes into
/// claims as their holder. From 1 to [`COPY_NUMBER_MAX`](gapless_log::claim::COPY_NUMBER_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyNumber(pub u32);

/// A connection of a caller, by a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerNumber(pub u64);

/// The process at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// The name that it gave itself; nobody has checked it.
    pub name: String,
    /// Its process id, as the operating system says.
    pub process_id: u32,
    /// Its user, as the operating system says.
    pub user_id: u32,
    /// When it came into the domain, ns of the monotonic clock, as it says.
    pub started_ns: u64,
}

impl PeerProcess {
    /// What is known of a process: its own words, and who the operating system says that it is.
    pub(crate) fn new(hello: Hello, identity: PeerIdentity) -> Self {
        let PeerIdentity { process_id, user_id } = identity;
        Self { name: hello.process_name, process_id, user_id, started_ns: hello.started_ns }
    }
}

/// A process that serves in the domain, and of which it is not known what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unheard {
    /// Its process id, as the operating system says, or, where it lets nobody in, as its lock does; `None` where neither says one of
    /// this process namespace.
    pub process_id: Option<u32>,
    /// It lives in another process namespace, as of another container: neither calls the other.
    pub is_of_other_namespace: bool,
    /// The version of the protocol that it speaks, if that is known to be another; `None`: it has not answered yet.
    pub version: Option<u16>,
}

impl Unheard {
    /// One that was asked or is about to be.
    pub(crate) fn asked(process_id: u32, version: Option<u16>) -> Self {
        // Outside of a container its processes have numbers, and see nobody.
        let is_of_other_namespace = peer_process::PeerProcess::numbered(process_id).is_of_other_namespace();
        Self { process_id: Some(process_id), is_of_other_namespace, version }
    }

    /// One that nothing is known of but this.
    pub(crate) const fn unnumbered(is_of_other_namespace: bool) -> Self {
        Self { process_id: None, is_of_other_namespace, version: None }
    }
}

/// The memory of a call table. Nothing of it has been checked.
#[derive(Debug)]
pub struct AttachMemory {
    /// To be mapped for reading only.
    pub request_region: OwnedFd,
    /// Both sides write it.
    pub claim_region: OwnedFd,
    /// Wakes the caller's I/O thread.
    pub completion: OwnedFd,
}

/// What a copy hands the caller for its call table.
#[derive(Debug)]
pub struct AttachAnswer {
    /// The route's bell.
    pub bell: Arc<OwnedFd>,
    /// Wakes the route's tasks.
    pub eventfd: Arc<OwnedFd>,
}

/// What a process that serves does when callers come and go.
pub trait ServingSide: Send + Sync {
    /// A caller brings the call table of a route. An attachment's number is used once for a caller.
    ///
    /// # Errors
    /// Why the call table is not taken; its memory must have been let go.
    fn attach(
        &self,
        caller: CallerNumber,
        process: &Arc<PeerProcess>,
        attach: Attach,
        memory: AttachMemory,
    ) -> Result<AttachAnswer, Refused>;

    /// A caller takes a call table back that was taken with [`attach`](Self::attach): nothing of it may be claimed any more.
    fn detach(&self, caller: CallerNumber, attachment: u64);

    /// A process of this user, or of root, wants a route to have another state, but not [`Gone`](RouteState::Gone). That it has, all callers
    /// are told as ever; what cannot be done, as of a route that is not served, is left.
    fn change(&self, route: &str, to: RouteState);

    /// A caller's connection has ended, which takes back all of its call tables, if it had brought any.
    fn caller_gone(&self, caller: CallerNumber);
}

/// What a process that calls does when copies come and go.
///
/// For each number: `copy_found`, then any others, then `copy_closed`, then `copy_dead`; each of these three once, unless the
/// thread is stopped before.
pub trait CallingSide: Send + Sync {
    /// A process that serves is, or is no longer, one of which it is not known what it serves. What is known of its version stays known
    /// when it is tried again.
    fn unheard(&self, _id: CopyId, _unheard: Option<Unheard>) {}

    /// A copy is connected. Its routes follow.
    fn copy_found(&self, copy: CopyNumber, process: &Arc<PeerProcess>);

    /// A copy has a route, or something of it has changed; its last state is [`Gone`](super::RouteState::Gone).
    fn route_changed(&self, copy: CopyNumber, route: &RouteDescription);

    /// A copy has told all routes that it had when it was found.
    fn copy_listed(&self, copy: CopyNumber);

    /// Every copy that stood in the directory when [`discover`](super::IoHandle::discover) was called has told its routes, or
    /// is no copy, or has let its time pass: what no copy serves now, no copy served then. Called once.
    fn settled(&self);

    /// The copy has taken a call table; these are the route's bell and what wakes its tasks. Not called for what was detached
    /// meanwhile.
    fn attached(&self, copy: CopyNumber, attachment: u64, bell: OwnedFd, eventfd: OwnedFd);

    /// The copy does not take a call table. Not called for what was detached meanwhile.
    fn refused(&self, copy: CopyNumber, attachment: u64, refused: Refused);

    /// The connection has ended, while the process may live: nothing that it claims or answers from now on counts, but it may
    /// still write into the call tables that it has.
    fn copy_closed(&self, copy: CopyNumber);

    /// The process is dead: it writes nothing any more. Only now its slots may be used again.
    fn copy_dead(&self, copy: CopyNumber);

    /// A completion eventfd was written since the last call with its token.
    fn completions(&self, token: u64);

    /// When [`tick`](Self::tick) is to be called next, ns of the monotonic clock. Asked before each sleep: make it earlier
    /// from another thread, then wake this one.
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Called when that time has come.
    fn tick(&self, _now_ns: u64) {}

    /// Called before each sleep, to say in shared memory that a write to the eventfd is needed from now on. False: there is
    /// something to do already, so the thread does not sleep now.
    fn may_sleep(&self) -> bool {
        true
    }

    /// Called after each sleep, to take that back.
    fn woken(&self) {}

    /// The thread ends, whatever the reason: nothing of the above comes any more.
    fn ended(&self) {}
}
