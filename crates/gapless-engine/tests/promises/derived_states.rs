//! States derived by serde: snapshots name their program, version and fields; an upgrade reads older ones; an unordered
//! collection behind the attribute is found at the next start.

use gapless_client::polled::ClientOptions;
use gapless_engine::fold::{CheckSnapshots, Policy};
use gapless_engine::{Context, EngineError, Handlers, Service, ServiceHost, ServiceHostOptions};
use gapless_message::state::{self, OldState};
use gapless_message::{Message, NoRefusal, State};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Counts words, and answers how many this one has.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Count(String);

trait Words: State + Default {
    fn count(&mut self, word: String) -> u64;
}

#[derive(Default, Serialize, Deserialize, State)]
#[state(name = "Words")]
struct OldWords(BTreeMap<String, u32>);

#[derive(Default, Serialize, Deserialize, State)]
#[state(name = "Words", version = 2, upgrade = NewWords::of_older)]
struct NewWords {
    counts: BTreeMap<String, u64>,
    sum: u64,
}

#[derive(Default, Serialize, Deserialize, State)]
#[state(name = "Words", version = 2)]
struct OtherWords {
    counts: BTreeMap<String, u64>,
    sum: i64,
}

#[derive(Default, Serialize, Deserialize, State)]
#[state(name = "Texts")]
struct Texts(BTreeMap<String, u32>);

#[derive(Default, Serialize, Deserialize, State)]
struct Unordered {
    #[state(deterministic)]
    counts: HashMap<String, u64>,
}

impl Words for OldWords {
    fn count(&mut self, word: String) -> u64 {
        let count = self.0.entry(word).or_default();
        *count += 1;
        u64::from(*count)
    }
}

impl NewWords {
    fn of_older(old: OldState<'_>) -> Result<Self, String> {
        let OldWords(counts) = old.decode()?;
        let counts: BTreeMap<_, _> = counts.into_iter().map(|(word, count)| (word, u64::from(count))).collect();
        Ok(Self { sum: counts.values().sum(), counts })
    }
}

macro_rules! words {
    ($type:ident, $counts:tt) => {
        impl Words for $type {
            fn count(&mut self, word: String) -> u64 {
                let count = self.$counts.entry(word).or_default();
                *count += 1;
                u64::from(*count)
            }
        }
    };
}

words!(NewWords, counts);
words!(OtherWords, counts);
words!(Texts, 0);
words!(Unordered, counts);

#[derive(Default)]
struct Counter<W>(W);

impl<W: Words> Service for Counter<W> {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|counter: &mut Self, Count(word), _: &mut Context<'_>| Ok::<_, NoRefusal>(counter.0.count(word)));
    }

    fn snapshot(&self, bytes: &mut Vec<u8>) {
        state::write(&self.0, bytes);
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0 = state::read(bytes).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// Starts, counts each word, and stops with a snapshot. The counts.
fn run<W: Words>(directory: &Path, check: CheckSnapshots, words: &[&str]) -> Result<Vec<u64>, EngineError> {
    let policy = Policy { check_snapshots: check, program: Some("words".to_owned()), ..Policy::default() };
    let options = ServiceHostOptions { policy, ..ServiceHostOptions::in_directory(directory) };
    let host = ServiceHost::start(Counter::<W>::default(), options)?;
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 16).unwrap();
    let counts = words.iter().map(|word| {
        let Ok(count) = client.call_request(session, &Count((*word).to_owned()), PATIENCE).unwrap();
        count
    });
    let counts = counts.collect();
    host.stop().unwrap();
    Ok(counts)
}

#[test]
fn snapshots_name_program_and_version() {
    let directory = tempfile::tempdir().unwrap();
    let check = CheckSnapshots::AtStart;
    assert_eq!(run::<OldWords>(directory.path(), check, &["a", "b", "a"]).unwrap(), [1, 1, 2]);
    let refused = run::<Texts>(directory.path(), check, &[]).unwrap_err().to_string();
    assert!(refused.contains("the snapshot is of state Words, this program has state Texts"), "{refused}");
    let refused = run::<OtherWords>(directory.path(), check, &[]).unwrap_err().to_string();
    assert!(refused.contains("version 1 is not read by this program"), "{refused}");

    assert_eq!(run::<NewWords>(directory.path(), check, &["a", "c"]).unwrap(), [3, 1]);
    let refused = run::<OldWords>(directory.path(), check, &[]).unwrap_err().to_string();
    assert!(refused.contains("written by version 2 of Words, this program knows 1"), "{refused}");
    let refused = run::<OtherWords>(directory.path(), check, &[]).unwrap_err().to_string();
    assert!(refused.contains("Words.sum is i64 in this program and u64 in the snapshot"), "{refused}");
    assert_eq!(run::<NewWords>(directory.path(), check, &["a"]).unwrap(), [4]);
}

#[test]
fn unordered_state_is_found() {
    let directory = tempfile::tempdir().unwrap();
    // Equal orders of 64 words by chance: one in 64 factorial.
    let words: Vec<String> = (0..64).map(|number| number.to_string()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run::<Unordered>(directory.path(), CheckSnapshots::AtStart, &words).unwrap();
    let refused = run::<Unordered>(directory.path(), CheckSnapshots::AtStart, &[]).unwrap_err().to_string();
    assert!(refused.contains("as with an unordered collection: use BTreeMap"), "{refused}");
    assert_eq!(run::<Unordered>(directory.path(), CheckSnapshots::Never, &["7"]).unwrap(), [2]);
}
