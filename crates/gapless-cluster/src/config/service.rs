//! [`ServiceConfig`]: the table `[service]` of a member's file, what an operator decides about the service that runs
//! there; and the one change of a file that a program makes, a sequence to be skipped.

use super::{ClusterConfig, number};
use gapless_client::ClientError;
use gapless_client::stream_file::document::Table;
use gapless_stream::StreamError;
use std::collections::BTreeSet;
use toml::de::{DeTable, DeValue};

/// Sequences that a file may say.
pub const SKIPS_MAX: usize = 1024;

/// What becomes of a command that a service cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFault {
    /// The member stops with an error that names the command.
    Stop,
    /// The command is refused and recorded as a dead letter.
    DeadLetter,
}

impl OnFault {
    /// All of them, by their names.
    pub const NAMES: &'static [(&'static str, Self)] = &[("stop", Self::Stop), ("dead-letter", Self::DeadLetter)];
}

/// What the file says of the service. What it does not say is as the program says; sequences to be skipped are those of
/// both. All of it but the interval of snapshots is the same on each member: their states differ else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Commands and timers that are skipped, by their sequences.
    pub skip: BTreeSet<u64>,
    /// What becomes of a command whose handler panics.
    pub on_panic: Option<OnFault>,
    /// What becomes of a command that nobody handles.
    pub on_unhandled: Option<OnFault>,
    /// A snapshot after so many frames; 0 for none.
    pub snapshot_interval_frames: Option<u64>,
    /// The members' states are compared behind each sequence that is a multiple of this; 0 for none.
    pub hash_interval_frames: u64,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            skip: BTreeSet::new(),
            on_panic: None,
            on_unhandled: None,
            snapshot_interval_frames: None,
            hash_interval_frames: 1_000_000,
        }
    }
}

pub(super) fn read(mut table: Table<'_>) -> Result<ServiceConfig, ClientError> {
    let mut service = ServiceConfig::default();
    if let Some(skip) = table.take("skip") {
        let refused = skip.expected(format!("{SKIPS_MAX} sequences at most are allowed"));
        let sequences = skip.list()?;
        if sequences.len() > SKIPS_MAX {
            return Err(refused);
        }
        for sequence in sequences {
            if !service.skip.insert(number(&sequence)?) {
                return Err(sequence.expected("each sequence is allowed once"));
            }
        }
    }
    table.set("on_panic", &mut service.on_panic, |value| value.choice(OnFault::NAMES).map(Some))?;
    table.set("on_unhandled", &mut service.on_unhandled, |value| value.choice(OnFault::NAMES).map(Some))?;
    table.set("snapshot_interval_frames", &mut service.snapshot_interval_frames, |value| {
        value.whole(0..=i64::MAX as u64).map(Some)
    })?;
    table.set("hash_interval_frames", &mut service.hash_interval_frames, |value| value.whole(0..=i64::MAX as u64))?;
    table.end()?;
    Ok(service)
}

/// The file `text` with `sequence` among those that are skipped; all else stays as it is written. `name` is the file, for
/// messages.
///
/// # Errors
/// It is no member's file; it skips the sequence already; it is written in a way that is not understood here.
pub fn with_skip(text: &str, name: &str, sequence: u64) -> Result<String, StreamError> {
    let refuse = |reason: String| StreamError::Client(ClientError::Config { place: name.to_owned(), reason });
    let before = ClusterConfig::parse(text, name)?.service;
    if before.skip.contains(&sequence) {
        return Err(refuse(format!("service.skip: it has {sequence} already")));
    }
    let mut changed = text.to_owned();
    match place_for_skip(text) {
        // In front of the others: behind the last one there may be a comma, or a remark.
        Place::List(at) if before.skip.is_empty() => changed.insert_str(at, &sequence.to_string()),
        Place::List(at) => changed.insert_str(at, &format!("{sequence}, ")),
        Place::Table(at) => changed.insert_str(at, &format!("\nskip = [{sequence}]")),
        Place::End => {
            let gap = if text.is_empty() || text.ends_with('\n') { "\n" } else { "\n\n" };
            changed += &format!("{gap}[service]\nskip = [{sequence}]\n");
        }
    }
    let mut expected = before;
    expected.skip.insert(sequence);
    // Whatever form it was written in, what comes of it says what it should, or nothing comes of it.
    match ClusterConfig::parse(&changed, name) {
        Ok(found) if found.service == expected => Ok(changed),
        _ => Err(refuse(format!(
            "[service] is written in a way that this program cannot change; add {sequence} to service.skip by hand"
        ))),
    }
}

/// Where in a text a sequence goes.
enum Place {
    /// Behind the opening bracket of the list.
    List(usize),
    /// Behind the line of the table's name.
    Table(usize),
    /// There is no such table.
    End,
}

fn place_for_skip(text: &str) -> Place {
    let Ok(parsed) = DeTable::parse(text) else { return Place::End };
    let Some((name, table)) = parsed.get_ref().iter().find(|(key, _)| key.get_ref() == "service") else {
        return Place::End;
    };
    if let DeValue::Table(entries) = table.get_ref()
        && let Some((_, skip)) = entries.iter().find(|(key, _)| key.get_ref() == "skip")
    {
        return Place::List(skip.span().start + 1);
    }
    let behind = name.span().end;
    Place::Table(text[behind..].find('\n').map_or(text.len(), |length| behind + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Ours.\n[cluster]\nname = \"c\"\nmember = 1\n[[member]]\nid = 1\naddresses = [\"h:1\"]\n[stream]\n\
                        directory = \"d\"\n";

    #[track_caller]
    fn skipping(service: &str, sequence: u64, expected: &str) {
        let found = with_skip(&format!("{FILE}{service}"), "c.toml", sequence);
        assert_eq!(found.unwrap_or_else(|error| panic!("{error}")), format!("{FILE}{expected}"));
    }

    #[test]
    fn a_sequence_is_added_and_all_else_stays() {
        skipping("", 7, "\n[service]\nskip = [7]\n");
        skipping("# end", 7, "# end\n\n[service]\nskip = [7]\n");
        skipping(
            "[service] # panics\non_panic = \"stop\"\n",
            7,
            "[service] # panics\nskip = [7]\non_panic = \"stop\"\n",
        );
        skipping("[service]", 7, "[service]\nskip = [7]");
        skipping("[service]\nskip = []\n", 7, "[service]\nskip = [7]\n");
        let several = "[ service ]\nskip = [ # why\n  3, # this\n  5,\n]\n";
        skipping(several, 4, "[ service ]\nskip = [4,  # why\n  3, # this\n  5,\n]\n");
        skipping("[service]\n\"skip\" = [3]\n[election]\n", 4, "[service]\n\"skip\" = [4, 3]\n[election]\n");
    }

    #[test]
    fn what_cannot_be_added_is_refused() {
        let refused = |service: &str, words: &str| {
            let found = with_skip(&format!("{FILE}{service}"), "c.toml", 7);
            assert!(found.as_ref().is_err_and(|error| error.to_string().contains(words)), "{service}: {found:?}");
        };
        refused("[service]\nskip = [3, 7]\n", "c.toml: service.skip: it has 7 already");
        refused("[service]\nskip = [3, 3]\n", "each sequence is allowed once");
        refused("[service]\nskip = [0]\n", "0 was found");
        refused("[service]\nskip = 7\n", "a list is allowed");
        refused("[service]\non_panic = \"go on\"\n", "\"stop\", \"dead-letter\" are allowed");
        refused("[service]\nkeep = 1\n", "unknown");
        let inline = FILE.replace("[cluster]", "service = { on_panic = \"stop\" }\n[cluster]");
        let found = with_skip(&inline, "c.toml", 7);
        assert!(found.is_err_and(|error| error.to_string().contains("by hand")));
        let all: Vec<String> = (1..=SKIPS_MAX as u64 + 1).map(|sequence| sequence.to_string()).collect();
        refused(&format!("[service]\nskip = [{}]\n", all.join(", ")), "1024 sequences at most");
    }
}
