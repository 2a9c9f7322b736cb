//! Puts an older directory back, or exchanges two, as an operator may do by mistake. Acknowledged frames may be lost,
//! because two members cannot know the frames of a third. From then on a [`Simulation`] is only checked for this: a
//! member that differs stops and reports it.

use super::Simulation;
use crate::checker::Violation;
use crate::machine::SimulatedMachine;
use crate::options::MS;
use crate::system_under_test::SystemUnderTest;
use std::collections::BTreeMap;
use std::path::Path;

/// Time after the last fault until differing members must have stopped.
const FOUND_OUT_NS: u64 = 3_000 * MS;
/// Greatest lag of a healthy follower.
const MAY_LAG_FRAMES: u64 = 200;
/// Share of rollbacks, in 100,000.
const EXCHANGED: u64 = 15_000;

impl<A: SystemUnderTest> Simulation<'_, A> {
    /// Copies, puts the existing copy back, or exchanges it.
    pub(crate) fn roll_back_directory(&mut self, at: usize) -> Result<(), Violation> {
        let number = self.machines[at].number;
        let failed = |error: std::io::Error| error.to_string();
        self.take_down(at, 200 * MS);
        let (directory, copy) = (self.machines[at].directory().to_owned(), self.root.join(format!("copy-{number}")));
        if !copy.is_dir() {
            self.log(format_args!("the directory of member {number} is copied"));
            return copy_all(&directory, &copy).map_err(failed);
        }
        self.histories_diverged = true;
        self.checker.stop();
        if self.random.happens_per_100_000(EXCHANGED) && self.machines.len() > 1 {
            let other = (at + 1 + self.random.below(self.machines.len() as u64 - 1) as usize) % self.machines.len();
            self.take_down(other, 200 * MS);
            let (theirs, temporary) = (self.machines[other].directory().to_owned(), self.root.join("aside"));
            self.log(format_args!("the directories of members {number} and {} are exchanged", other + 1));
            self.tally.exchanges += 1;
            std::fs::rename(&directory, &temporary).map_err(failed)?;
            std::fs::rename(&theirs, &directory).map_err(failed)?;
            return std::fs::rename(&temporary, &theirs).map_err(failed);
        }
        self.log(format_args!("the copy of the directory of member {number} is put back"));
        self.tally.copies += 1;
        std::fs::remove_dir_all(&directory).map_err(failed)?;
        std::fs::rename(&copy, &directory).map_err(failed)
    }

    pub(crate) fn note_reported_rollback(&mut self, at: usize, said: &str) -> Result<(), Violation> {
        if !self.histories_diverged {
            return Err(said.to_owned());
        }
        self.log(format_args!("{said}"));
        self.tally.found_out += 1;
        self.take_down(at, 1);
        self.machines[at].is_gone = true;
        Ok(())
    }

    /// Each running member has the history of all others or reports the difference, and has everything that its leader
    /// has.
    pub(crate) fn run_until_rollbacks_reported(&mut self) -> Result<(), Violation> {
        let until_ns = self.now_ns + FOUND_OUT_NS;
        while self.now_ns < until_ns {
            self.step()?;
        }
        let leader =
            self.machines.iter().find(|machine| machine.leading_term().is_some()).map(|it| (it.number, it.released()));
        let mut known = BTreeMap::<u64, (u64, u64)>::new();
        let parted: BTreeMap<u64, Vec<u64>> =
            self.machines.iter().map(|it| (it.number, it.diverged_members())).collect();
        let is_said = |one: u64, other: u64| parted[&one].contains(&other) || parted[&other].contains(&one);
        for machine in self.machines.iter_mut().filter(|machine| machine.is_up()) {
            let (number, released) = (machine.number, machine.released());
            // A member that is new, or rolled back to before it took part, reports its wait.
            let waits = machine.status().is_some_and(|status| !status.waits_for.is_empty());
            if let Some((leader, last)) = leader.filter(|(_, last)| *last > released + MAY_LAG_FRAMES && !waits) {
                return Err(format!("member {number} has {released}, its leader {leader} {last}, and nobody says why"));
            }
            machine.kill();
            for (sequence, hash) in machine.frames()?.into_iter().filter(|(sequence, _)| *sequence <= released) {
                let (first, other) = *known.entry(sequence).or_insert((number, hash));
                if hash != other && !is_said(first, number) {
                    return Err(format!(
                        "members {first} and {number} have released another frame {sequence} each in silence"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl SimulatedMachine {
    /// Evaluates this member's own report.
    fn diverged_members(&self) -> Vec<u64> {
        let divergent = self.status().map(|status| status.divergent).unwrap_or_default();
        divergent.into_iter().map(|(member, _)| member.get()).collect()
    }

    /// Sequences and hashes.
    fn frames(&self) -> Result<Vec<(u64, u64)>, Violation> {
        let number = self.number;
        let failed = |error: gapless_journal::JournalError| format!("the journal of member {number}: {error}");
        let reader = gapless_journal::JournalReader::open(self.journal()).map_err(failed)?;
        let mut replay = reader.replay(reader.first_sequence()).map_err(failed)?;
        let mut frames = Vec::new();
        while let Some(frame) = replay.next_frame().map_err(failed)? {
            frames.push((frame.sequence(), crate::trace::hash_of(frame.bytes())));
        }
        Ok(frames)
    }
}
