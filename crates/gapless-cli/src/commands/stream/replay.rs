//! `gapless stream replay`.

use super::location::StreamLocation;
use super::output::FormArguments;
use super::reading;
use super::reading::{ReadExtent, TimeoutArguments};
use crate::commands::{CommandResult, check_order};
use clap::Args;
use gapless_client::node::{AnyLink, JournalLink, Start, StreamNode, StreamNodeOptions};
use gapless_client::stream_layout::StreamLayout;
use gapless_transport::tier::Tier;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    #[command(flatten)]
    form: FormArguments,
    /// First sequence [default: the first kept one]
    #[arg(long, value_name = "SEQUENCE", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,
    /// Last sequence [default: the last one]
    #[arg(long, value_name = "SEQUENCE")]
    to: Option<u64>,
    /// Read from the sequencer, even if the journal is local
    #[arg(long)]
    rewind: bool,
    #[command(flatten)]
    patience: TimeoutArguments,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    check_order(arguments.from, arguments.to)?;
    let config = arguments.location.config()?;
    let journal = config.directory().map(|directory| StreamLayout::new(directory).journal());
    if let Some(journal) = journal.as_ref().filter(|_| config.sequencer.tier == Some(Tier::Memory) && !arguments.rewind)
    {
        return Err(format!(
            "a stream of tier memory has no journal (that in {} would be of another stream): --rewind asks its sequencer",
            journal.display()
        )
        .into());
    }
    let link: AnyLink = match journal.filter(|journal| journal.is_dir() && !arguments.rewind) {
        Some(journal) => JournalLink::new(&journal).into(),
        None => config.link()?,
    };
    let node = StreamNode::new(link, StreamNodeOptions::reading(arguments.from.map_or(Start::First, Start::Sequence)));
    let extent = ReadExtent { last_sequence: arguments.to, lines: None, follows: false };
    reading::print(node, arguments.form.output(), extent, &arguments.patience)
}
