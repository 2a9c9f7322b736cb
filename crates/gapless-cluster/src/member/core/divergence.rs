//! `DivergenceCheck`: compares the state of a service between members. Each full member hashes its state after the same
//! sequences and sends the hashes to its leader; the leader compares them, and sends a verdict to each member that
//! differs.
//!
//! ```text
//!   0  u8   version, 2
//!   1  u8   1 report, 2 verdict
//!  report, to the leader:                          verdict, of the leader:
//!   2  u32  lowest version of the service, not 0    2  u64  the last sequence at which the receiver agreed, or 0
//!   6  u32  highest, not less                      10  u64  the first at which it differs
//!  10  u8   hashes, 64 at most, then each:         18  u64  the form of its state there
//!   …  u64  sequence, rising from 1                26  u64  its hash there, which identifies its state
//!   …  u64  form of the state
//!   …  u64  hash of the state after it
//! ```
//!
//! All numbers little-endian. States of different forms, as of an old and of a new program, have different hashes and are
//! not compared.

use super::MemberCore;
use crate::ClusterError;
use crate::consensus::{MemberId, Members};
use crate::link::MessageContent;
use crate::member::Member;
use gapless_stream::member_service::StateHash;
use gapless_stream::messages::SequencerRequest;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::fields::{FieldReader, FieldWriter};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Newest hashes of a member that are kept.
pub const HASHES_MAX: usize = 64;
/// A leader may have missed a report.
const REPORT_INTERVAL_NS: u64 = 1_000_000_000;
const HAND_OVER_NS_MAX: u64 = 2_000_000_000;
const VERSION: u8 = 2;
const REPORT: u8 = 1;
const VERDICT: u8 = 2;

/// Difference of a member's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivergenceVerdict {
    /// Last sequence with agreement; 0 if unknown.
    pub agreed_sequence: u64,
    /// First differing hash.
    pub differs: StateHash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::member) enum DivergenceMessage {
    Report(RangeInclusive<u32>, Vec<StateHash>),
    Verdict(DivergenceVerdict),
}

impl DivergenceMessage {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut fields = FieldWriter::new(&mut bytes);
        fields.u8(VERSION);
        match self {
            Self::Report(versions, hashes) => {
                fields.u8(REPORT).u32(*versions.start()).u32(*versions.end()).u8(hashes.len() as u8);
                for each in hashes {
                    fields.u64(each.sequence).u64(each.form).u64(each.hash);
                }
            }
            Self::Verdict(DivergenceVerdict { agreed_sequence, differs }) => {
                fields.u8(VERDICT).u64(*agreed_sequence);
                fields.u64(differs.sequence).u64(differs.form).u64(differs.hash);
            }
        }
        bytes
    }

    /// `None` if the bytes are no message.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = FieldReader::new(bytes);
        let [VERSION, what] = fields.array("version and kind").ok()? else { return None };
        let hash = |fields: &mut FieldReader<'_>| {
            let (sequence, form) = (fields.u64("sequence").ok()?, fields.u64("form").ok()?);
            Some(StateHash { sequence, form, hash: fields.u64("hash").ok()? })
        };
        let said = match what {
            REPORT => {
                let versions = fields.u32("lowest version").ok()?..=fields.u32("highest version").ok()?;
                let count = usize::from(fields.u8("number of hashes").ok()?);
                let hashes: Vec<_> =
                    (0..count.min(HASHES_MAX + 1)).map(|_| hash(&mut fields)).collect::<Option<_>>()?;
                let rises = hashes.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
                let is_right = *versions.start() != 0 && !versions.is_empty() && hashes.len() <= HASHES_MAX && rises;
                let begins = hashes.first().is_none_or(|first| first.sequence > 0);
                (is_right && begins).then_some(Self::Report(versions, hashes))?
            }
            VERDICT => {
                let agreed_sequence = fields.u64("last agreed sequence").ok()?;
                let differs = hash(&mut fields)?;
                (agreed_sequence < differs.sequence)
                    .then_some(Self::Verdict(DivergenceVerdict { agreed_sequence, differs }))?
            }
            _ => return None,
        };
        fields.rest().is_empty().then_some(said)
    }
}

pub(in crate::member) struct DivergenceCheck {
    own: Mailbox<StateHash>,
    reports: BTreeMap<MemberId, Vec<StateHash>>,
    versions: BTreeMap<MemberId, RangeInclusive<u32>>,
    own_versions: Option<RangeInclusive<u32>>,
    has_updates: bool,
    /// Newest sequence that was compared here, while this member led.
    compared_sequence: Option<u64>,
    reported_leader: Option<MemberId>,
    next_report_ns: u64,
    verdict: Option<DivergenceVerdict>,
    ends_by_ns: Option<u64>,
}

impl DivergenceCheck {
    /// Check of `member`, whose service, if any, supports these versions and puts its hashes into `own`.
    pub fn new(member: MemberId, versions: Option<RangeInclusive<u32>>, own: Mailbox<StateHash>) -> Self {
        Self {
            own,
            reports: versions.iter().map(|_| (member, Vec::new())).collect(),
            versions: versions.clone().map(|versions| (member, versions)).into_iter().collect(),
            own_versions: versions,
            has_updates: false,
            compared_sequence: None,
            reported_leader: None,
            next_report_ns: 0,
            verdict: None,
            ends_by_ns: None,
        }
    }

    pub const fn compared_sequence(&self) -> Option<u64> {
        self.compared_sequence
    }

    /// Resets a newly connected peer, whose state may be another one.
    pub fn peer_connected(&mut self, member: u64) {
        let Some(member) = MemberId::new(member) else { return };
        self.reports.remove(&member);
        self.versions.remove(&member);
        self.reported_leader = self.reported_leader.filter(|leader| *leader != member);
    }

    /// Processes a message of `from`; returns false if it is invalid.
    pub fn receive(&mut self, own: MemberId, from: MemberId, leader: Option<MemberId>, bytes: &[u8]) -> bool {
        match DivergenceMessage::from_bytes(bytes) {
            Some(DivergenceMessage::Report(versions, hashes)) => {
                self.versions.insert(from, versions);
                self.has_updates |= self.reports.get(&from) != Some(&hashes) || leader == Some(own);
                self.reports.insert(from, hashes);
            }
            // Ignores a verdict about an earlier life of this member.
            Some(DivergenceMessage::Verdict(verdict)) if leader == Some(from) => {
                if self.reports.get(&own).is_some_and(|hashes| hashes.contains(&verdict.differs)) {
                    self.verdict = Some(verdict);
                }
            }
            Some(DivergenceMessage::Verdict(_)) => {}
            None => return false,
        }
        true
    }

    /// Version of a new stream, unless it is the first.
    pub fn first_version(&self) -> Option<u32> {
        self.own_versions.as_ref().map(|versions| *versions.start()).filter(|version| *version > 1)
    }

    fn missing_version(&self, version: u32, members: &Members) -> Option<String> {
        if self.own_versions.is_none() {
            return Some("this member runs no service; ask one that does".to_owned());
        }
        let runs = members.all().into_iter().filter(|member| !members.witnesses.contains(member));
        runs.into_iter().find_map(|member| match self.versions.get(&member) {
            None => Some(format!("member {member} has not said which versions its program has; is it there?")),
            Some(versions) if versions.contains(&version) => None,
            Some(versions) => {
                let (first, last) = (versions.start(), versions.end());
                Some(format!(
                    "member {member} has the versions {first} to {last}, not {version}; replace its program first"
                ))
            }
        })
    }

    fn take_own(&mut self, own: MemberId) {
        while let Some(new) = self.own.pop() {
            let hashes = self.reports.entry(own).or_default();
            if hashes.len() == HASHES_MAX {
                hashes.remove(0);
            }
            hashes.push(new);
            self.has_updates = true;
            self.next_report_ns = 0;
        }
    }

    fn compare(&mut self, leader: MemberId, members: &Members) -> Vec<(MemberId, DivergenceVerdict)> {
        self.reports.retain(|member, _| members.contains(*member));
        self.versions.retain(|member, _| members.contains(*member));
        let counts = |member: &MemberId| members.voters.contains(member) && !members.witnesses.contains(member);
        let full = members.voters.iter().filter(|member| counts(member)).count();
        let mut by_sequence = BTreeMap::<u64, BTreeMap<u64, Vec<(MemberId, u64)>>>::new();
        for (member, hashes) in &self.reports {
            for each in hashes {
                let of_sequence = by_sequence.entry(each.sequence).or_default();
                of_sequence.entry(each.form).or_default().push((*member, each.hash));
            }
        }
        let (mut agreed, mut differing) = (BTreeMap::new(), BTreeMap::new());
        for (sequence, by_form) in by_sequence {
            let voters = |found: &[(MemberId, u64)]| found.iter().filter(|(member, _)| counts(member)).count();
            let reported: usize = by_form.values().map(|found| voters(found)).sum();
            for (form, found) in by_form {
                // A voter without a report may have this form.
                let full = full - (reported - voters(&found));
                let votes: Vec<_> = found.iter().copied().filter(|(member, _)| counts(member)).collect();
                let Some(winner) = winner(&votes, leader, full) else { continue };
                if full > 1 {
                    self.compared_sequence = self.compared_sequence.max(Some(sequence));
                }
                for (member, hash) in found {
                    if hash == winner {
                        agreed.insert(member, sequence);
                    } else {
                        let agreed_sequence = agreed.get(&member).copied().unwrap_or(0);
                        let differs = StateHash { sequence, form, hash };
                        differing.entry(member).or_insert(DivergenceVerdict { agreed_sequence, differs });
                    }
                }
            }
        }
        differing.into_iter().collect()
    }
}

/// Hash of a majority of all `full` members that may have its form; if all have reported, the most frequent one; at a tie the leader's,
/// otherwise that of the lowest number.
fn winner(votes: &[(MemberId, u64)], leader: MemberId, full: usize) -> Option<u64> {
    let count = |hash: u64| votes.iter().filter(|(_, other)| *other == hash).count();
    let most = votes.iter().map(|(_, hash)| count(*hash)).max()?;
    if 2 * most <= full && votes.len() < full {
        return None;
    }
    let mut first = votes.iter().filter(|(_, hash)| count(*hash) == most);
    let of_leader = first.clone().find(|(member, _)| *member == leader);
    of_leader.or_else(|| first.next()).map(|(_, hash)| *hash)
}

impl MemberCore {
    pub(in crate::member) fn upgrade(&mut self, version: u32) -> Result<(), String> {
        if !self.consensus.is_leader() {
            let leader =
                self.role.leader.map_or_else(|| "no leader is known".to_owned(), |it| format!("ask member {it}"));
            return Err(format!("this member does not lead; {leader}"));
        }
        if let Some(reason) = self.divergence.missing_version(version, self.consensus.members()) {
            return Err(reason);
        }
        let asked = self.stream.requests.push(SequencerRequest::ServiceVersion { version });
        asked.map_err(|_| "too much is asked for already; ask again".to_owned())
    }
}

impl Member {
    /// Errors if this member's state is the one that differs.
    pub(in crate::member) fn check_divergence(&mut self) -> Result<(), ClusterError> {
        let (own, now_ns) = (self.core.member, self.core.now.monotonic_ns);
        let check = &mut self.core.divergence;
        check.take_own(own);
        let leads = self.core.consensus.is_leader();
        if leads && std::mem::take(&mut check.has_updates) {
            for (member, verdict) in check.compare(own, self.core.consensus.members()) {
                if member == own {
                    check.verdict = Some(verdict);
                } else {
                    tracing::error!(
                        %member,
                        agreed_sequence = verdict.agreed_sequence,
                        sequence = verdict.differs.sequence,
                        "the state of a member differs from the others'"
                    );
                    // A verdict that is not sent, or lost, is repeated at the member's next report.
                    let _ = self.links.send(
                        member.get(),
                        MessageContent::DivergenceCheck,
                        &DivergenceMessage::Verdict(verdict).to_bytes(),
                        &[],
                    );
                }
            }
        }
        let leader = self.core.role.leader.filter(|leader| *leader != own);
        let is_reported = check.reported_leader == leader && now_ns < check.next_report_ns;
        let versions = check.own_versions.clone();
        if let (false, Some(leader), Some(versions)) = (is_reported, leader, versions) {
            let hashes = check.reports.get(&own).cloned().unwrap_or_default();
            let said = DivergenceMessage::Report(versions, hashes).to_bytes();
            if self.links.send(leader.get(), MessageContent::DivergenceCheck, &said, &[]).is_ok() {
                check.reported_leader = Some(leader);
            }
            check.next_report_ns = now_ns + REPORT_INTERVAL_NS;
        }
        let Some(verdict) = check.verdict else { return Ok(()) };
        if check.ends_by_ns.is_none() {
            check.ends_by_ns = Some(now_ns + HAND_OVER_NS_MAX);
            self.core.hand_over();
        }
        let is_late = self.core.divergence.ends_by_ns.is_some_and(|by_ns| now_ns >= by_ns);
        if self.core.consensus.is_leader() && !is_late {
            return Ok(());
        }
        let DivergenceVerdict { agreed_sequence, differs } = verdict;
        Err(ClusterError::Differs { member: own.get(), agreed_sequence, sequence: differs.sequence })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn id(number: u64) -> MemberId {
        MemberId::new(number).unwrap()
    }

    fn hashes(each: &[(u64, u64)]) -> Vec<StateHash> {
        each.iter().map(|(sequence, hash)| StateHash { sequence: *sequence, form: 0, hash: *hash }).collect()
    }

    /// Members that get a verdict, of `forms` and hashes after sequence 10.
    fn differing(forms: &[(u64, u64)]) -> Vec<u64> {
        let mut check = DivergenceCheck::new(id(1), Some(1..=1), Mailbox::new(1));
        for (member, (form, hash)) in (1..).zip(forms) {
            check.reports.insert(id(member), vec![StateHash { sequence: 10, form: *form, hash: *hash }]);
        }
        let members = Members { voters: (1..=3).map(id).collect(), ..Members::default() };
        check.compare(id(1), &members).into_iter().map(|(member, _)| member.get()).collect()
    }

    #[test]
    fn only_equal_forms_are_compared() {
        assert!(differing(&[(7, 1), (7, 1), (8, 2)]).is_empty(), "a rolling upgrade");
        assert!(differing(&[(7, 1), (8, 2), (8, 2)]).is_empty());
        assert!(differing(&[(7, 1), (8, 2), (9, 3)]).is_empty());
        assert_eq!(differing(&[(7, 1), (7, 2), (8, 3)]), [2], "the leader's at a tie");
        assert_eq!(differing(&[(8, 3), (7, 1), (7, 2)]), [3]);
        assert!(differing(&[(7, 1), (7, 2)]).is_empty(), "the third may have this form");
        assert_eq!(differing(&[(7, 1), (7, 1), (7, 2)]), [3]);
    }

    fn compared(full: u64, more: Members, reports: &[&[(u64, u64)]]) -> (DivergenceCheck, Vec<(u64, u64, u64)>) {
        let own = Mailbox::new(HASHES_MAX);
        let mut check = DivergenceCheck::new(id(9), Some(1..=1), own.clone());
        hashes(reports[0]).into_iter().for_each(|each| own.push(each).unwrap());
        check.take_own(id(1));
        for (member, report) in (2..).zip(&reports[1..]) {
            let bytes = DivergenceMessage::Report(1..=2, hashes(report)).to_bytes();
            assert!(check.receive(id(1), id(member), Some(id(1)), &bytes));
        }
        let voters = (1..=full).map(id).chain(more.witnesses.iter().copied()).collect();
        let members = Members { voters, ..more };
        let odd = check.compare(id(1), &members);
        let odd = odd.into_iter().map(|(member, it)| (member.get(), it.agreed_sequence, it.differs.sequence));
        let odd = odd.collect();
        (check, odd)
    }

    #[test]
    fn minority_gets_a_verdict() {
        let same: &[(u64, u64)] = &[(10, 1), (20, 2), (30, 3), (40, 4)];
        let odd: &[(u64, u64)] = &[(10, 1), (20, 2), (30, 9), (40, 8)];
        let none = Members::default;
        let (check, found) = compared(3, none(), &[same, same, same]);
        assert_eq!((found, check.compared_sequence()), (vec![], Some(40)));
        assert_eq!(compared(3, none(), &[same, same, odd]).1, [(3, 20, 30)]);
        assert_eq!(compared(3, none(), &[odd, same, same]).1, [(1, 20, 30)], "also the leader");
        assert_eq!(compared(3, none(), &[same, same, &odd[2..]]).1, [(3, 0, 30)]);
        let (check, found) = compared(3, none(), &[same, odd]);
        assert_eq!((found, check.compared_sequence()), (vec![], Some(20)));
        assert_eq!(compared(2, none(), &[same, odd]).1, [(2, 20, 30)]);
        assert_eq!(compared(4, none(), &[odd, same, odd, same]).1, [(2, 20, 30), (4, 20, 30)]);
        let third: &[(u64, u64)] = &[(30, 7)];
        assert_eq!(compared(3, none(), &[odd, same, third]).1, [(2, 20, 30), (3, 0, 30)], "all differ");
    }

    #[test]
    fn non_voters_do_not_count() {
        let same: &[(u64, u64)] = &[(10, 1)];
        let odd: &[(u64, u64)] = &[(10, 9)];
        let learners = || Members { learners: vec![id(2), id(3)], ..Members::default() };
        assert_eq!(compared(1, learners(), &[same, odd, odd]).1, [(2, 0, 10), (3, 0, 10)]);
        let witness = || Members { witnesses: vec![id(3)], ..Members::default() };
        assert_eq!(compared(2, witness(), &[same, odd]).1, [(2, 0, 10)]);
        assert_eq!(compared(2, Members::default(), &[same, same, odd]).1, []);
    }

    #[test]
    fn newest_hashes_are_kept() {
        let own = Mailbox::new(HASHES_MAX);
        let mut check = DivergenceCheck::new(id(9), Some(1..=1), own.clone());
        for sequence in 1..=100 {
            own.push(StateHash { sequence, form: 0, hash: 7 }).unwrap();
            check.take_own(id(1));
        }
        let kept = &check.reports[&id(1)];
        assert_eq!((kept.len(), kept[0].sequence, kept[63].sequence), (64, 37, 100));
        check.peer_connected(1);
        assert!(!check.reports.contains_key(&id(1)));
    }

    #[test]
    fn stale_verdict_is_ignored() {
        let own = Mailbox::new(HASHES_MAX);
        let mut check = DivergenceCheck::new(id(9), Some(1..=1), own.clone());
        own.push(StateHash { sequence: 10, form: 0, hash: 5 }).unwrap();
        check.take_own(id(2));
        let verdict =
            |hash| DivergenceVerdict { agreed_sequence: 0, differs: StateHash { sequence: 10, form: 0, hash } };
        let mut hear = |from, hash| {
            assert!(check.receive(id(2), id(from), Some(id(1)), &DivergenceMessage::Verdict(verdict(hash)).to_bytes()));
            check.verdict
        };
        assert_eq!(hear(3, 5), None, "not of the leader");
        assert_eq!(hear(1, 6), None, "of another state");
        assert_eq!(hear(1, 5), Some(verdict(5)));
    }

    #[test]
    fn version_needs_all_full_members() {
        let members = Members { voters: vec![id(1), id(2), id(3)], witnesses: vec![id(3)], ..Members::default() };
        let mut check = DivergenceCheck::new(id(1), Some(1..=2), Mailbox::new(1));
        let lacks = |check: &DivergenceCheck, version, words: &str| {
            check.missing_version(version, &members).is_some_and(|reason| reason.contains(words))
        };
        assert!(lacks(&check, 2, "member 2 has not said"));
        assert!(check.receive(id(1), id(2), None, &DivergenceMessage::Report(1..=1, Vec::new()).to_bytes()));
        assert!(lacks(&check, 2, "member 2 has the versions 1 to 1, not 2"));
        assert!(check.receive(id(1), id(2), None, &DivergenceMessage::Report(2..=3, Vec::new()).to_bytes()));
        assert_eq!(check.missing_version(2, &members), None);
        assert!(lacks(&check, 3, "member 1 has the versions 1 to 2, not 3") && lacks(&check, 1, "member 2"));
        check.peer_connected(2);
        assert!(lacks(&check, 2, "member 2 has not said"), "who comes back may be another program");
        assert!(lacks(&DivergenceCheck::new(id(1), None, Mailbox::new(1)), 1, "no service"));
    }

    #[test]
    fn foreign_bytes_are_checked() {
        let report = DivergenceMessage::Report(1..=2, hashes(&[(1, 2), (3, 4)]));
        let verdict = DivergenceMessage::Verdict(DivergenceVerdict {
            agreed_sequence: 4,
            differs: StateHash { sequence: 8, form: 6, hash: u64::MAX },
        });
        let full = DivergenceMessage::Report(
            1..=u32::MAX,
            (1..=64).map(|sequence| StateHash { sequence, form: sequence, hash: 0 }).collect(),
        );
        for said in [DivergenceMessage::Report(3..=3, Vec::new()), report, verdict.clone(), full] {
            let bytes = said.to_bytes();
            assert_eq!(DivergenceMessage::from_bytes(&bytes), Some(said.clone()));
            for length in 0..bytes.len() {
                assert_eq!(DivergenceMessage::from_bytes(&bytes[..length]), None, "{said:?} cut to {length}");
            }
            assert_eq!(DivergenceMessage::from_bytes(&[&bytes[..], &[0]].concat()), None);
            assert_eq!(DivergenceMessage::from_bytes(&[&[1], &bytes[1..]].concat()), None, "another version");
            assert_eq!(DivergenceMessage::from_bytes(&[&[VERSION, 3], &bytes[2..]].concat()), None, "something else");
        }
        let wrong = |each: &[(u64, u64)]| {
            assert_eq!(DivergenceMessage::from_bytes(&DivergenceMessage::Report(1..=2, hashes(each)).to_bytes()), None)
        };
        for versions in [0..=1, RangeInclusive::new(3, 2)] {
            assert_eq!(
                DivergenceMessage::from_bytes(&DivergenceMessage::Report(versions, Vec::new()).to_bytes()),
                None
            );
        }
        wrong(&[(0, 1)]);
        wrong(&[(3, 1), (3, 1)]);
        wrong(&[(4, 1), (3, 1)]);
        wrong(&(1..=65).map(|sequence| (sequence, 0)).collect::<Vec<_>>());
        let mut late = verdict.to_bytes();
        late[2] = 8;
        assert_eq!(DivergenceMessage::from_bytes(&late), None, "agreed behind where it differs");
        let mut check = DivergenceCheck::new(id(1), None, Mailbox::new(1));
        assert!(!check.receive(id(1), id(2), None, &[VERSION, 1, 200]));
        assert!(check.reports.is_empty());
    }
}
