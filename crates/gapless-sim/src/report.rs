//! [`Tally`] and [`Failure`]: the result of a run.

use serde::{Deserialize, Serialize};

/// The events of a run, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Of everything that happened: two runs with the same number did the same. 0 for several runs together.
    pub trace: u64,
    /// Events of the network, the disks and the stream.
    pub events: u64,
    /// Virtual time, ns.
    pub virtual_ns: u64,
    /// Frames released.
    pub released: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Replies that came once more.
    pub repeated: u64,
    /// Answers to clients that were started anew, about what they had sent before.
    pub resolved: u64,
    /// Notices that services have sent.
    pub notices: u64,
    /// Timers that came.
    pub timers: u64,
    /// How often a leader went on with the time of the one before, against its own clock.
    pub times_kept: u64,
    /// Terms that had a leader.
    pub terms: u64,
    /// Members killed between two turns.
    pub crashes: u64,
    /// Members killed in the middle of a turn.
    pub kills: u64,
    /// Machines that lost power.
    pub power_losses: u64,
    /// Bits of journals that changed: the member's start said so, and the bit was changed back.
    pub flips: u64,
    /// Older copies of directories put back.
    pub copies: u64,
    /// Directories exchanged with another member's.
    pub exchanges: u64,
    /// Members that stopped because a history was not what it was, and said so.
    pub found_out: u64,
    /// Disks lost, and the member with it.
    pub disks: u64,
    /// States that members have fetched from others, because journals did not reach back to where they were.
    pub fetched: u64,
    /// Members that stopped because their disk was full, and said so.
    pub full_disks: u64,
    /// Members that stopped because a sync or a write failed, and said so.
    pub disk_errors: u64,
    /// Members that did not run for a while.
    pub pauses: u64,
    /// Times that the network was cut.
    pub cuts: u64,
    /// Connections broken.
    pub broken: u64,
    /// Jumps of wall clocks.
    pub jumps: u64,
    /// Leaders asked to hand over.
    pub transfers: u64,
    /// Changes of members that were done: one added, removed or replaced.
    pub changes: u64,
    /// Publishers started anew.
    pub publishers: u64,
}

impl Tally {
    /// Adds another run's.
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

/// A promise that was not kept. `{}` and `{:?}` print what and where; `{:#}` and `{:#?}` also how the members stood.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The run.
    pub seed: u64,
    /// When, ms of virtual time.
    pub at_ms: u64,
    /// The promise that was broken; on further lines where: the message and its fields, and where two states or replies part.
    pub reason: String,
    /// How the members and their consensus stood then; printed by `{:#}` alone.
    pub state: String,
    /// The events up to then.
    pub tally: Tally,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {} at {} ms: {}", self.seed, self.at_ms, self.reason)?;
        if f.alternate() { write!(f, "\n{}", self.state) } else { Ok(()) }
    }
}

/// As [`Display`](std::fmt::Display): so that `unwrap`, `expect` and a `main` that returns it print what people read.
impl std::fmt::Debug for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
