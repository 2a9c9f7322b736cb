//! [`HostOptions`]: options of a host. A place that lacks an option refuses it.

use crate::HostError;
use crate::place::Place;
use gapless_engine::store::StoreLimits;
use gapless_engine::{Persistence, Policy, ServiceHostOptions, StreamServiceOptions, Threads};
#[cfg(feature = "cluster")]
use gapless_engine::{ReplicaOptions, StateOptions};
use gapless_transport::Tier;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    Service,
    State,
    #[cfg(feature = "cqrs")]
    Aggregates,
}

/// `None`: the default of the place.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostOptions {
    pub tier: Option<Tier>,
    pub manual_time: bool,
    pub snapshot_every: Option<Option<u64>>,
    pub snapshot_on_stop: Option<bool>,
    pub policy: Option<Policy>,
    pub limits: Option<StoreLimits>,
    pub threads: Option<Threads>,
    pub window_bytes: Option<usize>,
    pub frame_length_max: Option<usize>,
    pub frames_per_poll_max: Option<usize>,
    pub session_expiry: Option<Duration>,
    pub persistence: Option<Persistence>,
    pub socket: Option<Option<PathBuf>>,
    pub token: Option<u128>,
    pub directory: Option<PathBuf>,
    pub kept_bytes_max: Option<usize>,
}

type Refused = (&'static str, &'static str);

fn first_set<const N: usize>(table: [(&'static str, bool, &'static str); N]) -> Option<Refused> {
    table.into_iter().find(|(_, is_set, _)| *is_set).map(|(option, _, reason)| (option, reason))
}

impl HostOptions {
    pub fn check(&self, place: &Place, kind: ProgramKind) -> Result<(), HostError> {
        let mut refused = self.refused_by_program(kind);
        refused.extend(match place {
            Place::Memory => self.refused_in_memory(),
            Place::Directory(_) => None,
            #[cfg(feature = "cluster")]
            Place::Member(_) => self.refused_on_member(kind),
            Place::Stream(_) => self.refused_on_stream(),
        });
        if !matches!(place, Place::Stream(_)) {
            refused.extend(self.refused_without_stream());
        }
        let Some((option, reason)) = refused.into_iter().next() else { return Ok(()) };
        Err(HostError::Option { option, place: place.to_string(), reason: reason.to_owned() })
    }

    /// Checks options that only a host with threads has.
    #[cfg(feature = "cqrs")]
    pub fn check_polled(&self, place: &Place) -> Result<(), HostError> {
        let table = [
            ("threads", self.threads.is_some(), "its owner polls it; leave it out, or take Host::start"),
            ("socket", self.socket.is_some(), "it takes commands of this process; leave it out, or take Host::start"),
            ("manual_time", self.manual_time, "its time is that of its owner's clock; take Host::start"),
        ];
        let Some((option, _, reason)) = table.into_iter().find(|(_, is_set, _)| *is_set) else { return Ok(()) };
        Err(HostError::Option { option, place: place.to_string(), reason: reason.to_owned() })
    }

    fn refused_by_program(&self, kind: ProgramKind) -> Vec<Refused> {
        let table = [
            (
                "policy",
                self.policy.is_some() && kind != ProgramKind::Service,
                "a replicated state and aggregates undo the changes of a failed command, refuse it and record it; leave it out",
            ),
            (
                "limits",
                self.limits.is_some() && kind != ProgramKind::State,
                "only a replicated state has a store with limits; leave it out",
            ),
        ];
        table.into_iter().filter(|(_, is_set, _)| *is_set).map(|(option, _, reason)| (option, reason)).collect()
    }

    fn refused_in_memory(&self) -> Option<Refused> {
        if self.tier.is_some_and(|tier| tier != Tier::Memory) {
            return Some(("tier", "nothing is kept; take Host::in_directory for a durable host"));
        }
        self.persistence.is_some().then_some(("persistence", "there is no journal; take Host::in_directory for one"))
    }

    #[cfg(feature = "cluster")]
    fn refused_on_member(&self, kind: ProgramKind) -> Option<Refused> {
        let has_snapshots = self.snapshot_every.is_some() || self.snapshot_on_stop.is_some();
        first_set([
            ("tier", self.tier.is_some(), "set `cluster.tier` in the files of all members"),
            (
                "manual_time",
                self.manual_time,
                "the time is the leader's clock; test timers with Host::in_memory or Host::in_directory",
            ),
            ("threads", self.threads.is_some(), "set `threads` and `replication` in its file"),
            ("window_bytes", self.window_bytes.is_some(), "set `stream.window` in its file"),
            ("frame_length_max", self.frame_length_max.is_some(), "set `stream.frame_length_max` in its file"),
            ("frames_per_poll_max", self.frames_per_poll_max.is_some(), "set `threads.optimize_for` in its file"),
            ("session_expiry", self.session_expiry.is_some(), "set `stream.session_expiry` in its file"),
            ("persistence", self.persistence.is_some(), "set `journal` in its file"),
            (
                "socket",
                self.socket.is_some(),
                "it listens on `socket` in `stream.directory`, and by TCP at `clients.address` of its file",
            ),
            (
                "snapshot_every",
                has_snapshots && !matches!(kind, ProgramKind::Service | ProgramKind::State),
                "aggregates are loaded from the whole stream, so no snapshot may replace it; leave it out",
            ),
        ])
    }

    fn refused_on_stream(&self) -> Option<Refused> {
        const SEQUENCER: &str = "the stream's sequencer decides it; leave it out";
        first_set([
            ("tier", self.tier.is_some(), SEQUENCER),
            (
                "manual_time",
                self.manual_time,
                "the time is the sequencer's clock; test timers with Host::in_memory or Host::in_directory",
            ),
            ("threads", self.threads.is_some(), "it has one thread; leave it out"),
            ("window_bytes", self.window_bytes.is_some(), SEQUENCER),
            ("frame_length_max", self.frame_length_max.is_some(), SEQUENCER),
            ("frames_per_poll_max", self.frames_per_poll_max.is_some(), "it has one thread; leave it out"),
            ("session_expiry", self.session_expiry.is_some(), SEQUENCER),
            ("persistence", self.persistence.is_some(), SEQUENCER),
            ("socket", self.socket.is_some(), "it takes no commands; leave it out"),
            ("token", self.token.is_none(), "all instances of the service need the same one, and others another one"),
        ])
    }

    fn refused_without_stream(&self) -> Option<Refused> {
        const STREAM: &str = "only a node of a stream of others has it, Host::on_stream; leave it out";
        first_set([
            ("token", self.token.is_some(), STREAM),
            ("directory", self.directory.is_some(), STREAM),
            ("kept_bytes_max", self.kept_bytes_max.is_some(), STREAM),
        ])
    }

    pub fn of_own_stream(self, place: &Place) -> ServiceHostOptions {
        let default = match place {
            Place::Directory(directory) => ServiceHostOptions::in_directory(directory),
            _ => ServiceHostOptions::in_memory(),
        };
        ServiceHostOptions {
            tier: self.tier.unwrap_or(default.tier),
            socket_path: self.socket.unwrap_or(default.socket_path),
            persistence: self.persistence.unwrap_or(default.persistence),
            threads: self.threads.unwrap_or(default.threads),
            window_bytes: self.window_bytes.unwrap_or(default.window_bytes),
            frame_length_max: self.frame_length_max.unwrap_or(default.frame_length_max),
            session_expiry: self.session_expiry.unwrap_or(default.session_expiry),
            snapshot_interval_frames: self.snapshot_every.unwrap_or(default.snapshot_interval_frames),
            snapshot_on_stop: self.snapshot_on_stop.unwrap_or(default.snapshot_on_stop),
            policy: self.policy.unwrap_or(default.policy),
            state_limits: self.limits.unwrap_or(default.state_limits),
            manual_time: self.manual_time,
            frames_per_poll_max: self.frames_per_poll_max,
            directory: default.directory,
        }
    }

    /// The token must have been checked.
    pub fn on_stream(self) -> StreamServiceOptions {
        let default = StreamServiceOptions::new(self.token.unwrap_or_default());
        StreamServiceOptions {
            directory: self.directory,
            snapshot_interval_frames: self.snapshot_every.unwrap_or(default.snapshot_interval_frames),
            snapshot_on_stop: self.snapshot_on_stop.unwrap_or(default.snapshot_on_stop),
            policy: self.policy.unwrap_or(default.policy),
            kept_bytes_max: self.kept_bytes_max.unwrap_or(default.kept_bytes_max),
            token: default.token,
        }
    }

    #[cfg(feature = "cluster")]
    pub fn of_replica(&self) -> ReplicaOptions {
        let default = ReplicaOptions::default();
        ReplicaOptions {
            snapshot_interval_frames: self.snapshot_every.unwrap_or(default.snapshot_interval_frames),
            snapshot_on_stop: self.snapshot_on_stop.unwrap_or(default.snapshot_on_stop),
            policy: self.policy.clone().unwrap_or(default.policy),
        }
    }

    #[cfg(feature = "cluster")]
    pub fn of_replicated_state(&self) -> StateOptions {
        let default = StateOptions::default();
        StateOptions {
            snapshot_interval_frames: self.snapshot_every.unwrap_or(default.snapshot_interval_frames),
            snapshot_on_stop: self.snapshot_on_stop.unwrap_or(default.snapshot_on_stop),
            limits: self.limits.unwrap_or(default.limits),
        }
    }
}
