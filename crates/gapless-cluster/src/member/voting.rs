//! [`Voting`]: permission of a member to vote, from its directory. A small sealed file next to the journal:
//!
//! ```text
//! voting   <state> <starts> <tier> <ballot>
//!          state   new         it has not voted yet
//!                  level       it has everything it ever acknowledged, unless the machine has lost power since
//!                  behind:7    it may lack entries that it acknowledged in terms up to 7
//!                  behind:?    the same; the term is not determined yet
//!          starts  number of its starts
//!          tier    synced or unsynced: kind of the journal's writes so far
//!          ballot  number of the newest slot of `ballot`; not written by an older version
//! ```
//!
//! **An older copy.** `ballot` records the start at which it was written, and this file the slot that `ballot` had
//! reached. If one of the two is missing or replaced by a copy from before the last start, the other one shows it, and
//! the member does not start; nor does it if both are missing and there is a journal.
//!
//! **A lost disk.** A new member takes part once it has received a message from all other voters of its file. Each of
//! them stores the member's instance before it sends anything, so from then on every voter refuses another directory
//! under this number: a member that has lost its directory receives nothing, and never takes part again. If voters have
//! changed since the file was written, the connected members report that: the member waits for the present voters, and
//! not for removed ones.
//!
//! **Lost power.** At a tier that does not sync, a member whose machine was restarted is rejoining (see
//! `consensus::core::rejoining`). That is written here before the journal is opened, because opening it marks the journal with
//! the new boot.

use super::ballot;
use super::member_files::MemberFiles;
use crate::ClusterError;
use crate::consensus::{MemberId, MembershipView, RejoinState};
use gapless_journal::{JournalEnvironment, JournalError, JournalReader};
use std::path::Path;

const NAME: &str = "voting";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VotingState {
    New,
    CaughtUp,
    /// Rejoining, with the last term in which it may lack acknowledged entries, once determined.
    Rejoining(Option<u64>),
}

#[derive(Debug)]
struct VotingFile {
    state: VotingState,
    starts: u64,
    is_synced: bool,
    ballot_number: u64,
}

#[derive(Debug)]
pub(super) struct Voting {
    files: MemberFiles,
    file: VotingFile,
    awaited: Vec<u64>,
    contacted: Vec<u64>,
    /// Index of the newest view of the members that it has received.
    recorded_index: u64,
}

impl Voting {
    /// Reads the file before the journal is opened for writing. `awaited`: the other voters of a new cluster's file.
    pub fn begin(
        files: &MemberFiles,
        journal: &Path,
        environment: JournalEnvironment,
        ballot: &ballot::StoredBallot,
        is_synced: bool,
        awaited: Vec<u64>,
    ) -> Result<Self, ClusterError> {
        let boot = match JournalReader::open_in(journal, environment) {
            Ok(reader) => Some(reader.is_same_boot()),
            Err(JournalError::NoJournal { .. }) => None,
            Err(_) if !journal.exists() => None,
            Err(error) => return Err(error.into()),
        };
        let found = files.read(NAME)?;
        let found = found.map(|text| VotingFile::parse(&text).ok_or_else(|| files.damaged(NAME))).transpose()?;
        // This file is written before the ballot and the journal.
        if found.is_none() && (ballot.starts > 0 || boot.is_some()) {
            return Err(files.missing(NAME));
        }
        found.as_ref().map_or(Ok(()), |found| found.check_matches(files, ballot))?;
        let VotingFile { state, starts, is_synced: was_synced, ballot_number } = match (found, boot) {
            (None, _) => VotingFile { state: VotingState::New, starts: 0, is_synced, ballot_number: 0 },
            (Some(found), _) if found.state == VotingState::New || boot.is_some() => found,
            (Some(_), _) => {
                let reason = "the member has voted, and its journal is gone; put it back, or remove the member from its \
                              cluster and add a new one with an empty directory";
                return Err(ClusterError::Foreign { path: journal.to_owned(), reason: reason.to_owned() });
            }
        };
        let has_lost_power = state != VotingState::New && boot == Some(false) && !was_synced;
        let state = if has_lost_power { VotingState::Rejoining(None) } else { state };
        let awaited = if state == VotingState::New { awaited } else { Vec::new() };
        let file = VotingFile { state, starts: starts + 1, is_synced: is_synced && was_synced, ballot_number };
        let voting = Self { files: files.clone(), file, awaited, contacted: Vec::new(), recorded_index: 0 };
        voting.write()?;
        Ok(voting)
    }

    /// Resets the file for a recovery: the journal's content is the whole cluster's, and there is no ballot.
    pub fn reset_for_recovery(files: &MemberFiles, is_synced: bool) -> Result<(), ClusterError> {
        let file = VotingFile { state: VotingState::CaughtUp, starts: 1, is_synced, ballot_number: 0 };
        files.write(NAME, &file.to_text())
    }

    /// Starts of the member, including this one.
    pub const fn starts(&self) -> u64 {
        self.file.starts
    }

    /// Notes the journal's newest term and the ballot's slot of this start; returns the term of a rejoining member.
    pub fn recovered(&mut self, term: u64, ballot_number: u64) -> Result<Option<RejoinState>, ClusterError> {
        self.file.ballot_number = ballot_number;
        let VotingState::Rejoining(known) = self.file.state else { return self.write().map(|()| None) };
        let term = known.unwrap_or(term);
        self.file.state = VotingState::Rejoining(Some(term));
        self.write()?;
        tracing::warn!(
            term,
            "this machine has started anew, and at this tier the end of the journal may be missing: the member's vote \
             counts only together with everybody's until it has caught up"
        );
        Ok(Some(RejoinState { term, start: self.file.starts }))
    }

    /// The whole journal is on the device, and later frames will be synced.
    pub fn note_synced(&mut self) -> Result<(), ClusterError> {
        if std::mem::replace(&mut self.file.is_synced, true) {
            return Ok(());
        }
        self.write()
    }

    /// Needs messages from others before it takes part.
    pub fn is_new(&self) -> bool {
        self.file.state == VotingState::New
    }

    /// Voters without a message so far.
    pub fn awaited(&self) -> &[u64] {
        &self.awaited
    }

    /// The sender has stored this member's instance.
    pub fn note_message(&mut self, member: u64) {
        if !self.contacted.contains(&member) {
            self.awaited.retain(|awaited| *awaited != member);
            self.contacted.push(member);
        }
    }

    /// A new member waits for the present voters, and not for removed ones.
    pub fn apply_view(&mut self, own: MemberId, view: &MembershipView) {
        if !self.is_new() || self.awaited.is_empty() || view.index <= self.recorded_index {
            return;
        }
        self.recorded_index = view.index;
        self.awaited.retain(|awaited| MemberId::new(*awaited).is_none_or(|member| !view.has_removed(member)));
        for voter in view.members.all().into_iter().filter(|member| view.members.is_voter(*member)) {
            let number = voter.get();
            if voter != own && !self.contacted.contains(&number) && !self.awaited.contains(&number) {
                self.awaited.push(number);
            }
        }
    }

    /// True once every awaited voter has sent a message.
    pub fn participate_if_ready(&mut self) -> Result<bool, ClusterError> {
        if !self.is_new() || !self.awaited.is_empty() {
            return Ok(!self.is_new());
        }
        self.file.state = VotingState::CaughtUp;
        self.write()?;
        tracing::info!("all members have met; this one takes part");
        Ok(true)
    }

    /// Records the end of rejoining, once consensus reports it.
    pub fn note_rejoining(&mut self, is_rejoining: bool) -> Result<(), ClusterError> {
        if is_rejoining || !matches!(self.file.state, VotingState::Rejoining(_)) {
            return Ok(());
        }
        self.file.state = VotingState::CaughtUp;
        self.write()
    }

    fn write(&self) -> Result<(), ClusterError> {
        self.files.write(NAME, &self.file.to_text())
    }
}

/// Writes nothing; compares the start with `ballot`, if that can be read.
pub(super) fn check(files: &MemberFiles, ballot: Option<&ballot::StoredBallot>) -> Result<(), ClusterError> {
    let text = files.read(NAME)?.ok_or_else(|| files.missing(NAME))?;
    let found = VotingFile::parse(&text).ok_or_else(|| files.damaged(NAME))?;
    ballot.map_or(Ok(()), |ballot| found.check_matches(files, ballot))
}

impl VotingFile {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let state = match words.next()? {
            "new" => VotingState::New,
            "level" => VotingState::CaughtUp,
            "behind:?" => VotingState::Rejoining(None),
            word => VotingState::Rejoining(Some(word.strip_prefix("behind:")?.parse().ok()?)),
        };
        let starts = words.next()?.parse().ok().filter(|starts| *starts < u64::MAX)?;
        let is_synced = match words.next()? {
            "synced" => true,
            "unsynced" => false,
            _ => return None,
        };
        let ballot_number = words.next().map_or(Some(0), |word| word.parse().ok())?;
        words.next().is_none().then_some(Self { state, starts, is_synced, ballot_number })
    }

    fn to_text(&self) -> String {
        let state = match self.state {
            VotingState::New => "new".to_owned(),
            VotingState::CaughtUp => "level".to_owned(),
            VotingState::Rejoining(None) => "behind:?".to_owned(),
            VotingState::Rejoining(Some(term)) => format!("behind:{term}"),
        };
        let tier = if self.is_synced { "synced" } else { "unsynced" };
        format!("{state} {} {tier} {}\n", self.starts, self.ballot_number)
    }

    /// Both files are written at each start, this one before and after the ballot.
    fn check_matches(&self, files: &MemberFiles, ballot: &ballot::StoredBallot) -> Result<(), ClusterError> {
        let older = |name: &str, found, expected| Err(ClusterError::Older { path: files.path(name), found, expected });
        if self.starts < ballot.starts {
            let (found, expected) =
                (format!("it was written at start {}", self.starts), format!("`ballot` at {}", ballot.starts));
            return older(NAME, found, expected);
        }
        if self.ballot_number > ballot.number {
            if ballot.number == 0 {
                return Err(files.missing("ballot"));
            }
            let (found, expected) = (
                format!("its newest slot is number {}", ballot.number),
                format!("`voting` knows of {}", self.ballot_number),
            );
            return older("ballot", found, expected);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::consensus::Members;
    use crate::member::ballot::Ballot;
    use gapless_journal::{BootId, Journal, JournalOptions};

    struct SimulatedRestarts {
        root: tempfile::TempDir,
        boot: u128,
        is_synced: bool,
        has_ballot: bool,
    }

    impl SimulatedRestarts {
        fn new(is_synced: bool) -> Self {
            Self { root: tempfile::tempdir().unwrap(), boot: 1, is_synced, has_ballot: false }
        }

        fn start(&self) -> Result<Voting, ClusterError> {
            let journal = self.root.path().join("journal");
            let environment = JournalEnvironment { boot_id: Some(BootId(self.boot)), ..JournalEnvironment::default() };
            let files = MemberFiles::open(self.root.path(), None, journal.exists())?;
            let ballot = ballot::StoredBallot::read(self.root.path(), files.instance())?;
            let mut voting = Voting::begin(&files, &journal, environment.clone(), &ballot, self.is_synced, vec![2, 3])?;
            std::fs::create_dir_all(&journal).unwrap();
            let mut options = JournalOptions::new(&journal, 5);
            options.segment_length_bytes = 2 << 20;
            options.environment = environment;
            Journal::open(options).unwrap();
            if self.has_ballot {
                let begun = (files.instance(), voting.starts());
                let ballot = Ballot::begin(self.root.path(), &ballot, begun, JournalEnvironment::default())?;
                voting.recovered(1, ballot.number())?;
            }
            Ok(voting)
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.root.path().join(name)
        }

        fn admitted(&self) -> Voting {
            let mut voting = self.start().unwrap();
            voting.note_message(2);
            assert!(!voting.participate_if_ready().unwrap());
            voting.note_message(3);
            assert!(voting.participate_if_ready().unwrap());
            voting
        }
    }

    #[test]
    fn new_member_awaits_all_voters() {
        let mut machine = SimulatedRestarts::new(false);
        assert_eq!(machine.start().unwrap().awaited(), [2, 3]);
        machine.boot = 2;
        let mut again = machine.start().unwrap();
        assert!(again.is_new() && again.recovered(1, 0).unwrap().is_none());
        drop(machine.admitted());
        assert!(machine.start().unwrap().participate_if_ready().unwrap());
    }

    #[test]
    fn removed_voters_are_not_awaited() {
        let member = |number| MemberId::new(number).unwrap();
        let view = |index, voters: &[u64]| {
            let voters = voters.iter().map(|number| member(*number)).collect();
            MembershipView { index, members: Members { voters, ..Members::default() } }
        };
        let machine = SimulatedRestarts::new(false);
        let mut voting = machine.start().unwrap();
        voting.note_message(2);
        voting.apply_view(member(1), &view(7, &[1, 2, 4]));
        assert_eq!(voting.awaited(), [4]);
        assert!(!voting.participate_if_ready().unwrap(), "member 4 has not sent a message yet");
        voting.apply_view(member(1), &view(3, &[1, 2, 3]));
        assert_eq!(voting.awaited(), [4]);
        voting.note_message(4);
        assert!(voting.participate_if_ready().unwrap());
        voting.apply_view(member(1), &view(9, &[1, 2, 4, 5]));
        assert!(voting.participate_if_ready().unwrap() && voting.awaited().is_empty());
    }

    #[test]
    fn reboot_makes_member_rejoin() {
        let mut machine = SimulatedRestarts::new(false);
        drop(machine.admitted());
        assert_eq!(machine.start().unwrap().recovered(4, 0).unwrap(), None, "the same boot");
        machine.boot = 2;
        // Killed before the term was determined: the journal is of this boot now.
        drop(machine.start().unwrap());
        assert_eq!(machine.start().unwrap().recovered(4, 0).unwrap(), Some(RejoinState { term: 4, start: 4 }));
        let mut voting = machine.start().unwrap();
        assert_eq!(voting.recovered(6, 0).unwrap(), Some(RejoinState { term: 4, start: 5 }), "as it was at the loss");
        voting.note_rejoining(true).unwrap();
        voting.note_rejoining(false).unwrap();
        assert_eq!(machine.start().unwrap().recovered(6, 0).unwrap(), None);
        machine.boot = 3;
        assert_eq!(machine.start().unwrap().recovered(6, 0).unwrap(), Some(RejoinState { term: 6, start: 7 }));
        machine.boot = 4;
        assert_eq!(machine.start().unwrap().recovered(8, 0).unwrap().map(|behind| behind.term), Some(8));
    }

    #[test]
    fn synced_journal_is_complete() {
        let mut machine = SimulatedRestarts::new(true);
        drop(machine.admitted());
        machine.boot = 2;
        assert_eq!(machine.start().unwrap().recovered(4, 0).unwrap(), None);
        machine.is_synced = false;
        drop(machine.start().unwrap());
        machine.is_synced = true;
        machine.boot = 3;
        let mut voting = machine.start().unwrap();
        assert!(voting.recovered(4, 0).unwrap().is_some());
        voting.note_synced().unwrap();
        voting.note_rejoining(false).unwrap();
        machine.boot = 4;
        assert_eq!(machine.start().unwrap().recovered(4, 0).unwrap(), None);
    }

    #[test]
    fn lost_journal_is_an_error() {
        let machine = SimulatedRestarts::new(false);
        drop(machine.admitted());
        std::fs::remove_dir_all(machine.root.path().join("journal")).unwrap();
        assert!(machine.start().unwrap_err().to_string().contains("journal is gone"));
        for text in ["", "level", "level 1", "level x synced", "behind 1 synced", "level 1 synced x", "other 1 synced"]
        {
            std::fs::write(machine.root.path().join("voting"), text).unwrap();
            assert!(machine.start().unwrap_err().to_string().contains("damaged"), "{text:?}");
        }
    }

    #[test]
    fn unreadable_journal_is_an_error() {
        let machine = SimulatedRestarts::new(false);
        drop(machine.admitted());
        let text = || std::fs::read_to_string(machine.path("voting")).unwrap();
        let before = text();
        let segment = machine.path("journal/00000000000000000001.segment");
        let bytes = std::fs::read(&segment).unwrap();
        std::fs::write(&segment, &bytes[..7]).unwrap();
        let refused = machine.start().unwrap_err().to_string();
        assert!(refused.contains(".segment"), "{refused}");
        assert_eq!(text(), before);
        std::fs::write(&segment, &bytes).unwrap();
        assert_eq!(machine.start().unwrap().recovered(1, 0).unwrap(), None);
    }

    #[test]
    fn older_copies_are_refused() {
        for name in [NAME, "ballot"] {
            let machine = SimulatedRestarts { has_ballot: true, ..SimulatedRestarts::new(false) };
            drop(machine.admitted());
            let old = std::fs::read(machine.path(name)).unwrap();
            drop(machine.start().unwrap());
            let now = std::fs::read(machine.path(name)).unwrap();
            let refused = |what: &str| {
                let said = machine.start().unwrap_err().to_string();
                assert!(said.contains(&format!("/{name} is {what}")), "{said}");
            };
            std::fs::write(machine.path(name), &old).unwrap();
            refused("an older copy");
            std::fs::remove_file(machine.path(name)).unwrap();
            refused("missing");
            std::fs::write(machine.path(name), &now).unwrap();
            drop(machine.start().unwrap());
        }
    }

    #[test]
    fn interrupted_start_is_accepted() {
        let mut machine = SimulatedRestarts { has_ballot: true, ..SimulatedRestarts::new(false) };
        drop(machine.admitted());
        machine.has_ballot = false;
        drop(machine.start().unwrap());
        drop(machine.start().unwrap());
        machine.has_ballot = true;
        drop(machine.start().unwrap());
    }

    #[test]
    fn journal_without_both_is_refused() {
        for has_ballot in [false, true] {
            let machine = SimulatedRestarts { has_ballot, ..SimulatedRestarts::new(true) };
            drop(machine.admitted());
            std::fs::remove_file(machine.path(NAME)).unwrap();
            let _there = std::fs::remove_file(machine.path("ballot"));
            let refused = machine.start().unwrap_err().to_string();
            assert!(refused.contains("/voting is missing"), "{refused}");
        }
    }
}
