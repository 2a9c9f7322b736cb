//! `Tally` and `SimulationFailure`: the result of a run.

use serde::{Deserialize, Serialize};

/// Counters of one run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Hash of all events: equal hashes mean equal runs; 0 for several runs.
    pub trace: u64,
    /// Events of the network, the disks and the stream.
    pub events: u64,
    pub virtual_ns: u64,
    pub released: u64,
    pub acknowledged: u64,
    /// Received again by a client.
    pub repeated: u64,
    /// Answers to restarted clients about commands of earlier lives.
    pub resolved: u64,
    pub notices: u64,
    pub timers: u64,
    /// Leaders that continued their predecessor's time against their own clock.
    pub times_kept: u64,
    pub terms: u64,
    pub crashes: u64,
    /// Members killed in the middle of a turn.
    pub kills: u64,
    pub power_losses: u64,
    /// Flipped bits of journals: the start reported each, and the bit was restored.
    pub flips: u64,
    /// Older directories that were put back.
    pub copies: u64,
    /// Directories exchanged with another member's.
    pub exchanges: u64,
    /// Stopped and reported a replaced history.
    pub found_out: u64,
    /// Lost with their members.
    pub disks: u64,
    /// States fetched because other journals did not reach back far enough.
    pub fetched: u64,
    /// Stops that reported a full disk.
    pub full_disks: u64,
    /// Stops that reported a failed sync or write.
    pub disk_errors: u64,
    pub pauses: u64,
    pub cuts: u64,
    pub broken: u64,
    pub jumps: u64,
    pub transfers: u64,
    /// Completed membership changes.
    pub changes: u64,
    /// Restarts.
    pub publishers: u64,
}

impl Tally {
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

/// A broken promise. `{:#}` and `{:#?}` also print the state of the members.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulationFailure {
    pub seed: u64,
    /// Virtual time.
    pub at_ms: u64,
    /// Further lines have the message with its fields, and the difference of two states or replies.
    pub reason: String,
    /// State of the members and their consensus; printed by `{:#}` alone.
    pub state: String,
    pub tally: Tally,
}

impl std::fmt::Display for SimulationFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {} at {} ms: {}", self.seed, self.at_ms, self.reason)?;
        if f.alternate() { write!(f, "\n{}", self.state) } else { Ok(()) }
    }
}

/// Prints the [`Display`](std::fmt::Display) text, so that `unwrap` and a returning `main` are readable.
impl std::fmt::Debug for SimulationFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SimulationFailure {}
