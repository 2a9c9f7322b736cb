//! The options of `gapless bench` without a name.

use clap::{Args, ValueEnum};
use gapless_measure::reporting::JsonArguments;
use std::time::Duration;

/// A peer starts only if its estimate fits.
const TIME_LIMIT: Duration = Duration::from_secs(120);
const TIME_LIMIT_QUICK: Duration = Duration::from_secs(20);

/// Section of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverviewPart {
    /// A service on one node, and on a primary with its backup
    Service,
    /// The sequencer of an event stream
    Sequencer,
    /// Calls between two processes, against the size
    Calls,
    /// Events in memory: many callers and workers, large payloads
    Events,
    /// The command bus
    Commands,
    /// A leader and a supervisor killed under load
    Kills,
    /// Calls between two domains over Kafka
    Network,
}

/// Options of the overview.
#[derive(Debug, Clone, Default, Args)]
pub struct OverviewArguments {
    #[command(flatten)]
    pub json: JsonArguments,

    /// Measure briefly, in 20 seconds, without peers
    #[arg(long)]
    pub quick: bool,

    /// Measure only these [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAMES")]
    pub only: Vec<OverviewPart>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct OverviewPlan {
    pub(super) parts: Vec<OverviewPart>,
    pub(super) is_quick: bool,
    pub(super) time: Duration,
    /// Service rows: at a rate, and as fast as possible.
    pub(super) latency_messages: u64,
    pub(super) throughput_messages: u64,
    pub(super) floor_time: Duration,
    /// Round trips, their repetitions, and messages of each pushing node.
    pub(super) round_trips: u64,
    pub(super) repetitions: u64,
    pub(super) pushed_messages: u64,
    pub(super) calls: u64,
    pub(super) turns: (usize, Duration),
    pub(super) payload_calls: u64,
    /// Turns, and seconds of a row in each.
    pub(super) command_turns: (u16, f64),
    /// Kills of the leader, and of the supervisor.
    pub(super) leader_kills: u32,
    pub(super) supervisor_kills: u64,
    pub(super) network_calls: u64,
}

impl OverviewArguments {
    pub(super) fn plan(&self) -> OverviewPlan {
        let is_chosen = |part: &&OverviewPart| self.only.is_empty() || self.only.contains(part);
        let parts = OverviewPart::value_variants().iter().filter(is_chosen).copied().collect();
        if self.quick {
            return OverviewPlan {
                parts,
                is_quick: true,
                time: TIME_LIMIT_QUICK,
                latency_messages: 2_000,
                throughput_messages: 50_000,
                floor_time: Duration::from_millis(50),
                round_trips: 2_000,
                repetitions: 1,
                pushed_messages: 5_000,
                calls: 200,
                turns: (3, Duration::from_millis(50)),
                payload_calls: 20,
                command_turns: (1, 0.1),
                leader_kills: 1,
                supervisor_kills: 1,
                network_calls: 500,
            };
        }
        OverviewPlan {
            parts,
            is_quick: false,
            time: TIME_LIMIT,
            latency_messages: 30_000,
            throughput_messages: 1_000_000,
            floor_time: Duration::from_millis(300),
            round_trips: 150_000,
            repetitions: 3,
            pushed_messages: 400_000,
            calls: 1_000,
            turns: (3, Duration::from_millis(500)),
            payload_calls: 200,
            command_turns: (3, 0.5),
            leader_kills: 3,
            supervisor_kills: 10,
            network_calls: 5_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_the_order_of_the_table() {
        let only = vec![OverviewPart::Kills, OverviewPart::Calls, OverviewPart::Kills];
        let plan = OverviewArguments { only, ..OverviewArguments::default() }.plan();
        assert_eq!(plan.parts, [OverviewPart::Calls, OverviewPart::Kills]);
        assert_eq!(OverviewArguments::default().plan().parts, OverviewPart::value_variants());
    }

    #[test]
    fn a_quick_run_has_less_of_everything() {
        let whole = OverviewArguments::default().plan();
        let quick = OverviewArguments { quick: true, ..OverviewArguments::default() }.plan();
        assert!(quick.is_quick && !whole.is_quick && quick.parts == whole.parts);
        assert!(quick.time < whole.time && quick.floor_time < whole.floor_time && quick.turns.1 < whole.turns.1);
        assert!(quick.latency_messages < whole.latency_messages && quick.round_trips < whole.round_trips);
        assert!(quick.calls < whole.calls && quick.leader_kills < whole.leader_kills);
        assert!(quick.network_calls < whole.network_calls);
    }
}
