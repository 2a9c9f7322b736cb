//! [`Voting`]: whether a member may vote, as its directory says. A small file beside the journal:
//!
//! ```text
//! voting   <state> <starts> <tier>
//!          state   new         it has not voted yet
//!                  level       it has all that it ever acknowledged, if the machine has not lost power since
//!                  behind:7    it may lack what it acknowledged in terms up to 7
//!                  behind:?    the same; nobody has looked yet up to which term
//!          starts  how often it was started
//!          tier    synced or unsynced: how what the journal holds came there
//! ```
//!
//! **A lost disk.** A new member takes part once it has heard from all other voters of its file. Each of them keeps which
//! instance it is before it says anything, so from then on every voter refuses another directory under this number: one
//! that has lost its directory hears from nobody, and takes part never again. Where voters have changed since the file was
//! written it is told so by who it has heard: it waits for those who vote now, and not for who was removed.
//!
//! **Lost power.** At a tier that does not sync, a machine that starts anew makes the member one that is behind (see
//! `consensus::behind`). That stands here before the journal is opened: opening it makes it one of this boot.

use super::standing_files::{read_text, write_durably};
use crate::ClusterError;
use crate::consensus::{Behind, MemberId, Standing};
use gapless_journal::{Environment, JournalError, JournalReader};
use std::path::{Path, PathBuf};

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Level,
    /// Up to which term, once somebody has looked.
    Behind(Option<u64>),
}

/// The file.
#[derive(Debug)]
pub(super) struct Voting {
    path: PathBuf,
    state: State,
    starts: u64,
    is_synced: bool,
    /// From whom a new member has not heard yet, and from whom it has.
    awaited: Vec<u64>,
    heard: Vec<u64>,
    /// Of the newest change of members that it was told of.
    told_index: u64,
}

impl Voting {
    /// To be called before the journal is opened for writing. `awaited`: the other voters of a new cluster's file.
    pub fn begin(
        directory: &Path,
        journal: &Path,
        environment: Environment,
        is_synced: bool,
        awaited: Vec<u64>,
    ) -> Result<Self, ClusterError> {
        let path = directory.join("voting");
        let boot = match JournalReader::open_in(journal, environment) {
            Ok(reader) => Some(reader.is_same_boot()),
            Err(JournalError::NoJournal { .. }) => None,
            // Whatever is wrong with it, opening it for writing says so.
            Err(_) if journal.is_dir() => Some(false),
            Err(_) => None,
        };
        let found = read_text(&path)?.map(|text| parse(&text).ok_or(())).transpose();
        let Ok(found) = found else { return Err(ClusterError::Damaged { path }) };
        let (state, starts, was_synced) = match (found, boot) {
            (None, None) => (State::New, 0, is_synced),
            // Of a version that did not write it.
            (None, Some(_)) => (State::Level, 0, is_synced),
            (Some((State::New, ..)), _) | (Some(_), Some(_)) => found.expect("it is there"),
            (Some(_), None) => {
                let reason = "the member has voted, and its journal is gone; put it back, or remove the member from its \
                              cluster and add a new one with an empty directory";
                return Err(ClusterError::Foreign { path: journal.to_owned(), reason: reason.to_owned() });
            }
        };
        let has_lost_power = state != State::New && boot == Some(false) && !was_synced;
        let state = if has_lost_power { State::Behind(None) } else { state };
        let awaited = if state == State::New { awaited } else { Vec::new() };
        let voting = Self {
            path,
            state,
            starts: starts + 1,
            is_synced: is_synced && was_synced,
            awaited,
            heard: Vec::new(),
            told_index: 0,
        };
        voting.write()?;
        Ok(voting)
    }

    /// The journal is read, and says that this is the newest term. Returns whether the member is behind.
    pub fn recovered(&mut self, term: u64) -> Result<Option<Behind>, ClusterError> {
        let State::Behind(known) = self.state else { return Ok(None) };
        let term = known.unwrap_or(term);
        if known.is_none() {
            self.state = State::Behind(Some(term));
            self.write()?;
        }
        tracing::warn!(
            term,
            "this machine has started anew, and at this tier the end of the journal may be missing: the member's vote \
             counts only together with everybody's until it has caught up"
        );
        Ok(Some(Behind { term, start: self.starts }))
    }

    /// All of the journal is on the device, and what follows will be.
    pub fn is_synced_now(&mut self) -> Result<(), ClusterError> {
        if std::mem::replace(&mut self.is_synced, true) {
            return Ok(());
        }
        self.write()
    }

    /// Whether it has to hear from others before it takes part.
    pub fn is_new(&self) -> bool {
        self.state == State::New
    }

    /// From whom it has to hear.
    pub fn awaited(&self) -> &[u64] {
        &self.awaited
    }

    /// Another member has spoken, so it has kept who this is.
    pub fn heard(&mut self, member: u64) {
        if !self.heard.contains(&member) {
            self.awaited.retain(|awaited| *awaited != member);
            self.heard.push(member);
        }
    }

    /// Another member says who votes now: a new member waits for those, and for nobody who was removed.
    pub fn told(&mut self, own: MemberId, standing: &Standing) {
        if !self.is_new() || self.awaited.is_empty() || standing.index <= self.told_index {
            return;
        }
        self.told_index = standing.index;
        self.awaited.retain(|awaited| MemberId::new(*awaited).is_none_or(|member| !standing.has_removed(member)));
        for voter in standing.members.all().into_iter().filter(|member| standing.members.votes(*member)) {
            let number = voter.get();
            if voter != own && !self.heard.contains(&number) && !self.awaited.contains(&number) {
                self.awaited.push(number);
            }
        }
    }

    /// Whether everybody awaited was heard: from now on it takes part.
    pub fn takes_part(&mut self) -> Result<bool, ClusterError> {
        if !self.is_new() || !self.awaited.is_empty() {
            return Ok(!self.is_new());
        }
        self.state = State::Level;
        self.write()?;
        tracing::info!("all members have met; this one takes part");
        Ok(true)
    }

    /// Consensus says that it is behind, or not.
    pub fn follow(&mut self, is_behind: bool) -> Result<(), ClusterError> {
        if is_behind || !matches!(self.state, State::Behind(_)) {
            return Ok(());
        }
        self.state = State::Level;
        self.write()
    }

    fn write(&self) -> Result<(), ClusterError> {
        let state = match self.state {
            State::New => "new".to_owned(),
            State::Level => "level".to_owned(),
            State::Behind(None) => "behind:?".to_owned(),
            State::Behind(Some(term)) => format!("behind:{term}"),
        };
        let tier = if self.is_synced { "synced" } else { "unsynced" };
        write_durably(&self.path, &format!("{state} {} {tier}\n", self.starts))
    }
}

fn parse(text: &str) -> Option<(State, u64, bool)> {
    let mut words = text.split_ascii_whitespace();
    let state = match words.next()? {
        "new" => State::New,
        "level" => State::Level,
        "behind:?" => State::Behind(None),
        word => State::Behind(Some(word.strip_prefix("behind:")?.parse().ok()?)),
    };
    let starts = words.next()?.parse().ok().filter(|starts| *starts < u64::MAX)?;
    let is_synced = match words.next()? {
        "synced" => true,
        "unsynced" => false,
        _ => return None,
    };
    words.next().is_none().then_some((state, starts, is_synced))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::consensus::Members;
    use gapless_journal::{BootId, Journal, JournalOptions};

    struct Machine {
        root: tempfile::TempDir,
        boot: u128,
        is_synced: bool,
    }

    impl Machine {
        fn new(is_synced: bool) -> Self {
            Self { root: tempfile::tempdir().unwrap(), boot: 1, is_synced }
        }

        /// As a member starts: the file, then the journal.
        fn start(&self) -> Result<Voting, ClusterError> {
            let journal = self.root.path().join("journal");
            let environment = Environment { boot_id: Some(BootId(self.boot)), ..Environment::default() };
            let voting = Voting::begin(self.root.path(), &journal, environment.clone(), self.is_synced, vec![2, 3])?;
            std::fs::create_dir_all(&journal).unwrap();
            let mut options = JournalOptions::new(&journal, 5);
            options.segment_length_bytes = 2 << 20;
            options.environment = environment;
            Journal::open(options).unwrap();
            Ok(voting)
        }

        fn admitted(&self) -> Voting {
            let mut voting = self.start().unwrap();
            voting.heard(2);
            assert!(!voting.takes_part().unwrap());
            voting.heard(3);
            assert!(voting.takes_part().unwrap());
            voting
        }
    }

    #[test]
    fn a_new_member_takes_part_when_it_has_heard_from_all_and_for_ever() {
        let mut machine = Machine::new(false);
        assert_eq!(machine.start().unwrap().awaited(), [2, 3]);
        machine.boot = 2;
        // It has acknowledged nothing.
        let mut again = machine.start().unwrap();
        assert!(again.is_new() && again.recovered(1).unwrap().is_none());
        drop(machine.admitted());
        assert!(machine.start().unwrap().takes_part().unwrap());
    }

    #[test]
    fn a_new_member_waits_for_who_votes_now_and_not_for_who_was_removed() {
        let member = |number| MemberId::new(number).unwrap();
        let standing = |index, voters: &[u64]| {
            let voters = voters.iter().map(|number| member(*number)).collect();
            Standing { index, members: Members { voters, ..Members::default() } }
        };
        let machine = Machine::new(false);
        let mut voting = machine.start().unwrap();
        voting.heard(2);
        // Member 3 has made way for 4, as 2 says.
        voting.told(member(1), &standing(7, &[1, 2, 4]));
        assert_eq!(voting.awaited(), [4]);
        assert!(!voting.takes_part().unwrap(), "it might be known to who came");
        // Somebody who is behind does not know.
        voting.told(member(1), &standing(3, &[1, 2, 3]));
        assert_eq!(voting.awaited(), [4]);
        voting.heard(4);
        assert!(voting.takes_part().unwrap());
        voting.told(member(1), &standing(9, &[1, 2, 4, 5]));
        assert!(voting.takes_part().unwrap() && voting.awaited().is_empty());
    }

    #[test]
    fn another_boot_puts_a_member_behind_until_it_is_level_whatever_dies_meanwhile() {
        let mut machine = Machine::new(false);
        drop(machine.admitted());
        assert_eq!(machine.start().unwrap().recovered(4).unwrap(), None, "the same boot");
        machine.boot = 2;
        // Killed before anybody has looked: the journal is of this boot now.
        drop(machine.start().unwrap());
        assert_eq!(machine.start().unwrap().recovered(4).unwrap(), Some(Behind { term: 4, start: 4 }));
        let mut voting = machine.start().unwrap();
        assert_eq!(voting.recovered(6).unwrap(), Some(Behind { term: 4, start: 5 }), "as it was at the loss");
        voting.follow(true).unwrap();
        voting.follow(false).unwrap();
        assert_eq!(machine.start().unwrap().recovered(6).unwrap(), None);
        machine.boot = 3;
        assert_eq!(machine.start().unwrap().recovered(6).unwrap(), Some(Behind { term: 6, start: 7 }));
        machine.boot = 4;
        assert_eq!(machine.start().unwrap().recovered(8).unwrap().map(|behind| behind.term), Some(8));
    }

    #[test]
    fn what_is_synced_is_not_lost_with_the_power() {
        let mut machine = Machine::new(true);
        drop(machine.admitted());
        machine.boot = 2;
        assert_eq!(machine.start().unwrap().recovered(4).unwrap(), None);
        // What came while the tier was another one is.
        machine.is_synced = false;
        drop(machine.start().unwrap());
        machine.is_synced = true;
        machine.boot = 3;
        let mut voting = machine.start().unwrap();
        assert!(voting.recovered(4).unwrap().is_some());
        voting.is_synced_now().unwrap();
        voting.follow(false).unwrap();
        machine.boot = 4;
        assert_eq!(machine.start().unwrap().recovered(4).unwrap(), None);
    }

    #[test]
    fn a_journal_that_is_gone_and_a_damaged_file_are_errors() {
        let machine = Machine::new(false);
        drop(machine.admitted());
        std::fs::remove_dir_all(machine.root.path().join("journal")).unwrap();
        assert!(machine.start().unwrap_err().to_string().contains("journal is gone"));
        for text in ["", "level", "level 1", "level x synced", "behind 1 synced", "level 1 synced 2", "other 1 synced"]
        {
            std::fs::write(machine.root.path().join("voting"), text).unwrap();
            assert!(machine.start().unwrap_err().to_string().contains("damaged"), "{text:?}");
        }
    }
}
