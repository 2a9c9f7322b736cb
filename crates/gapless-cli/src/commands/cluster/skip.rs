//! `gapless cluster skip`.

use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_agent::regular_file::read_text;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::config::{ClusterConfig, MemberKind, service};
use gapless_journal::{FileReplacement, JournalError, JournalReader};
use gapless_wire::Kind;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct Arguments {
    /// Sequence of the command, as reported by the stopped members
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    sequence: u64,
    /// Files of the members
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let sequence = arguments.sequence;
    let mut changed: Vec<(&Path, ClusterConfig, String)> = Vec::new();
    for file in &arguments.files {
        let name = file.display().to_string();
        let text = read_text(file).map_err(|error| format!("reading {name}: {error}"))?;
        let new = service::with_skip(&text, &name, sequence)?;
        let config = ClusterConfig::parse(&new, &name)?;
        if let Some((other, ..)) = changed.iter().find(|(_, each, _)| each.member == config.member) {
            return Err(format!("{} and {name} are both of member {}", other.display(), config.member).into());
        }
        if let Some((other, each, _)) = changed.first().filter(|(_, each, _)| each.name != config.name) {
            let (first, second) = (&each.name, &config.name);
            return Err(format!("{} is of the cluster {first}, {name} of {second}", other.display()).into());
        }
        // A loaded configuration resolves the directory from the file's place.
        check_holds_command(&ClusterConfig::load(file)?, sequence)?;
        changed.push((file, config, new));
    }
    let mut said = String::new();
    for (file, config, text) in &changed {
        write(file, text).map_err(|error| format!("writing {}: {error}", file.display()))?;
        let _ = writeln!(said, "member {} skips {sequence} from its next start on", config.member);
    }
    let runs_service = |each: &&gapless_cluster::config::MemberConfig| {
        each.kind != MemberKind::Witness && is_missing(&changed, each.id)
    };
    let missing: Vec<_> = changed[0].1.members.iter().filter(runs_service).map(|each| each.id.to_string()).collect();
    if !missing.is_empty() {
        let _ = writeln!(
            said,
            "the files of {} need it as well, before they start: copies differ else",
            missing.join(", ")
        );
    }
    print(&said)
}

/// A wrong number would be skipped when it comes. Checked if the member's journal is on this machine.
fn check_holds_command(config: &ClusterConfig, sequence: u64) -> Result<(), Box<dyn std::error::Error>> {
    let Some(root) = config.stream().directory() else { return Ok(()) };
    let journal = StreamLayout::new(root).journal();
    if !journal.is_dir() {
        return Ok(());
    }
    let reader = match JournalReader::open_complete(journal) {
        Ok(reader) => reader,
        Err(JournalError::NoJournal { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (member, first, last) = (config.member, reader.first_sequence(), reader.last_sequence()?);
    if sequence > last {
        let why = format!(
            "the journal of member {member} ends at sequence {last}: there is nothing at {sequence} to be skipped"
        );
        return Err(why.into());
    }
    if sequence < first {
        // The member has a later snapshot; others may not.
        return Ok(());
    }
    let mut replay = reader.replay_until(sequence, sequence)?;
    let kind = replay.next_frame()?.map(|frame| frame.kind());
    match kind {
        None | Some(Kind::Command | Kind::Timer) => Ok(()),
        Some(other) => Err(format!("sequence {sequence} is no command but a {other:?}: no handler stops at it").into()),
    }
}

fn is_missing(changed: &[(&Path, ClusterConfig, String)], member: u64) -> bool {
    !changed.iter().any(|(_, config, _)| config.member == member)
}

/// Atomic; at the target of a symbolic link.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let file = file.canonicalize()?;
    let mut new = FileReplacement::begin(&file, file.with_extension("toml.new"), 0o666)?;
    new.set_permissions(std::fs::metadata(&file)?.permissions())?;
    new.write_all(text.as_bytes())?;
    new.sync()?;
    new.put_in_place().map(drop)
}
