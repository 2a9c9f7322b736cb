//! [`ClusterMember`]: a member of a replicated event stream, assembled from what its directory holds, and running. A
//! start has four steps, each a file:
//!
//! | module | what lives there |
//! |---|---|
//! | `checks` | options that a member cannot run with |
//! | `member_directory` | the directory: locked, checked, with a completed snapshot transfer installed |
//! | `recovered_log` | the journal: opened, cut to what other members know, and the state of consensus |
//! | `assembly` | the agents, with what was found |
//! | `peer_options` | the options of consensus and links |

mod assembly;
mod checks;
mod member_directory;
mod peer_options;
mod recovered_log;

pub(super) use member_directory::{member_id, stream_id};
pub(super) use recovered_log::{newest_readable, recover};

use super::control::ControlThread;
use super::member_environment::MemberEnvironment;
use super::requests::{AdminCommand, Outcome};
use super::shared::{MemberShared, MemberStatus};
use super::snapshot_transfer::is_complete;
use crate::ClusterError;
use crate::config::{ClusterConfig, MemberKind};
use assembly::Assembly;
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
    /// Dropped first, so that no request reaches a member that stops.
    _control: Option<ControlThread>,
    stream: EventStream,
    shared: Arc<MemberShared>,
    root: PathBuf,
}

impl ClusterMember {
    /// Recovers what the member's directory holds, and starts it: from then on it votes, follows or leads.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use or of something else, damage, no threads, no port.
    pub fn start(config: &ClusterConfig) -> Result<Self, ClusterError> {
        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        start(config, None, Some(clock), &MemberEnvironment::default())
    }

    /// Like [`ClusterMember::start`], with a service on the stream: publishers send commands, and get replies. A
    /// witness runs none (decision 9).
    ///
    /// # Errors
    /// As for [`ClusterMember::start`], and those of the service.
    #[doc(hidden)] // `Replica` is the application's way.
    pub fn start_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), Some(Clock::fastest().0), &MemberEnvironment::default())
    }

    /// Like [`ClusterMember::start_with`], polled by hand like [`ClusterMember::start_by_hand`].
    ///
    /// # Errors
    /// As for [`ClusterMember::start_with`].
    #[doc(hidden)] // `Replica` is the application's way.
    pub fn start_by_hand_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), None, &MemberEnvironment::default())
    }

    /// Like [`ClusterMember::start_by_hand_with`], on another machine than this one.
    ///
    /// # Errors
    /// As for [`ClusterMember::start_with`].
    #[doc(hidden)] // `Replica` is the application's way.
    pub fn start_by_hand_with_in(
        config: &ClusterConfig,
        service: Box<dyn MemberService>,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        start(config, Some(service), None, member_environment)
    }

    /// Like [`ClusterMember::start`], without threads for its agents: work is only done in [`ClusterMember::turn`], and
    /// the caller passes the time. For tests and simulations.
    ///
    /// # Errors
    /// As for [`ClusterMember::start`].
    pub fn start_by_hand(config: &ClusterConfig) -> Result<Self, ClusterError> {
        Self::start_by_hand_in(config, &MemberEnvironment::default())
    }

    /// Like [`ClusterMember::start_by_hand`], on another machine than this one. The same turns at the same times, over
    /// the same network, then have the same result.
    ///
    /// # Errors
    /// As for [`ClusterMember::start`].
    pub fn start_by_hand_in(
        config: &ClusterConfig,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        start(config, None, None, member_environment)
    }

    /// Polls every agent once, in a member that was started by hand. Returns the work done.
    ///
    /// # Errors
    /// An error after which an agent cannot continue.
    pub fn turn(&mut self, now: Now) -> Result<usize, ClusterError> {
        Ok(self.stream.turn(now)?)
    }

    /// Its stream: readers and publishers inside this process, its counters, and the reason of its failure.
    #[must_use]
    pub const fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// The state of a few milliseconds ago; `None` before the first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        self.shared.status()
    }

    /// Makes a request, and waits until the agent has answered; `None` if it has not within `timeout`.
    #[must_use]
    pub fn ask(&self, command: AdminCommand, timeout: Duration) -> Option<Outcome> {
        self.shared.ask(command, timeout)
    }

    /// Whether it has stopped, or is about to, because it has fetched the state of another member: started again, it
    /// continues from there. See [`ClusterError::StartAgain`].
    #[must_use]
    pub fn must_start_again(&self) -> bool {
        is_complete(&self.root)
    }

    /// The status and the requests, for other threads.
    #[must_use]
    pub fn shared(&self) -> Arc<MemberShared> {
        Arc::clone(&self.shared)
    }

    /// Ends a member that was started by hand as if its process had died.
    pub fn abandon(self) {
        self.stream.abandon();
    }

    /// Stops it: a leader hands over first. Returns the last sequence that was released here.
    ///
    /// # Errors
    /// The error that made it stop by itself, before or now.
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
    let (stream, shared) = Assembly { config, options: &options, member_environment, has_threads }.start(
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
