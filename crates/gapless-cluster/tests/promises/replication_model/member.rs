use super::{Cluster, MEMBERS, Mutant};

pub type Id = u8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set(u8);

impl Set {
    pub const NONE: Self = Self(0);

    pub fn of(members: &[Id]) -> Self {
        members.iter().fold(Self::NONE, |set, member| set.with(*member))
    }

    pub fn with(self, member: Id) -> Self {
        Self(self.0 | 1 << member)
    }

    pub fn has(self, member: Id) -> bool {
        self.0 & 1 << member != 0
    }

    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn difference(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

/// A quorum of the voters and, during a change, one of the outgoing voters as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Members {
    pub voters: Set,
    pub outgoing: Set,
}

impl Members {
    pub fn votes(self, member: Id) -> bool {
        self.voters.has(member) || self.outgoing.has(member)
    }

    fn is_joint(self) -> bool {
        self.outgoing != Set::NONE
    }

    fn have_quorum(self, of: Set) -> bool {
        let is_most = |voters: Set| 2 * voters.both(of).count() > voters.count();
        is_most(self.voters) && (!self.is_joint() || is_most(self.outgoing))
    }
}

/// One more, one less, or others altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub voters: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    Empty {
        term: u8,
        by: Id,
    },
    /// At one place of the log, term and leader stand for the frames' hash.
    Batch {
        term: u8,
        by: Id,
    },
    Members {
        term: u8,
        members: Members,
    },
}

impl Entry {
    pub fn term(self) -> u8 {
        match self {
            Self::Empty { term, .. } | Self::Batch { term, .. } | Self::Members { term, .. } => term,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    Ask { term: u8, last_term: u8, length: u8 },
    Grant { term: u8 },
    Append { term: u8, log: Vec<Entry>, commit: u8 },
    Acknowledge { term: u8, length: u8 },
}

impl Message {
    fn term(&self) -> u8 {
        match self {
            Self::Ask { term, .. } | Self::Grant { term } => *term,
            Self::Append { term, .. } | Self::Acknowledge { term, .. } => *term,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    #[default]
    Follower,
    Candidate,
    Leader,
}

/// Durable: term, vote, the journaled part of the log, the commit index of the last record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Member {
    pub term: u8,
    pub vote: Option<Id>,
    pub log: Vec<Entry>,
    pub journaled: u8,
    pub kept_commit: u8,
    /// Lost power and not caught up: does not vote.
    pub must_catch_up: bool,
    pub role: Role,
    pub leader: Option<Id>,
    pub votes: Set,
    /// Length equal to the log of this term's leader.
    pub agreed: u8,
    /// By member, to this leader.
    pub matched: [u8; MEMBERS],
    /// Must be released before a leader changes members.
    pub change_from: u8,
    pub commit: u8,
    pub released: u8,
    /// Ever released here, unknown to the member; a cut before it breaks a promise.
    pub told: u8,
}

impl Member {
    fn last_term(&self) -> u8 {
        self.log.last().map_or(0, |entry| entry.term())
    }

    pub fn members(&self, cluster: &Cluster) -> Members {
        let released = self.log[..self.released as usize].iter().rev();
        let mut changes = released.filter_map(|entry| match entry {
            Entry::Members { members, .. } => Some(*members),
            _ => None,
        });
        changes.next().unwrap_or(cluster.first_members())
    }

    pub fn append(&mut self, entry: Entry) {
        self.log.push(entry);
    }

    fn enter(&mut self, term: u8) {
        self.term = term;
        self.vote = None;
        self.forget();
    }

    fn forget(&mut self) {
        self.role = Role::Follower;
        self.leader = None;
        self.votes = Set::NONE;
        (self.agreed, self.change_from) = (0, 0);
        self.matched = [0; MEMBERS];
    }

    pub fn may_campaign(&self, cluster: &Cluster, id: Id) -> bool {
        let votes = self.members(cluster).votes(id) && !self.must_catch_up;
        votes && self.role != Role::Leader && self.term < cluster.term_max
    }

    pub fn campaign(&mut self, cluster: &Cluster, id: Id) {
        self.enter(self.term + 1);
        self.role = Role::Candidate;
        self.vote = Some(id);
        self.votes = self.votes.with(id);
        self.lead_if_elected(cluster, id);
    }

    pub fn may_ask(&self, cluster: &Cluster, to: Id) -> bool {
        self.role == Role::Candidate && !self.votes.has(to) && self.members(cluster).votes(to)
    }

    pub fn question(&self) -> Message {
        Message::Ask { term: self.term, last_term: self.last_term(), length: self.log.len() as u8 }
    }

    fn lead_if_elected(&mut self, cluster: &Cluster, id: Id) {
        if self.role != Role::Candidate || !self.members(cluster).have_quorum(self.votes) {
            return;
        }
        self.role = Role::Leader;
        self.votes = Set::NONE;
        self.change_from = if cluster.changes.is_empty() { 0 } else { self.log.len() as u8 };
        self.append(Entry::Empty { term: self.term, by: id });
        self.matched[id as usize] = self.journaled;
        self.advance_commit(cluster);
    }

    pub fn append_message(&self) -> Message {
        Message::Append { term: self.term, log: self.log.clone(), commit: self.commit }
    }

    fn may_be_acknowledged(&self, cluster: &Cluster) -> u8 {
        if cluster.is(Mutant::AcknowledgeBeforeJournal) { self.agreed } else { self.agreed.min(self.journaled) }
    }

    pub fn acknowledge(&self, cluster: &Cluster) -> Message {
        Message::Acknowledge { term: self.term, length: self.may_be_acknowledged(cluster) }
    }

    pub fn journal(&mut self, cluster: &Cluster, id: Id) {
        self.journaled = self.log.len() as u8;
        if !cluster.is(Mutant::ForgetCommit) {
            self.kept_commit = self.commit;
        }
        if self.role == Role::Leader {
            self.matched[id as usize] = self.journaled;
            self.advance_commit(cluster);
        }
        // An append carries the whole log, and was sent after this start.
        if self.role == Role::Follower && self.agreed > 0 && self.journaled >= self.agreed {
            self.must_catch_up = false;
        }
    }

    fn advance_commit(&mut self, cluster: &Cluster) {
        let members = self.members(cluster);
        let has = |length: u8| {
            let who = (0..MEMBERS as Id).filter(|member| self.matched[*member as usize] >= length);
            members.have_quorum(who.fold(Set::NONE, Set::with)) || cluster.is(Mutant::CommitWithoutQuorum)
        };
        // Copies of an earlier term's entry do not count: a later leader may lack it.
        let own = |length: u8| self.log[length as usize - 1].term() == self.term;
        let mut lengths = (self.commit + 1..=self.log.len() as u8).rev();
        if let Some(length) = lengths.find(|length| has(*length) && own(*length)) {
            self.commit = length;
        }
    }

    pub fn release(&mut self, cluster: &Cluster) {
        loop {
            self.released = self.commit.min(self.journaled);
            let commit = self.commit;
            if self.role == Role::Leader {
                self.advance_commit(cluster);
            }
            if self.commit == commit {
                break;
            }
        }
        self.told = self.told.max(self.released);
    }

    /// No change in progress, and every change of earlier leaders is released.
    pub fn may_change(&self, cluster: &Cluster, change: Change) -> bool {
        let is_pending = self.log[self.released as usize..].iter().any(|entry| matches!(entry, Entry::Members { .. }));
        let members = self.members(cluster);
        !is_pending && !members.is_joint() && self.released >= self.change_from && members.voters != change.voters
    }

    pub fn change(&mut self, cluster: &Cluster, change: Change) {
        let now = self.members(cluster).voters;
        let is_single = now.difference(change.voters) == 1 || cluster.is(Mutant::SingleQuorumChange);
        let outgoing = if is_single { Set::NONE } else { now };
        self.append(Entry::Members { term: self.term, members: Members { voters: change.voters, outgoing } });
    }

    pub fn may_leave_joint(&self, cluster: &Cluster) -> bool {
        let is_pending = self.log[self.released as usize..].iter().any(|entry| matches!(entry, Entry::Members { .. }));
        !is_pending && self.members(cluster).is_joint() && self.released >= self.change_from
    }

    pub fn leave_joint(&mut self, cluster: &Cluster) {
        let members = Members { outgoing: Set::NONE, ..self.members(cluster) };
        self.append(Entry::Members { term: self.term, members });
    }

    pub fn restart(&mut self, cluster: &Cluster) {
        self.log.truncate(self.journaled as usize);
        self.commit = self.kept_commit;
        self.forget();
        if cluster.is(Mutant::ForgetVote) {
            self.vote = None;
        }
    }

    pub fn power_cut(&mut self, cluster: &Cluster, kept: u8) {
        self.journaled = kept;
        self.kept_commit = self.kept_commit.min(kept);
        self.told = self.told.min(kept);
        self.restart(cluster);
        self.must_catch_up = !cluster.is(Mutant::VoteAfterPowerCut);
    }

    /// A message that changes nothing, now or later, may as well be lost.
    pub fn is_indifferent_to(&self, from: Id, message: &Message) -> bool {
        if message.term() != self.term {
            return message.term() < self.term;
        }
        match message {
            Message::Ask { .. } => self.vote.is_some(),
            Message::Grant { .. } => self.role != Role::Candidate || self.votes.has(from),
            Message::Append { log, commit, .. } => {
                self.role == Role::Leader || self.agreed >= log.len() as u8 && self.commit >= *commit
            }
            Message::Acknowledge { length, .. } => self.role != Role::Leader || self.matched[from as usize] >= *length,
        }
    }

    pub fn receive(
        &mut self,
        cluster: &Cluster,
        id: Id,
        from: Id,
        message: Message,
        sent: &mut Option<(Id, Message)>,
    ) -> Option<u8> {
        if message.term() < self.term {
            return None;
        }
        if message.term() > self.term {
            self.enter(message.term());
        }
        match message {
            Message::Ask { term, last_term, length } => {
                let is_as_new = (last_term, length) >= (self.last_term(), self.log.len() as u8)
                    || cluster.is(Mutant::VoteForShorterLog);
                let is_free = self.vote.is_none() && self.role == Role::Follower;
                if is_as_new && is_free && !self.must_catch_up && self.leader.is_none() {
                    self.vote = Some(from);
                    *sent = Some((from, Message::Grant { term }));
                }
            }
            Message::Grant { .. } => {
                if self.role == Role::Candidate {
                    self.votes = self.votes.with(from);
                    self.lead_if_elected(cluster, id);
                }
            }
            Message::Append { log, commit, .. } => {
                if self.role != Role::Leader {
                    self.role = Role::Follower;
                    self.votes = Set::NONE;
                    self.leader = Some(from);
                    return self.take_over(cluster, &log, commit);
                }
            }
            Message::Acknowledge { length, .. } => {
                if self.role == Role::Leader {
                    let matched = &mut self.matched[from as usize];
                    *matched = length.max(*matched);
                    self.advance_commit(cluster);
                }
            }
        }
        None
    }

    fn take_over(&mut self, cluster: &Cluster, log: &[Entry], commit: u8) -> Option<u8> {
        let same = self.log.iter().zip(log).take_while(|(own, new)| own == new).count();
        let differs = same < self.log.len() && same < log.len();
        let is_cut = differs && !cluster.is(Mutant::SkipTruncation);
        if is_cut {
            self.log.truncate(same);
            self.journaled = self.journaled.min(same as u8);
            self.kept_commit = self.kept_commit.min(same as u8);
        }
        if self.log.len() < log.len() {
            self.log.extend_from_slice(&log[self.log.len()..]);
        }
        self.agreed = self.agreed.max(log.len() as u8);
        self.commit = self.commit.max(commit.min(self.agreed));
        is_cut.then_some(same as u8)
    }
}
