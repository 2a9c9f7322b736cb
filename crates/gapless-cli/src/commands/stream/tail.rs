//! `gapless stream tail`.

use super::location::NodeLocation;
use super::output::FormArguments;
use super::reading;
use super::reading::{ReadExtent, TimeoutArguments};
use crate::commands::CommandResult;
use clap::Args;
use gapless_client::node::{Start, StreamNode};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: NodeLocation,
    #[command(flatten)]
    form: FormArguments,
    /// Position to read from: first, live, or a sequence [default: that of the file, else first]
    #[arg(long, value_name = "WHERE", value_parser = reading::start)]
    from: Option<Start>,
    /// Maximum number of lines
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Follow new messages, the default
    #[arg(long, overrides_with = "no_follow")]
    follow: bool,
    /// Stop at the current end
    #[arg(long)]
    no_follow: bool,
    #[command(flatten)]
    patience: TimeoutArguments,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let mut config = arguments.location.config()?;
    config.node.start = arguments.from.unwrap_or(config.node.start);
    let node = StreamNode::new(config.link()?, config.reading_options());
    let extent = ReadExtent { last_sequence: None, lines: arguments.count, follows: !arguments.no_follow };
    reading::print(node, arguments.form.output(), extent, &arguments.patience)
}
