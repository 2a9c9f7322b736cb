//! Refused membership changes, with their reasons.

#![allow(clippy::unwrap_used, reason = "a test")]

use super::*;
use crate::consensus::LogPosition;

fn id(number: u64) -> MemberId {
    MemberId::new(number).unwrap()
}

fn members(voters: &[u64]) -> Members {
    Members::of_voters(&voters.iter().map(|number| id(*number)).collect::<Vec<_>>())
}

fn peer(member: u64, is_active: bool) -> FollowerProgress {
    let lag_frames = 0;
    FollowerProgress {
        member: id(member),
        matched_index: 9,
        matched_sequence: 9,
        lag_frames,
        is_active,
        is_fetching: false,
    }
}

fn status(peers: Vec<FollowerProgress>) -> ConsensusStatus {
    let position = LogPosition { index: 9, term: 1, sequence: 9, hash: 0 };
    ConsensusStatus {
        role: MemberRole::Leader,
        term: 1,
        leader: Some(id(1)),
        committed_index: 9,
        applied_index: 9,
        released_sequence: 9,
        start: position,
        end: position,
        transfer_to: None,
        is_rejoining: false,
        refused_messages: 0,
        peers,
    }
}

fn new(member: u64) -> NewMember {
    NewMember { member: id(member), addresses: vec!["h4:1".to_owned()], kind: MemberKind::Full, replaces: None }
}

fn joining(replaces: Option<u64>) -> Members {
    let joining = Some(JoiningMember { replaces: replaces.map(id) });
    let details = vec![MemberDetails { member: id(4), addresses: vec!["h4:1".to_owned()], joining }];
    Members { learners: vec![id(4)], details, ..members(&[1, 2, 3]) }
}

#[test]
fn added_member_begins_as_a_learner() {
    let change = plan_add(&new(4), id(1), &members(&[1, 2, 3])).unwrap();
    assert_eq!(change.steps, [ChangeStep::Learner(id(4))]);
    assert_eq!(change.details[0].joining, Some(JoiningMember::default()));
    let witness = NewMember { kind: MemberKind::Witness, ..new(4) };
    assert_eq!(plan_add(&witness, id(1), &members(&[1])).unwrap().witnesses, [id(4)]);
    let learner = NewMember { kind: MemberKind::Learner, ..new(4) };
    assert_eq!(plan_add(&learner, id(1), &members(&[1])).unwrap().details[0].joining, None);
}

#[test]
fn invalid_addition_is_refused() {
    let three = members(&[1, 2, 3]);
    let refused = |new: &NewMember, members: &Members| plan_add(new, id(1), members).unwrap_err();
    assert_eq!(refused(&new(2), &three), MembershipChangeError::Exists(id(2)));
    let gone = Members { numbers_used: 5, ..members(&[1, 2]) };
    assert_eq!(refused(&new(4), &gone), MembershipChangeError::NumberUsed { member: id(4), highest: 5 });
    let none = NewMember { addresses: vec![], ..new(4) };
    assert!(matches!(refused(&none, &three), MembershipChangeError::Address { .. }));
    let bad = NewMember { addresses: vec!["h4".to_owned()], ..new(4) };
    assert_eq!(refused(&bad, &three), MembershipChangeError::Address { found: "h4".to_owned() });
    let all: Vec<u64> = (1..=CLUSTER_MEMBERS_MAX as u64).collect();
    assert_eq!(refused(&new(99), &members(&all)), MembershipChangeError::Full);
    assert_eq!(refused(&new(5), &joining(None)), MembershipChangeError::IsJoining(id(4)));
    let joint = Members { voters_outgoing: vec![id(1)], ..three.clone() };
    assert_eq!(refused(&new(4), &joint), MembershipChangeError::UnderWay);
    let replaces = |old| NewMember { replaces: Some(id(old)), ..new(4) };
    assert_eq!(refused(&replaces(1), &three), MembershipChangeError::Leads(id(1)));
    assert_eq!(refused(&replaces(9), &three), MembershipChangeError::NotMember(id(9)));
    let learner = NewMember { kind: MemberKind::Learner, ..replaces(2) };
    assert_eq!(refused(&learner, &three), MembershipChangeError::LearnerReplaces);
    let witness = NewMember { kind: MemberKind::Witness, ..replaces(2) };
    let one_full = Members { witnesses: vec![id(1)], ..members(&[1, 2]) };
    assert_eq!(refused(&witness, &one_full), MembershipChangeError::LastFull(id(2)));
}

#[test]
fn unsafe_removal_is_refused() {
    let peers = [peer(2, true), peer(3, false)];
    let refused = |member, members: &Members| plan_remove(id(member), id(1), members, &peers).unwrap_err();
    assert_eq!(refused(1, &members(&[1])), MembershipChangeError::LastVoter(id(1)));
    assert_eq!(refused(1, &members(&[1, 2, 3])), MembershipChangeError::Leads(id(1)));
    assert_eq!(refused(9, &members(&[1, 2, 3])), MembershipChangeError::NotMember(id(9)));
    let few = MembershipChangeError::TooFewLive { voters: 2, needed: 2, live: 1 };
    assert_eq!(refused(2, &members(&[1, 2, 3])), few);
    assert_eq!(
        refused(2, &Members { witnesses: vec![id(1)], ..members(&[1, 2]) }),
        MembershipChangeError::LastFull(id(2))
    );
    assert_eq!(refused(2, &joining(None)), MembershipChangeError::IsJoining(id(4)));

    let removes = |member, members: &Members| plan_remove(id(member), id(1), members, &peers).unwrap().steps;
    assert_eq!(removes(3, &members(&[1, 2, 3])), [ChangeStep::Remove(id(3))]);
    assert_eq!(removes(4, &joining(None)), [ChangeStep::Remove(id(4))], "joining is given up");
}

#[test]
fn caught_up_learner_is_promoted() {
    let plan = |members: &Members, change: &dyn Fn(&mut FollowerProgress)| {
        let mut its = peer(4, true);
        change(&mut its);
        plan_promotion(id(1), members, &status(vec![peer(2, true), peer(3, true), its]))
    };
    let voter = ChangeStep::Voter(id(4));
    let now = |steps: &[ChangeStep]| {
        Promotion::Now(MembershipChange { steps: steps.to_vec(), ..MembershipChange::default() })
    };
    assert_eq!(plan(&joining(None), &|_| {}), now(&[voter]));
    assert_eq!(plan(&joining(Some(2)), &|_| {}), now(&[voter, ChangeStep::Remove(id(2))]));
    assert_eq!(plan(&joining(Some(1)), &|_| {}), Promotion::HandOver);
    assert_eq!(plan(&members(&[1, 2, 3]), &|_| {}), Promotion::Waits);
    assert_eq!(plan(&joining(None), &|its| its.is_active = false), Promotion::Waits);
    assert_eq!(plan(&joining(None), &|its| its.is_fetching = true), Promotion::Waits);
    assert_eq!(plan(&joining(None), &|its| its.matched_index = 0), Promotion::Waits);
    assert_eq!(plan(&joining(None), &|its| its.lag_frames = PROMOTION_LAG_FRAMES_MAX + 1), Promotion::Waits);
}
