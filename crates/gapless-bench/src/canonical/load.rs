//! Load of a run: its messages in flight, and the client that sends them.

use crate::options::{RunSettings, RunTier};
use gapless::prelude::*;
use gapless_load::canonical::driver::CanonicalLoad;
use gapless_transport::link::RingSizes;

const IN_FLIGHT_MAX: u64 = 4096;

/// Messages between two looks at replies, for a service with threads of its own.
const BURST_MESSAGES: u64 = 16;

/// Limit in flight at tier `sync`, where a group waits for the device.
const IN_FLIGHT_MAX_SYNC: u64 = 12_000;

pub(super) fn load_of(settings: &RunSettings) -> CanonicalLoad {
    CanonicalLoad {
        count: settings.count,
        rate_per_s: settings.rate_per_s,
        warm_up_ns: settings.warm_up_ns,
        empty_message: settings.empty_message,
        sessions: settings.sessions.min(settings.count),
        repeats_per_million: settings.repeats_per_million,
        burst_messages: BURST_MESSAGES,
        in_flight_max: if matches!(settings.tier, RunTier::Sync | RunTier::QuorumSync) {
            IN_FLIGHT_MAX_SYNC
        } else {
            IN_FLIGHT_MAX
        },
    }
}

pub(super) fn client_options() -> ClientOptions {
    let link = RingSizes { command_ring_bytes: 4 << 20, reply_ring_bytes: 4 << 20 };
    ClientOptions { link, ..ClientOptions::default() }
}
