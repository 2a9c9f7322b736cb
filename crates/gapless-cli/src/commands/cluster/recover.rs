//! `gapless cluster recover`.

use super::file::{OwnEntry, rewritten};
use super::member::MemberFile;
use crate::commands::{CommandResult, UsageError, print};
use clap::Args;
use gapless_agent::checked_file;
use gapless_agent::regular_file::read_text;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::config::{ClusterConfig, MemberKind};
use gapless_cluster::member::recover::ForcedRecovery;
use gapless_engine::{directory_consistency, snapshot};
use gapless_journal::FileReplacement;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Args)]
pub(super) struct Arguments {
    /// File of the member; it is replaced, and the old one is kept with the suffix .old
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Make this member a cluster of one, even if others have more entries
    #[arg(long, required = true)]
    force_single: bool,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    debug_assert!(arguments.force_single, "clap asks for it");
    let path = &arguments.file;
    let config = MemberFile::at(path).config()?;
    if config.own().kind != MemberKind::Full {
        return Err(format!("member {} is no full member, and could serve nobody alone", config.member).into());
    }
    let template = read_text(path).map_err(|error| format!("reading {}: {error}", path.display()))?;
    let incarnation = new_incarnation(config.incarnation);
    let written = ClusterConfig::parse(&template, &path.display().to_string())?;
    let directory = written.stream().directory().and_then(Path::to_str).unwrap_or_default();
    let own = OwnEntry { member: config.member, joins: false, incarnation, directory };
    let alone = [(config.member, config.own().addresses.clone(), "full")];
    let text = rewritten(&template, &alone, &own)?;
    let recovery = ForcedRecovery::open(&config, |layout| Ok(snapshot::points(&layout.snapshots())?))?;
    print(&format!(
        "member {} of {} keeps its frames up to sequence {}, of which a quorum surely had those up to {}; the last are of \
         term {}\nwhat other members have beyond that is lost, and they cannot come back: they have to be replaced by new \
         members\n",
        config.member,
        config.name,
        recovery.last_sequence(),
        recovery.committed_sequence(),
        recovery.term()
    ))?;
    if !arguments.yes {
        confirm(&config.name)?;
    }
    let mut set_aside = Vec::new();
    recovery.apply(incarnation, |kept| {
        let layout = StreamLayout::new(kept.root);
        set_aside = directory_consistency::adopt(&layout, kept.journal, kept.last_sequence, kept.identity)?;
        Ok(())
    })?;
    for path in set_aside {
        print(&format!("{} does not belong to these frames; it has this name now\n", path.display()))?;
    }
    replace(path, &text)?;
    print(&format!(
        "member {} is a cluster of one, incarnation {incarnation}; start it: gapless cluster start {}, or the program of its \
         service\n",
        config.member,
        path.display()
    ))
}

/// Differs from that of another member's recovery: the time in milliseconds.
fn new_incarnation(old: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    now.max(old + 1)
}

fn confirm(name: &str) -> CommandResult {
    if !std::io::stdin().is_terminal() {
        return Err(UsageError("--yes is expected where nobody can be asked".to_owned()).into());
    }
    print(&format!("type the cluster's name, {name}, to go on: "))?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.trim() == name { Ok(()) } else { Err("nothing was done".into()) }
}

/// The directory accepts only the new file from now on.
fn replace(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error| {
        format!(
            "the member is recovered, and its new file cannot be written to {}: {error}; run this command again",
            path.display()
        )
    };
    let names = std::iter::once(String::new()).chain((1..).map(|number: u64| format!("-{number}")));
    let named = names.map(|number| PathBuf::from(format!("{}.old{number}", path.display())));
    let old = named.into_iter().find(|path| !path.exists()).expect("a directory has fewer files");
    let new = PathBuf::from(format!("{}.new", path.display()));
    let replace = || {
        // Both files may contain passwords of clients.
        let permissions = std::fs::metadata(path)?.permissions();
        let mut file = FileReplacement::begin(path, new, 0o600)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(permissions.clone())?;
        file.sync()?;
        let mut kept = checked_file::create_new(&old, 0o600)?;
        kept.write_all(read_text(path)?.as_bytes())?;
        kept.set_permissions(permissions)?;
        file.put_in_place().map(drop)
    };
    replace().map_err(failed)
}
