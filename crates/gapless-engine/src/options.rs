//! [`ServiceHostOptions`]: how a service host is run, with its defaults and the checks of them.

use crate::EngineError;
use crate::fold::{OnUnhandled, Policy};
use crate::store::Limits;
use gapless_agent::{CpuMask, OptimizeFor, PlanKind};
use gapless_client::stream_layout::StreamLayout;
use gapless_stream::Persistence;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::Tier;
use std::path::PathBuf;
use std::time::Duration;

/// Which agents get a thread, and which CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The thread plan.
    pub plan: PlanKind,
    /// Whether batches are kept small or large.
    pub optimize_for: OptimizeFor,
    /// Threads of this process that spin beside the host's: an in-process client, for instance.
    pub callers_hot: usize,
    /// Journal on a thread of its own.
    pub detach_persister: bool,
    /// Send on a thread of its own.
    pub detach_sender: bool,
    /// Messages that may wait for the detached sender.
    pub send_queue_depth: usize,
    /// CPUs of the business logic.
    pub service_cpus: Option<CpuMask>,
    /// CPUs of the detached persister.
    pub persister_cpus: Option<CpuMask>,
    /// CPUs of the detached sender.
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

/// How a service host is run. [`ServiceHostOptions::in_directory`] and [`ServiceHostOptions::in_memory`] hold the defaults.
#[derive(Clone, Debug)]
pub struct ServiceHostOptions {
    /// Where journal, snapshots and socket live; `None` at tier `memory` only.
    pub directory: Option<PathBuf>,
    /// How durable a frame is before the service acts on it.
    pub tier: Tier,
    /// Where other processes connect; `None` for in-process clients only.
    pub socket_path: Option<PathBuf>,
    /// How the journal is kept.
    pub persistence: Persistence,
    /// Threads and CPUs.
    pub threads: Threads,
    /// Bytes of the window, a power of two.
    pub window_bytes: usize,
    /// The longest frame, bytes; longer messages are split.
    pub frame_length_max: usize,
    /// Sessions without a frame for so long are closed.
    pub session_expiry: Duration,
    /// A snapshot after so many frames; `None` for none.
    pub snapshot_interval_frames: Option<u64>,
    /// A snapshot at a clean stop.
    pub snapshot_on_stop: bool,
    /// What happens to messages that no handler takes, and to handlers that panic. Of an event-sourced service: a
    /// state-replicated one refuses both and records them.
    pub policy: Policy,
    /// What the state of a state-replicated service may hold.
    pub state_limits: Limits,
    /// The time of the stream stands still but for [`ServiceHost::advance`](crate::ServiceHost::advance): for tests.
    pub manual_time: bool,
    /// Frames that an agent takes in one poll; `None` chooses by what is optimised for.
    pub frames_per_poll_max: Option<usize>,
}

/// Why there is no policy for a state-replicated service.
pub(crate) const POLICY_OF_STATE_REFUSED: &str = "no command stops a service whose state is replicated: what its handler did to \
                                           the state before it panicked is taken back, and the command is refused";

impl ServiceHostOptions {
    /// A durable service in `directory`, at tier `journal`, listening on `node.socket` there.
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
            state_limits: Limits::default(),
            manual_time: false,
            frames_per_poll_max: None,
        }
    }

    /// With a time that stands still but for [`ServiceHost::advance`](crate::ServiceHost::advance): for tests of timers and of what
    /// else comes with time.
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

    /// As [`ServiceHostOptions::check`], of a state-replicated service. `on_panic` may say what it likes: its default is
    /// that of other services.
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

    /// As the stream's builder takes them.
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
