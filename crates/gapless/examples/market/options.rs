use clap::{Parser, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub const ENTRIES: u64 = 3;
pub const INSTANCES: u64 = 2;

/// A small market: three order-entry nodes, a matching service in two instances, a market-data reader and the
/// sequencer, each a process of its own.
///
/// At the end it looks whether everything adds up: each order had its outcome once, both instances have the same book,
/// the reader built the same book from the stream, no share and no cent came into being or went.
#[derive(Clone, Debug, Parser)]
#[command(name = "market", after_help = EXAMPLES)]
pub struct Options {
    /// Transport of the stream.
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,

    /// Number of requests of each entry node, orders and cancels.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub orders: u64,

    /// Send for so many seconds instead.
    #[arg(long, value_name = "SECONDS", conflicts_with = "orders", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,

    /// Requests per second of each entry node; 0 for no limit.
    #[arg(long, value_name = "RATE", default_value_t = 2_000)]
    pub orders_per_second: u64,

    /// Kill an instance of the matching service in the middle, look whether the market goes on, start it again.
    #[arg(long)]
    pub kill_an_instance: bool,

    /// Orders follow from it; how the nodes' orders come to lie between each other does not.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Role of this process.
    #[arg(long, hide = true, requires = "place")]
    pub role: Option<Role>,

    /// Directory that the parent shares with its processes.
    #[arg(long, hide = true)]
    pub place: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release --example market
  cargo run --release --example market -- --transport multicast --kill-an-instance
  cargo run --release --example market -- --orders 1000000 --orders-per-second 0
  cargo run --release --example market -- --seconds 60 --transport tcp --seed 7

It ends with 0 if everything adds up, with 1 if not or after an error, with 2 for a wrong
option, and with 130 when it was stopped by Ctrl-C. Its files are in a temporary directory,
which it removes.";

/// Transport of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Memory that the processes share.
    #[default]
    SharedMemory,
    /// MoldUDP64 to each process by itself.
    Udp,
    /// MoldUDP64 to two groups, feeds A and B.
    Multicast,
    /// SoupBinTCP.
    Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Sequencer,
    Entry(u64),
    Matching(u64),
    Reader,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequencer => formatter.write_str("sequencer"),
            Self::Entry(number) => write!(formatter, "entry-{number}"),
            Self::Matching(number) => write!(formatter, "matching-{number}"),
            Self::Reader => formatter.write_str("reader"),
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Sequencer, Self::Reader];
        let all = all.into_iter().chain((1..=ENTRIES).map(Self::Entry)).chain((1..=INSTANCES).map(Self::Matching));
        all.into_iter().find(|role| role.to_string() == text).ok_or_else(|| format!("{text:?} is no process of it"))
    }
}
