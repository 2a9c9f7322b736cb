//! `ServiceHostOptions`: configuration of a service host, with defaults and validation.

use crate::EngineError;
use crate::fold::{OnUnhandled, Policy};
use crate::store::StoreLimits;
use gapless_agent::{CpuMask, OptimizeFor, PlanKind};
use gapless_client::stream_layout::StreamLayout;
use gapless_stream::Persistence;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::Tier;
use std::path::PathBuf;
use std::time::Duration;

/// Threads of the agents, and their CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    pub plan: PlanKind,
    pub optimize_for: OptimizeFor,
    /// Busy-polling threads besides the host's, for instance of an in-process client.
    pub callers_hot: usize,
    pub detach_persister: bool,
    pub detach_sender: bool,
    /// Capacity, messages.
    pub send_queue_depth: usize,
    pub service_cpus: Option<CpuMask>,
    pub persister_cpus: Option<CpuMask>,
    pub sender_cpus: Option<CpuMask>,
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            plan: PlanKind::Default,
            optimize_for: OptimizeFor::Latency,
            callers_hot: 0,
            detach_persister: false,
            detach_sender: false,
            send_queue_depth: 1024,
            service_cpus: None,
            persister_cpus: None,
            sender_cpus: None,
        }
    }
}

/// Configuration of a service host. Defaults: [`ServiceHostOptions::in_directory`], [`ServiceHostOptions::in_memory`].
#[derive(Clone, Debug)]
pub struct ServiceHostOptions {
    /// `None` at tier `memory` only.
    pub directory: Option<PathBuf>,
    /// Durability of a frame before the service acts on it.
    pub tier: Tier,
    /// `None`: in-process clients only.
    pub socket_path: Option<PathBuf>,
    pub persistence: Persistence,
    pub threads: Threads,
    /// Bytes, a power of two.
    pub window_bytes: usize,
    /// Bytes; longer messages are split.
    pub frame_length_max: usize,
    /// Sessions without a frame for this long are closed.
    pub session_expiry: Duration,
    /// `None`: no snapshots.
    pub snapshot_interval_frames: Option<u64>,
    pub snapshot_on_stop: bool,
    /// Event-sourced services only; state-replicated services refuse and record both.
    pub policy: Policy,
    pub state_limits: StoreLimits,
    /// Time advances only by [`ServiceHost::advance`](crate::ServiceHost::advance): for tests.
    pub manual_time: bool,
    /// `None`: derived from `optimize_for`.
    pub frames_per_poll_max: Option<usize>,
}

pub(crate) const POLICY_OF_STATE_REFUSED: &str = "no command stops a service whose state is replicated: what its handler did to \
                                           the state before it panicked is taken back, and the command is refused";

impl ServiceHostOptions {
    /// A durable service at tier `journal`, listening on `node.socket` in `directory`.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let socket_path = Some(StreamLayout::new(&directory).node_socket());
        Self { directory: Some(directory), tier: Tier::Journal, socket_path, ..Self::in_memory() }
    }

    /// A service without a disk, at tier `memory`, for in-process clients.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            directory: None,
            tier: Tier::Memory,
            socket_path: None,
            persistence: Persistence::default(),
            threads: Threads::default(),
            window_bytes: 4 << 20,
            frame_length_max: 64 << 10,
            session_expiry: Duration::from_secs(24 * 3600),
            snapshot_interval_frames: Some(10_000_000),
            snapshot_on_stop: true,
            policy: Policy::default(),
            state_limits: StoreLimits::default(),
            manual_time: false,
            frames_per_poll_max: None,
        }
    }

    /// Freezes time, which then advances only by [`ServiceHost::advance`](crate::ServiceHost::advance): for tests of
    /// timers and timeouts.
    #[must_use]
    pub fn with_manual_time(self) -> Self {
        Self { manual_time: true, ..self }
    }

    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let refuse = |option, reason: &str| Err(EngineError::Option { option, reason: reason.to_owned() });
        if let Some(reason) = self.tier.refusal_outside_a_cluster() {
            return refuse("tier", &reason);
        }
        if self.tier != Tier::Memory && self.directory.is_none() {
            return refuse("directory", "the tiers journal and sync need one");
        }
        if !(gapless_wire::HEADER_LENGTH + 64..=gapless_wire::descriptor::FRAME_LENGTH_MAX)
            .contains(&self.frame_length_max)
        {
            return refuse("frame_length_max", "it must lie between 128 bytes and 1 MiB");
        }
        if self.snapshot_interval_frames == Some(0) {
            return refuse("snapshot_interval_frames", "0 frames; leave it out for no snapshots");
        }
        if self.threads.send_queue_depth == 0 {
            return refuse("send_queue_depth", "a queue of 0 messages");
        }
        Ok(())
    }

    /// `on_panic` is ignored, because its default is meant for other services.
    pub(crate) fn check_of_state(&self) -> Result<(), EngineError> {
        self.check()?;
        for (option, is_said) in [
            ("policy.skip_sequences", !self.policy.skip_sequences.is_empty()),
            ("policy.on_unhandled", self.policy.on_unhandled == OnUnhandled::Stop),
        ] {
            if is_said {
                return Err(EngineError::Option { option, reason: POLICY_OF_STATE_REFUSED.to_owned() });
            }
        }
        Ok(())
    }

    pub(crate) fn stream_options(&self) -> EventStreamOptions {
        EventStreamOptions {
            directory: self.directory.clone(),
            tier: self.tier,
            persistence: self.persistence.clone(),
            window_bytes: self.window_bytes,
            frame_length_max: self.frame_length_max,
            message_length_max: self.window_bytes / 2,
            session_expiry: self.session_expiry,
            frames_per_poll_max: self.frames_per_poll(),
            optimize_for: self.threads.optimize_for,
            ..EventStreamOptions::in_memory()
        }
    }

    pub(crate) fn frames_per_poll(&self) -> usize {
        self.frames_per_poll_max.unwrap_or(match self.threads.optimize_for {
            OptimizeFor::Latency => 16,
            OptimizeFor::Throughput => 128,
        })
    }
}
