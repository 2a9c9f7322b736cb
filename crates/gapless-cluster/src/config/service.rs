//! [`ServiceConfig`]: the table `[service]`, and its only change by a program: a further sequence to skip.

use super::{ClusterConfig, number};
use gapless_config::{ConfigError, Table};
use gapless_stream::StreamError;
use std::collections::BTreeSet;
use toml::de::{DeTable, DeValue};

/// Largest number of sequences in `skip`.
pub const SKIPS_MAX: usize = 1024;

/// Policy for a command that a service cannot handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFault {
    Stop,
    /// Refused and recorded as a dead letter.
    DeadLetter,
}

impl OnFault {
    /// Every choice with its name in the file.
    pub const NAMES: &'static [(&'static str, Self)] = &[("stop", Self::Stop), ("dead-letter", Self::DeadLetter)];
}

/// Absent settings keep the program's values; the sequences to skip are the union of the file's and the program's. All
/// but the snapshot interval must be equal on every member, or the members' states diverge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// Sequences of commands and timers to skip.
    pub skip: BTreeSet<u64>,
    /// Policy for a command whose handler panics.
    pub on_panic: Option<OnFault>,
    /// Policy for a command without a handler.
    pub on_unhandled: Option<OnFault>,
    /// Frames between two snapshots; 0 for none.
    pub snapshot_interval_frames: Option<u64>,
    /// Sequences between two comparisons of the members' states; 0 for never.
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

pub(super) fn read(mut table: Table<'_>) -> Result<ServiceConfig, ConfigError> {
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

/// Adds `sequence` to those to skip in the file's `text`; every other byte stays. `name` is the file, for messages.
///
/// # Errors
/// The text is not a member's file, already skips the sequence, or has a form of the table that cannot be changed.
pub fn with_skip(text: &str, name: &str, sequence: u64) -> Result<String, StreamError> {
    let refuse = |reason: String| StreamError::Config(ConfigError::Refused { place: name.to_owned(), reason });
    let before = ClusterConfig::parse(text, name)?.service;
    if before.skip.contains(&sequence) {
        return Err(refuse(format!("service.skip: it has {sequence} already")));
    }
    let mut changed = text.to_owned();
    match skip_insertion(text) {
        // At the front, because a comma or a comment may follow the last element.
        SkipInsertion::List(at) if before.skip.is_empty() => changed.insert_str(at, &sequence.to_string()),
        SkipInsertion::List(at) => changed.insert_str(at, &format!("{sequence}, ")),
        SkipInsertion::Table(at) => changed.insert_str(at, &format!("\nskip = [{sequence}]")),
        SkipInsertion::End => {
            let gap = if text.is_empty() || text.ends_with('\n') { "\n" } else { "\n\n" };
            changed += &format!("{gap}[service]\nskip = [{sequence}]\n");
        }
    }
    let mut expected = before;
    expected.skip.insert(sequence);
    match ClusterConfig::parse(&changed, name) {
        Ok(found) if found.service == expected => Ok(changed),
        _ => Err(refuse(format!(
            "[service] is written in a way that this program cannot change; add {sequence} to service.skip by hand"
        ))),
    }
}

enum SkipInsertion {
    List(usize),
    Table(usize),
    End,
}

fn skip_insertion(text: &str) -> SkipInsertion {
    let Ok(parsed) = DeTable::parse(text) else { return SkipInsertion::End };
    let Some((name, table)) = parsed.get_ref().iter().find(|(key, _)| key.get_ref() == "service") else {
        return SkipInsertion::End;
    };
    if let DeValue::Table(entries) = table.get_ref()
        && let Some((_, skip)) = entries.iter().find(|(key, _)| key.get_ref() == "skip")
    {
        return SkipInsertion::List(skip.span().start + 1);
    }
    let after_name = name.span().end;
    SkipInsertion::Table(text[after_name..].find('\n').map_or(text.len(), |length| after_name + length))
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
    fn skip_is_added() {
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
    fn invalid_skip_is_refused() {
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
