//! `gapless journal restore`.

use super::directory::layout_of;
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_client::stream_layout::StreamLayout;
use gapless_cqrs::DerivedFiles;
use gapless_engine::directory_consistency;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a stream or a service
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let layout = layout_of(&arguments.directory).unwrap_or_else(|| StreamLayout::new(&arguments.directory));
    let restored = directory_consistency::restore(&layout)?;
    let removed = DerivedFiles::remove(layout.root())?;
    if arguments.json {
        let set_aside: Vec<String> = restored.set_aside.iter().map(|path| path.display().to_string()).collect();
        let object = json!({
            "directory": layout.root().display().to_string(),
            "last_sequence": restored.last_sequence,
            "incarnation_before": format!("{:016x}", restored.incarnation_before),
            "incarnation": format!("{:016x}", restored.incarnation),
            "set_aside": set_aside,
            "removed": removed.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        });
        return print(&format!("{}\n", serde_json::to_string_pretty(&object)?));
    }
    let mut text = format!(
        "{} is a history of its own, to sequence {}: incarnation {:016x}, before {:016x}\n",
        layout.root().display(),
        restored.last_sequence,
        restored.incarnation,
        restored.incarnation_before
    );
    for path in &restored.set_aside {
        text += &format!("set aside, not of this history: {}\n", path.display());
    }
    for path in &removed {
        text += &format!("removed, made anew of the journal: {}\n", path.display());
    }
    print(&text)
}
