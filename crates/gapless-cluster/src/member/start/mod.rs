//! [`ClusterMember`]: a member of a replicated event stream, put together from what its directory holds, and run. A start
//! has four steps, each a file:
//!
//! | module | what lives there |
//! |---|---|
//! | `checks` | options that a member cannot run with |
//! | `member_directory` | the directory: taken, of this member, with what a snapshot transfer has left put into place |
//! | `recovered_log` | the journal: opened, cut to what others were told of, and what consensus knew |
//! | `assembly` | the agents, on what was found |
//! | `peer_options` | what consensus and links are configured with |

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
    /// First, so that nobody asks what stops.
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

    /// As [`ClusterMember::start`], with a service on the stream: publishers send commands, and get replies. A witness
    /// runs none (decision 9).
    ///
    /// # Errors
    /// As for [`ClusterMember::start`], and those of the service.
    pub fn start_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), Some(Clock::fastest().0), &MemberEnvironment::default())
    }

    /// As [`ClusterMember::start_with`], and by hand as [`ClusterMember::start_by_hand`].
    ///
    /// # Errors
    /// As for [`ClusterMember::start_with`].
    pub fn start_by_hand_with(config: &ClusterConfig, service: Box<dyn MemberService>) -> Result<Self, ClusterError> {
        start(config, Some(service), None, &MemberEnvironment::default())
    }

    /// As [`ClusterMember::start_by_hand_with`], on another machine than this one.
    ///
    /// # Errors
    /// As for [`ClusterMember::start_with`].
    pub fn start_by_hand_with_in(
        config: &ClusterConfig,
        service: Box<dyn MemberService>,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        start(config, Some(service), None, member_environment)
    }

    /// As [`ClusterMember::start`], without threads for its agents: nothing happens but in [`ClusterMember::turn`], and
    /// the caller says what time it is. For tests and simulations.
    ///
    /// # Errors
    /// As for [`ClusterMember::start`].
    pub fn start_by_hand(config: &ClusterConfig) -> Result<Self, ClusterError> {
        Self::start_by_hand_in(config, &MemberEnvironment::default())
    }

    /// As [`ClusterMember::start_by_hand`], on another machine than this one. The same turns at the same times, over the
    /// same network, then do the same.
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
    /// What an agent cannot go on after.
    pub fn turn(&mut self, now: Now) -> Result<usize, ClusterError> {
        Ok(self.stream.turn(now)?)
    }

    /// Its stream: readers and publishers inside this process, what it counts, why it has failed.
    #[must_use]
    pub const fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// How it stood a few milliseconds ago; `None` before its first poll.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        self.shared.status()
    }

    /// Asks for something, and waits until the agent has said yes or no; `None` if it has not within `timeout`.
    #[must_use]
    pub fn ask(&self, command: AdminCommand, timeout: Duration) -> Option<Outcome> {
        self.shared.ask(command, timeout)
    }

    /// Whether it has stopped, or is about to, because it has fetched the state of another member: to be started again
    /// then, it goes on from there. See [`ClusterError::StartAgain`].
    #[must_use]
    pub fn must_start_again(&self) -> bool {
        is_complete(&self.root)
    }

    /// What others may ask, and look at.
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
    /// What made it stop by itself, before or now.
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
