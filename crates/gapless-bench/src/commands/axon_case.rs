//! Parameters of Axon's rows, and the search for a row by them.

use clap::ValueEnum;
use gapless_load::commands::case::Identifiers;
use gapless_measure::Row;
use gapless_measure::reporting::{config_number, of_config, word};

pub(crate) const AXON: &str = "axon";

/// One of Axon's buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AxonBus {
    /// Decides on the thread of its caller, one command after the other; ours: direct, one by one
    Simple,
    /// Hands commands to threads that decide and store; ours: pipelined
    Disruptor,
}

/// Load and store of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AxonSetup {
    /// Answers are awaited and checked, each command has two headers, as ours
    Ours,
    /// No answer is awaited, no command has metadata, as in Axon's own benchmark
    Published,
    /// Our load, with all events kept in Axon's store in memory
    AllEvents,
}

impl AxonSetup {
    /// System properties. Axon's own benchmark keeps the last event of each aggregate; ours at tier `memory` keeps a
    /// window of a few MiB.
    pub(crate) const fn properties(self) -> &'static [&'static str] {
        match self {
            Self::Ours => &[],
            Self::Published => &["-Danswers=none", "-Dmetadata=none"],
            Self::AllEvents => &["-Dstore=all"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxonCase {
    pub(crate) bus: AxonBus,
    pub(crate) aggregates: u64,
    pub(crate) identifiers: Identifiers,
    pub(crate) setup: AxonSetup,
}

impl AxonCase {
    /// Our load with all identifiers and, beyond one, `many` aggregates; and one row whose store keeps all events.
    pub(crate) fn all(many: u64) -> Vec<Self> {
        let of = |bus| {
            let one = Identifiers::value_variants().iter().map(move |kind| Self::of_one(bus, *kind, AxonSetup::Ours));
            let many = [Identifiers::Random, Identifiers::Position]
                .map(|kind| Self { aggregates: many, ..Self::of_one(bus, kind, AxonSetup::Ours) });
            one.chain(many).chain([Self::of_one(bus, Identifiers::Random, AxonSetup::AllEvents)])
        };
        AxonBus::value_variants().iter().flat_map(|bus| of(*bus)).collect()
    }

    pub(crate) const fn of_one(bus: AxonBus, identifiers: Identifiers, setup: AxonSetup) -> Self {
        Self { bus, aggregates: 1, identifiers, setup }
    }

    pub(crate) fn label(&self) -> String {
        let Self { bus, aggregates, identifiers, setup } = *self;
        let words = [word(bus), word(identifiers), format!("setup {}", word(setup))].join(", ");
        format!("Axon, {words}, {aggregates} aggregates")
    }
}

/// Greatest rate of the rows with our load and this many aggregates.
pub(crate) fn fastest(rows: &[Row], aggregates: u64) -> Option<f64> {
    let is_of_it = |row: &&Row| is_of(row, AxonSetup::Ours) && config_number(row, "aggregates") == Some(aggregates);
    rows.iter().filter(is_of_it).filter_map(|row| row.throughput_per_s).reduce(f64::max)
}

pub(crate) fn row_of(rows: &[Row], bus: AxonBus, identifiers: Identifiers, setup: AxonSetup) -> Option<&Row> {
    let name = format!("{AXON} {}", word(bus));
    rows.iter().find(|row| {
        is_of(row, setup)
            && row.config.name.as_ref() == Some(&name)
            && config_number(row, "aggregates") == Some(1)
            && of_config(row, "identifiers") == word(identifiers)
    })
}

fn is_of(row: &Row, setup: AxonSetup) -> bool {
    row.config.name.as_deref().is_some_and(|name| name.starts_with(AXON)) && of_config(row, "setup") == word(setup)
}
