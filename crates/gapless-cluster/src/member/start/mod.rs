//! [`ClusterMember`]: a running member of a replicated event stream, assembled from the content of its directory.

mod assembly;
mod checks;
mod member_directory;
mod peer_options;
mod recovered_log;

pub(super) use member_directory::{member_id, stream_id};
pub(super) use recovered_log::{newest_readable, recover};

use super::control::ControlThread;
use super::member_environment::MemberEnvironment;
use super::requests::{AdminCommand, AdminOutcome};
use super::shared::{MemberShared, MemberStatus};
use super::snapshot_transfer::is_complete;
use crate::ClusterError;
use crate::config::{ClusterConfig, MemberKind};
use assembly::MemberAssembly;
use gapless_agent::{Clock, Now};
use gapless_stream::event_stream::EventStream;
use gapless_stream::member_service::MemberService;
use member_directory::MemberDirectory;
use recovered_log::RecoveredLog;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A running member.
pub struct ClusterMember {
    /// Dropped first, so that no request reaches a stopping member.
    _control: Option<ControlThread>,
    stream: EventStream,
    shared: Arc<MemberShared>,
    root: PathBuf,
}

impl ClusterMember {
    /// Starts the member, which from then on votes, follows or leads.
    ///
    /// # Errors
    /// Invalid options, a directory in use or of something else, damage, no threads, no port.
    pub fn start(config: &ClusterConfig) -> Result<Self, ClusterError> {
        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        start(config, None, Some(clock), &MemberEnvironment::default())
    }

    /// Starts with a service: publishers send commands, and get replies. A witness runs none (decision 9).
    ///
    /// # Errors
    /// As [`ClusterMember::start`], and those of the service.
    #[doc(hidden)] // `Replica` is the application's way.
    pub fn start_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), Some(Clock::fastest().0), &MemberEnvironment::default())
    }

    /// [`ClusterMember::start_by_hand`] with a service.
    ///
    /// # Errors
    /// See [`ClusterMember::start_with`].
    #[doc(hidden)] // `Replica` is the application's way.
    pub fn start_by_hand_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), None, &MemberEnvironment::default())
    }

    /// [`ClusterMember::start_by_hand_in`] with a service.
    ///
    /// # Errors
    /// See [`ClusterMember::start_with`].
    #[doc(hidden)] // `Replica` is the application's way.
    pub fn start_by_hand_with_in(
        config: &ClusterConfig,
        service: Box<dyn MemberService>,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        start(config, Some(service), None, member_environment)
    }

    /// Starts without agent threads: only [`ClusterMember::turn`] works, at the caller's time. For tests and
    /// simulations.
    ///
    /// # Errors
    /// See [`ClusterMember::start`].
    pub fn start_by_hand(config: &ClusterConfig) -> Result<Self, ClusterError> {
        Self::start_by_hand_in(config, &MemberEnvironment::default())
    }

    /// Like [`ClusterMember::start_by_hand`] in another environment: the same turns at the same time over the same
    /// network have the same result.
    ///
    /// # Errors
    /// See [`ClusterMember::start`].
    pub fn start_by_hand_in(
        config: &ClusterConfig,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        start(config, None, None, member_environment)
    }

    /// Polls every agent once; returns the work done.
    ///
    /// # Errors
    /// An error after which an agent cannot continue.
    pub fn turn(&mut self, now: Now) -> Result<usize, ClusterError> {
        Ok(self.stream.turn(now)?)
    }

    /// Stream with this process's readers and publishers, its counters, and the reason of its failure.
    #[must_use]
    pub const fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// State of a few milliseconds ago; `None` before the first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        self.shared.status()
    }

    /// Waits for the outcome; `None` after `timeout`.
    #[must_use]
    pub fn ask(&self, command: AdminCommand, timeout: Duration) -> Option<AdminOutcome> {
        self.shared.ask(command, timeout)
    }

    /// Stopped, or about to, because it fetched another member's state: a new start continues from there. See
    /// [`ClusterError::StartAgain`].
    #[must_use]
    pub fn must_start_again(&self) -> bool {
        is_complete(&self.root)
    }

    /// Status and requests for other threads.
    #[must_use]
    pub fn shared(&self) -> Arc<MemberShared> {
        Arc::clone(&self.shared)
    }

    /// Ends a member started by hand as if its process had died.
    pub fn abandon(self) {
        self.stream.abandon();
    }

    /// Stops; a leader hands over first. Returns the last released sequence here.
    ///
    /// # Errors
    /// The error of an earlier stop, or of this one.
    pub fn stop(self) -> Result<u64, ClusterError> {
        Ok(self.stream.stop()?)
    }
}

fn start(
    config: &ClusterConfig,
    service: Option<Box<dyn MemberService>>,
    clock: Option<Clock>,
    member_environment: &MemberEnvironment,
) -> Result<ClusterMember, ClusterError> {
    let service = service.filter(|_| config.own().kind != MemberKind::Witness);
    let options = config.event_stream_options();
    checks::check(config, &options, service.is_some(), member_environment)?;
    let tls = peer_options::tls(config)?;
    let member_directory = MemberDirectory::take(config, &options, service.is_some(), member_environment)?;
    let log = RecoveredLog::open(config, &options, service.as_deref(), &member_directory, member_environment)?;
    let root = member_directory.layout.root().to_owned();
    let has_threads = clock.is_some();
    let (stream, shared) = MemberAssembly { config, options: &options, member_environment, has_threads }.start(
        member_directory,
        log,
        service,
        tls,
        clock,
    )?;
    let control = || ControlThread::start(&root, &config.name, options.tier, Arc::clone(&shared));
    let control = has_threads.then(control).transpose()?;
    Ok(ClusterMember { _control: control, stream, shared, root })
}
