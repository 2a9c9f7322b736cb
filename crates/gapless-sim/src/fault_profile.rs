//! [`FaultProfile`]: how likely each fault is in a run. The seed draws each kind independently, so that some runs see
//! much of one kind and nothing of another.

use crate::options::{ClusterShape, Options};
use crate::random::Random;
use gapless_transport::Tier;

/// Steps (about half a millisecond) in 100,000 that begin with the fault; faults of machines count per machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultProfile {
    pub tier: Tier,
    pub shape: ClusterShape,
    pub publishers: u64,
    /// Death between two turns.
    pub crash: u64,
    /// Death in the middle of a turn, before a message leaves.
    pub kill: u64,
    /// Loss of power; at tier `quorum` a majority always keeps its acknowledged frames.
    pub power: u64,
    /// The process dies, and a bit of a journaled frame changes before its restart.
    pub flip: u64,
    /// The disk is lost, and the member never comes back; a majority remains.
    pub disk: u64,
    /// The process dies, and its directory is copied; the next such fault puts the copy back, or exchanges it with
    /// another.
    pub copy: u64,
    pub full: u64,
    pub disk_error: u64,
    /// A process pauses.
    pub pause: u64,
    pub cut: u64,
    pub broken: u64,
    pub slow_route: u64,
    pub jump: u64,
    /// Drift in either direction, parts per million.
    pub drift_ppm_max: u64,
    pub transfer: u64,
    /// An operator adds, removes or replaces a member; for all machines together.
    pub change: u64,
    pub publisher: u64,
    /// Member, and the steps in 100,000 in which it runs.
    pub slow_member: Option<(u64, u64)>,
    pub delay_ns_max: u64,
    /// Journals drop frames that snapshots cover, so a member that was away for long fetches a state.
    pub retains_little: bool,
}

impl FaultProfile {
    pub(crate) fn of(seed: u64, options: &Options) -> Self {
        let shape = options.shape;
        let mut random = Random::of(seed, &[2]);
        let drawn = match random.below(5) {
            0 => ClusterShape { full: 5, witnesses: 0 },
            1 | 2 => ClusterShape { full: 2, witnesses: 1 },
            _ => ClusterShape { full: 3, witnesses: 0 },
        };
        let shape = shape.unwrap_or(drawn);
        let is_synced = random.happens_per_100_000(35_000);
        let mut some = |usual: u64| match random.below(4) {
            0 => 0,
            1 => usual * 3,
            _ => usual,
        };
        let mut profile = Self {
            tier: if is_synced { Tier::QuorumSync } else { Tier::Quorum },
            shape,
            publishers: 2,
            crash: some(40),
            kill: some(40),
            power: some(40),
            flip: some(20),
            disk: some(20),
            copy: 0,
            full: some(40),
            disk_error: some(40),
            pause: some(40),
            cut: some(100),
            broken: some(100),
            slow_route: some(100),
            jump: some(30),
            drift_ppm_max: some(5_000),
            transfer: some(80),
            change: 0,
            publisher: some(40),
            slow_member: None,
            delay_ns_max: 0,
            // Separate dice keep the seed's other faults.
            retains_little: Random::of(seed, &[12]).happens_per_100_000(40_000),
        };
        profile.publishers += u64::from(random.happens_per_100_000(20_000));
        profile.delay_ns_max = random.pick(&[50_000, 500_000, 3_000_000]);
        if random.happens_per_100_000(30_000) {
            profile.slow_member = Some((1 + random.below(shape.members()), 5_000 + random.below(40_000)));
        }
        if random.happens_per_100_000(30_000) {
            profile.change = 100;
            // Only members of the first configuration surely acknowledged all frames.
            profile.disk = 0;
            profile.power = if is_synced { profile.power } else { 0 };
        }
        if options.puts_copies_back && Random::of(seed, &[14]).happens_per_100_000(25_000) && shape.members() > 1 {
            // Rare, so that much is published before the copy returns.
            profile.copy = 200;
            // After a lost disk or a changed bit members report other errors.
            (profile.disk, profile.flip, profile.change) = (0, 0, 0);
        }
        profile
    }

    pub(crate) fn calm(self) -> Self {
        Self {
            crash: 0,
            kill: 0,
            power: 0,
            flip: 0,
            disk: 0,
            copy: 0,
            full: 0,
            disk_error: 0,
            pause: 0,
            cut: 0,
            broken: 0,
            slow_route: 0,
            jump: 0,
            transfer: 0,
            change: 0,
            publisher: 0,
            slow_member: None,
            delay_ns_max: 200_000,
            ..self
        }
    }
}
