//! [`Tally`] and [`SimulationFailure`]: the result of a run.

use serde::{Deserialize, Serialize};

/// Counters of one run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Hash of all events: two runs with the same hash did the same. 0 for several runs together.
    pub trace: u64,
    /// Events of the network, the disks and the stream.
    pub events: u64,
    /// Virtual time, ns.
    pub virtual_ns: u64,
    /// Frames released.
    pub released: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Replies that a client received again.
    pub repeated: u64,
    /// Answers to restarted clients about commands that they sent before.
    pub resolved: u64,
    /// Notices that services have sent.
    pub notices: u64,
    /// Timers that fired.
    pub timers: u64,
    /// Leaders that continued their predecessor's time against their own clock.
    pub times_kept: u64,
    /// Terms that had a leader.
    pub terms: u64,
    /// Members killed between two turns.
    pub crashes: u64,
    /// Members killed in the middle of a turn.
    pub kills: u64,
    /// Machines that lost power.
    pub power_losses: u64,
    /// Flipped bits of journals: the member's start reported each, and the bit was restored.
    pub flips: u64,
    /// Older copies of directories put back.
    pub copies: u64,
    /// Directories exchanged with another member's.
    pub exchanges: u64,
    /// Members that stopped and reported a replaced history.
    pub found_out: u64,
    /// Disks lost, together with the member.
    pub disks: u64,
    /// States that members fetched because the journals of others did not reach back far enough.
    pub fetched: u64,
    /// Members that stopped and reported a full disk.
    pub full_disks: u64,
    /// Members that stopped and reported a failed sync or write.
    pub disk_errors: u64,
    /// Members that were paused.
    pub pauses: u64,
    /// Network partitions.
    pub cuts: u64,
    /// Broken connections.
    pub broken: u64,
    /// Jumps of wall clocks.
    pub jumps: u64,
    /// Leaders asked to hand over.
    pub transfers: u64,
    /// Completed membership changes: one member added, removed or replaced.
    pub changes: u64,
    /// Restarted publishers.
    pub publishers: u64,
}

impl Tally {
    /// Adds the counters of another run.
    pub const fn add(&mut self, other: &Self) {
        self.trace = 0;
        self.events += other.events;
        self.virtual_ns += other.virtual_ns;
        self.released += other.released;
        self.acknowledged += other.acknowledged;
        self.repeated += other.repeated;
        self.resolved += other.resolved;
        self.notices += other.notices;
        self.timers += other.timers;
        self.times_kept += other.times_kept;
        self.terms += other.terms;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.power_losses += other.power_losses;
        self.flips += other.flips;
        self.disks += other.disks;
        self.fetched += other.fetched;
        self.copies += other.copies;
        self.exchanges += other.exchanges;
        self.found_out += other.found_out;
        self.full_disks += other.full_disks;
        self.disk_errors += other.disk_errors;
        self.pauses += other.pauses;
        self.cuts += other.cuts;
        self.broken += other.broken;
        self.jumps += other.jumps;
        self.transfers += other.transfers;
        self.changes += other.changes;
        self.publishers += other.publishers;
    }
}

/// A broken promise. `{}` and `{:?}` print what and where; `{:#}` and `{:#?}` also print the state of the members.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulationFailure {
    /// Seed of the run.
    pub seed: u64,
    /// Virtual time of the failure, ms.
    pub at_ms: u64,
    /// The broken promise; further lines have the message with its fields, and the difference of two states or replies.
    pub reason: String,
    /// State of the members and their consensus at the failure; printed by `{:#}` alone.
    pub state: String,
    /// Events up to the failure.
    pub tally: Tally,
}

impl std::fmt::Display for SimulationFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {} at {} ms: {}", self.seed, self.at_ms, self.reason)?;
        if f.alternate() { write!(f, "\n{}", self.state) } else { Ok(()) }
    }
}

/// Prints the [`Display`](std::fmt::Display) text, so that `unwrap`, `expect` and a `main` that returns it are
/// readable.
impl std::fmt::Debug for SimulationFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SimulationFailure {}
