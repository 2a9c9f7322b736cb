//! `EventStreamOptions`: configuration of an event stream, with its defaults and validation.

mod from_config;

use crate::StreamError;
use crate::network::endpoints::PacketNetwork;
use crate::network::tcp_endpoints::FRAME_LENGTH_TCP;
use crate::network::{ClientPort, TcpNetwork};
use crate::persistence::Persistence;
use gapless_agent::{CpuMask, OptimizeFor, PlanKind};
use gapless_client::throttle::Throttle;
use gapless_transport::Tier;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mtu::Mtu;
use std::path::PathBuf;
use std::time::Duration;

/// Configuration of an event stream; defaults: [`EventStreamOptions::in_directory`], [`EventStreamOptions::in_memory`].
#[derive(Clone)]
pub struct EventStreamOptions {
    /// Journal, state and socket; `None` only at tier `memory`.
    pub directory: Option<PathBuf>,
    /// Durability of a frame before any reader sees it.
    pub tier: Tier,
    pub persistence: Persistence,
    pub feed_session: FeedSession,
    /// Window in bytes, a power of two. A smaller one than the default needs a smaller
    /// [`EventStreamOptions::message_length_max`]: [`EventStreamOptions::with_window_bytes`] sets both.
    pub window_bytes: usize,
    /// MTU of its networks; [`EventStreamOptions::with_mtu`] also sets frames and packets.
    pub mtu: Option<Mtu>,
    /// Longest frame, bytes; longer messages are split.
    pub frame_length_max: usize,
    /// Longest payload of a message, bytes; its frames must fit half of the window.
    pub message_length_max: usize,
    /// Memory for unfinished messages, bytes, at most one for each session; one without progress for 2 s is evicted
    /// when another needs the room, and is resent.
    pub fragments_bytes_max: usize,
    /// Idle time after which a session is closed.
    pub session_expiry: Duration,
    pub throttle: Option<Throttle>,
    /// Frames after which the sequencer's state is written.
    pub state_interval_frames: u64,
    /// Minimum time between two states: each syncs everything that it covers.
    pub state_interval_min: Duration,
    /// Frames taken from one publisher in turn.
    pub frames_per_poll_max: usize,
    pub plan: PlanKind,
    pub optimize_for: OptimizeFor,
    pub sequencer_cpus: Option<CpuMask>,
    /// CPUs of a member's service.
    pub service_cpus: Option<CpuMask>,
    /// Threads in addition to the plan.
    pub member_threads: MemberThreads,
    /// CPUs of the journal's sync thread.
    pub sync_cpus: Option<CpuMask>,
    /// Spinning threads of this process outside the stream.
    pub callers_hot: usize,
    /// Network for nodes that use packets.
    pub packets: Option<PacketNetwork>,
    /// TCP ports for nodes, and for their rewinds.
    pub tcp: Option<TcpNetwork>,
    /// TCP port for clients of a member's service.
    pub clients: Option<ClientPort>,
}

/// Extra threads of a cluster's member, set by its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberThreads {
    /// The member's thread spins if it has a core, whatever the plan.
    pub spins: bool,
    pub detached_service: bool,
    /// Replies have a thread of their own.
    pub detached_sender: bool,
    pub send_queue_depth: usize,
    pub sender_cpus: Option<CpuMask>,
}

impl Default for MemberThreads {
    fn default() -> Self {
        Self {
            spins: false,
            detached_service: false,
            detached_sender: false,
            send_queue_depth: 1024,
            sender_cpus: None,
        }
    }
}

impl EventStreamOptions {
    /// A stream at tier `journal`, for processes of this machine.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), tier: Tier::Journal, ..Self::in_memory() }
    }

    /// A stream at tier `memory`, for this process.
    ///
    /// # Panics
    /// Never: the name of the first feed session is a valid one.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            directory: None,
            tier: Tier::Memory,
            persistence: Persistence::default(),
            feed_session: FeedSession::new("FEED000001").expect("ten letters and digits"),
            window_bytes: 64 << 20,
            mtu: None,
            frame_length_max: 64 << 10,
            message_length_max: MESSAGE_LENGTH_MAX,
            fragments_bytes_max: 128 << 20,
            session_expiry: Duration::from_secs(24 * 3600),
            throttle: None,
            state_interval_frames: 1_000_000,
            state_interval_min: Duration::from_secs(5),
            frames_per_poll_max: 64,
            plan: PlanKind::Default,
            optimize_for: OptimizeFor::Latency,
            sequencer_cpus: None,
            service_cpus: None,
            member_threads: MemberThreads::default(),
            sync_cpus: None,
            callers_hot: 0,
            packets: None,
            tcp: None,
            clients: None,
        }
    }

    /// Sets the window to `window_bytes`, and the longest message to the maximum that it allows, at most 16 MiB.
    ///
    /// ```
    /// # mod gapless { pub mod prelude { pub use gapless_stream::options::EventStreamOptions; } }
    /// use gapless::prelude::*;
    /// let options = EventStreamOptions::in_directory("orders").with_window_bytes(8 << 20);
    /// assert!(options.message_length_max > 4_100_000 && options.message_bytes_max() <= 4 << 20);
    /// ```
    #[must_use]
    pub fn with_window_bytes(mut self, window_bytes: usize) -> Self {
        self.window_bytes = window_bytes;
        self.message_length_max = message_length_within(window_bytes, self.frame_length_max);
        self
    }

    /// Sets the MTU of the networks, and frames and packets to the maximum that it allows. Call it after setting the
    /// networks.
    ///
    /// ```
    /// # mod gapless {
    /// #     pub mod prelude { pub use gapless_stream::options::EventStreamOptions; }
    /// #     pub mod stream { pub use gapless_wire::mtu::Mtu; }
    /// # }
    /// use gapless::prelude::*;
    /// let jumbo = gapless::stream::Mtu::new(9_000)?;
    /// assert_eq!(EventStreamOptions::in_directory("orders").with_mtu(jumbo).frame_length_max, 8_876);
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn with_mtu(mut self, mtu: Mtu) -> Self {
        let longest = if self.tcp.is_some() { FRAME_LENGTH_TCP } else { usize::MAX };
        (self.mtu, self.frame_length_max) = (Some(mtu), mtu.frame_length_max().min(longest));
        if let Some(packets) = &mut self.packets {
            packets.packet_length_max = mtu.packet_length_max();
        }
        self.message_length_max = message_length_within(self.window_bytes, self.frame_length_max);
        self
    }

    /// MTU that nodes may state; default: that of the packets.
    #[must_use]
    pub fn effective_mtu(&self) -> Option<Mtu> {
        let is_default = |packets: &PacketNetwork| packets.packet_length_max == Mtu::DEFAULT.packet_length_max();
        self.mtu.or_else(|| self.packets.as_ref().filter(|packets| is_default(packets)).map(|_| Mtu::DEFAULT))
    }

    /// Longest message with headers and padding, bytes.
    #[must_use]
    pub fn message_bytes_max(&self) -> usize {
        message_bytes_max(self.message_length_max, self.frame_length_max)
    }

    pub(crate) fn check(&self) -> Result<(), StreamError> {
        match self.tier.refusal_outside_a_cluster() {
            Some(reason) => Err(StreamError::Option { option: "tier", reason }),
            None => self.check_values(),
        }
    }

    /// Validates the options for a cluster's member.
    ///
    /// # Errors
    /// [`StreamError::Option`]: the tier is not one of a cluster, or the options are invalid for any stream.
    pub fn check_member(&self) -> Result<(), StreamError> {
        if self.tier.is_replicated() {
            return self.check_values();
        }
        let reason = format!("a cluster's are quorum and quorum-sync, not {}", self.tier);
        Err(StreamError::Option { option: "tier", reason })
    }

    fn check_values(&self) -> Result<(), StreamError> {
        let refuse = |option, reason: String| Err(StreamError::Option { option, reason });
        if self.tier != Tier::Memory && self.directory.is_none() {
            return refuse("directory", format!("tier {} needs one", self.tier));
        }
        let frame_lengths = gapless_wire::HEADER_LENGTH + 64..=FRAME_LENGTH_MAX;
        if !frame_lengths.contains(&self.frame_length_max) {
            let found = self.frame_length_max;
            return refuse("frame_length_max", format!("128 to {FRAME_LENGTH_MAX} bytes are allowed, not {found}"));
        }
        if let Some(mtu) = self.mtu {
            self.check_mtu(mtu)?;
        }
        if self.message_bytes_max() > self.window_bytes / 2 {
            let reason = format!(
                "a message of {} bytes takes {} with its headers, more than half of the window of {} bytes, which allows {}",
                self.message_length_max,
                self.message_bytes_max(),
                self.window_bytes,
                message_length_within(self.window_bytes, self.frame_length_max)
            );
            return refuse("message_length_max", reason);
        }
        if self.message_length_max.div_ceil(self.frame_length_max - gapless_wire::HEADER_LENGTH) > usize::from(u16::MAX)
        {
            return refuse("message_length_max", "it takes more than 65,535 frames".to_owned());
        }
        if self.frames_per_poll_max == 0 || self.frames_per_poll_max > 1024 {
            return refuse("frames_per_poll_max", format!("1 to 1024 are allowed, not {}", self.frames_per_poll_max));
        }
        if let Some(network) = &self.packets {
            network.check(self.frame_length_max)?;
        }
        if let Some(network) = &self.tcp {
            network.check(self.frame_length_max)?;
        }
        if let Some(port) = &self.clients {
            if self.tcp.is_some() {
                return refuse("clients", "the stream of a service has clients, and no nodes by TCP".to_owned());
            }
            port.check(self.frame_length_max)?;
        }
        if self.feed_session.is_blank() {
            return refuse("feed_session", "a name of 1 to 10 characters is expected, not a blank one".to_owned());
        }
        Ok(())
    }
}

impl EventStreamOptions {
    fn check_mtu(&self, mtu: Mtu) -> Result<(), StreamError> {
        let refuse = |option, what: &str, found: usize, most: usize| {
            let reason = format!("{what} of {found} bytes do not fit an mtu of {mtu}; at most {most} are allowed");
            Err(StreamError::Option { option, reason })
        };
        if self.frame_length_max > mtu.frame_length_max() {
            return refuse("frame_length_max", "frames", self.frame_length_max, mtu.frame_length_max());
        }
        match self.packets.as_ref().map(|packets| packets.packet_length_max) {
            Some(found) if found > mtu.packet_length_max() => {
                refuse("network.packet_length_max", "packets", found, mtu.packet_length_max())
            }
            _ => Ok(()),
        }
    }
}

const MESSAGE_LENGTH_MAX: usize = 16 << 20;
const FRAME_OVERHEAD: usize = gapless_wire::HEADER_LENGTH + 8;

pub(crate) fn message_length_within(window_bytes: usize, frame_length_max: usize) -> usize {
    let part = frame_length_max.saturating_sub(gapless_wire::HEADER_LENGTH).max(1);
    let (whole, rest) = (window_bytes / 2 / (part + FRAME_OVERHEAD), window_bytes / 2 % (part + FRAME_OVERHEAD));
    let in_window = whole * part + rest.saturating_sub(FRAME_OVERHEAD);
    in_window.min(MESSAGE_LENGTH_MAX).min(part * usize::from(u16::MAX))
}

pub(crate) const fn message_bytes_max(message_length_max: usize, frame_length_max: usize) -> usize {
    let part = frame_length_max - gapless_wire::HEADER_LENGTH;
    message_length_max + message_length_max.div_ceil(part) * FRAME_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_limit_follows_window() {
        for window_bytes in [64 << 10, 1 << 20, 8 << 20, 32 << 20, 64 << 20, 1 << 30] {
            for frame_length_max in [128, 1_376, 64 << 10, FRAME_LENGTH_MAX] {
                let mut options = EventStreamOptions::in_memory();
                options.frame_length_max = frame_length_max;
                let options = options.with_window_bytes(window_bytes);
                let longest = options.message_bytes_max();
                assert!(longest <= window_bytes / 2, "{window_bytes} {frame_length_max}");
                let is_longest = message_bytes_max(options.message_length_max + 1, frame_length_max) > window_bytes / 2;
                let is_of_frames = options.message_length_max == 65_535 * (frame_length_max - 64);
                assert!(is_longest || is_of_frames || options.message_length_max == MESSAGE_LENGTH_MAX);
            }
        }
        assert!(EventStreamOptions::in_memory().with_window_bytes(8 << 20).check().is_ok());
    }
}
