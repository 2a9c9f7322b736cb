//! Parameters of a row.

use clap::ValueEnum;
use gapless_measure::reporting::word;

/// Drive of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BusDrive {
    /// Through a ring, from any thread, to a thread that decides
    Pipelined,
    /// By the one thread that sends, which decides and polls
    Direct,
}

/// Durability of an answered command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BusTier {
    /// In this process
    Memory,
    /// In the operating system's hands
    Journal,
    /// On the device
    Sync,
    /// In the operating systems' hands on a quorum of two members, each with a core of this machine
    Quorum,
}

/// Encoding of commands and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommandEncoding {
    /// Simple Binary Encoding
    Sbe,
    /// serde, as postcard
    Serde,
}

/// Kind of the commands' identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Identifiers {
    /// Session and number, which the bus gives
    Position,
    /// Random ones of the caller, remembered; 1 % of the commands are sent twice
    Random,
    /// The same, but in the order of their time
    TimeOrdered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusCase {
    pub drive: BusDrive,
    pub tier: BusTier,
    pub encoding: CommandEncoding,
    pub aggregates: u64,
    pub identifiers: Identifiers,
    /// Length of the command's note, bytes.
    pub size: usize,
    /// Each command waits for the answer to the previous one.
    pub is_one_by_one: bool,
}

impl BusCase {
    pub const fn base(drive: BusDrive) -> Self {
        Self {
            drive,
            tier: BusTier::Memory,
            encoding: CommandEncoding::Sbe,
            aggregates: 1,
            identifiers: Identifiers::Position,
            size: 0,
            is_one_by_one: false,
        }
    }

    pub fn all(many: u64) -> Vec<Self> {
        let mut cases = Vec::new();
        for drive in BusDrive::value_variants() {
            let base = Self::base(*drive);
            for encoding in [CommandEncoding::Sbe, CommandEncoding::Serde] {
                cases.extend([1, many].map(|aggregates| Self { encoding, aggregates, ..base }));
            }
            cases.extend([256, 1024, 4096].map(|size| Self { size, ..base }));
            let identified = [Identifiers::Random, Identifiers::TimeOrdered];
            cases.extend(identified.map(|identifiers| Self { identifiers, ..base }));
            for tier in [BusTier::Journal, BusTier::Sync, BusTier::Quorum] {
                if (*drive, tier) != (BusDrive::Direct, BusTier::Quorum) {
                    cases.extend([1, many].map(|aggregates| Self { tier, aggregates, ..base }));
                }
            }
        }
        cases
    }

    pub const fn in_flight(&self, in_flight: usize) -> usize {
        if self.is_one_by_one { 1 } else { in_flight }
    }

    pub fn label(&self) -> String {
        let Self { drive, tier, encoding, aggregates, identifiers, size, is_one_by_one } = self;
        let words = [word(*drive), word(*tier), word(*encoding), word(*identifiers)].join(", ");
        let one_by_one = if *is_one_by_one { ", one by one" } else { "" };
        format!("{words}, {aggregates} × {size} B{one_by_one}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_cover_each_value_once() {
        let cases = BusCase::all(9);
        for (at, case) in cases.iter().enumerate() {
            assert!(!cases[..at].contains(case), "{} comes twice", case.label());
        }
        let has = |found: &dyn Fn(&BusCase) -> bool| cases.iter().any(found);
        for drive in BusDrive::value_variants() {
            for aggregates in [1, 9] {
                let is_there = |tier: &&BusTier| (*drive, **tier) != (BusDrive::Direct, BusTier::Quorum);
                for tier in BusTier::value_variants().iter().filter(is_there) {
                    assert!(has(&|case| (case.drive, case.tier, case.aggregates) == (*drive, *tier, aggregates)));
                }
                for encoding in CommandEncoding::value_variants() {
                    assert!(has(
                        &|case| (case.drive, case.encoding, case.aggregates) == (*drive, *encoding, aggregates)
                    ));
                }
            }
            for identifiers in Identifiers::value_variants() {
                assert!(has(&|case| (case.drive, case.identifiers) == (*drive, *identifiers)));
            }
            for size in [0, 256, 1024, 4096] {
                assert!(has(&|case| (case.drive, case.size) == (*drive, size)));
            }
        }
    }
}
