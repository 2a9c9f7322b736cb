//! Callbacks of the I/O thread: called one at a time, with no lock held. They may send commands by its
//! [`IoHandle`](super::IoHandle), but must not sleep, or deaths are noticed late.

use super::directory::InstanceId;
use super::packets::{Attach, AttachRefusal, Hello, RouteDescription, RouteState};
use super::peer::PeerIdentity;
use gapless_transport::peer_process;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// Number of a connection to an instance, the holder in its claims; never used again in this process and domain. From 1
/// to [`INSTANCE_NUMBER_MAX`](gapless_log::claim::INSTANCE_NUMBER_MAX).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceNumber(pub u32);

/// Number of a caller's connection, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerNumber(pub u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// Name from its hello, not verified.
    pub name: String,
    /// Process id from the operating system.
    pub process_id: u32,
    /// User from the operating system.
    pub user_id: u32,
    /// Time at which it entered the domain, as it says, ns of the monotonic clock.
    pub started_ns: u64,
}

impl PeerProcess {
    pub(crate) fn new(hello: Hello, identity: PeerIdentity) -> Self {
        let PeerIdentity { process_id, user_id } = identity;
        Self { name: hello.process_name, process_id, user_id, started_ns: hello.started_ns }
    }
}

/// A serving process whose routes are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownServer {
    /// Process id from the operating system or its lock; `None` if neither gives one of this process namespace.
    pub process_id: Option<u32>,
    /// The process lives in another namespace, as of another container: neither calls the other.
    pub is_of_other_namespace: bool,
    /// Version of its protocol, if known to differ.
    pub version: Option<u16>,
}

impl UnknownServer {
    pub(crate) fn asked(process_id: u32, version: Option<u16>) -> Self {
        // From outside a container, its processes have ids here, but cannot see this process.
        let is_of_other_namespace = peer_process::PeerProcess::numbered(process_id).is_of_other_namespace();
        Self { process_id: Some(process_id), is_of_other_namespace, version }
    }

    pub(crate) const fn unnumbered(is_of_other_namespace: bool) -> Self {
        Self { process_id: None, is_of_other_namespace, version: None }
    }
}

/// Memory of a call table, not validated.
#[derive(Debug)]
pub struct AttachMemory {
    /// Mapped read-only.
    pub request_region: OwnedFd,
    /// Written by both sides.
    pub claim_region: OwnedFd,
    /// Wakes the caller's I/O thread.
    pub completion: OwnedFd,
}

/// Descriptors that an instance returns for a call table.
#[derive(Debug)]
pub struct AttachAnswer {
    /// Doorbell of the route.
    pub bell: Arc<OwnedFd>,
    pub eventfd: Arc<OwnedFd>,
}

/// Callbacks of a serving process for its callers.
pub trait ServingSide: Send + Sync {
    /// A caller attaches a call table for a route; it uses the number of an attachment once.
    ///
    /// # Errors
    /// The reason to refuse the call table. Its memory must have been unmapped.
    fn attach(
        &self,
        caller: CallerNumber,
        process: &Arc<PeerProcess>,
        attach: Attach,
        memory: AttachMemory,
    ) -> Result<AttachAnswer, AttachRefusal>;

    /// A call table accepted by [`attach`](Self::attach) is detached; nothing of it may be claimed any more.
    fn detach(&self, caller: CallerNumber, attachment: u64);

    /// A process of this user, or of root, requests another state of a route, never [`Gone`](RouteState::Gone). An
    /// impossible request is ignored.
    fn change(&self, route: &str, to: RouteState);

    /// A caller's connection has ended, which detaches all of its call tables.
    fn caller_gone(&self, caller: CallerNumber);
}

/// Callbacks of a calling process. Order for each number: `instance_found`, then any others, then `instance_closed`,
/// then `instance_dead`; these three once each, unless the thread is stopped before.
pub trait CallingSide: Send + Sync {
    /// The routes of a serving process are unknown, or no longer (`None`). A known version is kept through retries.
    fn unknown_server(&self, _id: InstanceId, _unknown_server: Option<UnknownServer>) {}

    /// An instance is connected; its routes follow.
    fn instance_found(&self, instance: InstanceNumber, process: &Arc<PeerProcess>);

    /// A route of an instance is new or has changed; its last state is [`Gone`](super::RouteState::Gone).
    fn route_changed(&self, instance: InstanceNumber, route: &RouteDescription);

    /// An instance has listed all routes that it had when it was found.
    fn instance_listed(&self, instance: InstanceNumber);

    /// Called once: every instance in the directory at [`discover`](super::IoHandle::discover) has listed its routes,
    /// is invalid, or has timed out. A route that no instance serves now was served by none then.
    fn settled(&self);

    /// The instance has accepted a call table, with the route's doorbell and the eventfd for its tasks. Not called
    /// after a detach.
    fn attached(&self, instance: InstanceNumber, attachment: u64, bell: OwnedFd, eventfd: OwnedFd);

    /// The instance refuses the call table. Not called after a detach.
    fn refused(&self, instance: InstanceNumber, attachment: u64, refused: AttachRefusal);

    /// The connection has ended; a process that lives may still write into its call tables, but its claims and answers
    /// do not count.
    fn instance_closed(&self, instance: InstanceNumber);

    /// The process is dead: only now its slots may be reused.
    fn instance_dead(&self, instance: InstanceNumber);

    /// A completion eventfd was written since the last call.
    fn completions(&self, token: u64);

    /// Time of the next [`tick`](Self::tick), ns of the monotonic clock. Read before each sleep; to make it earlier
    /// from another thread, wake this one.
    fn next_deadline_ns(&self) -> Option<u64> {
        None
    }

    /// Called when that time has come.
    fn tick(&self, _now_ns: u64) {}

    /// Called before each sleep, to request a write to the eventfd in shared memory. False if there is work already.
    fn may_sleep(&self) -> bool {
        true
    }

    /// Called after each sleep, to withdraw that request.
    fn woken(&self) {}

    /// The thread ends; no other callback follows.
    fn ended(&self) {}
}
