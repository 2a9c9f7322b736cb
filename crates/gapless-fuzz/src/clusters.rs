//! Targets for the messages between a cluster's members and the records in their journals.

use crate::input::{FuzzInput, assert_says_something};
use gapless_cluster::consensus::record::RecordContent;
use gapless_cluster::consensus::{
    Consensus, ConsensusOptions, Effects, LogHistory, MemberId, Members, RecoveredState, wire,
};
use gapless_cluster::member::snapshot_transfer::wire::{
    SNAPSHOT_LENGTH_MAX, STATE_LENGTH_MAX, TransferAnswer, TransferRequest,
};

pub fn message(bytes: &[u8]) {
    let message = match wire::decode(bytes) {
        Ok(message) => message,
        Err(error) => return assert_says_something(&error),
    };
    let mut again = Vec::new();
    wire::encode(&message, &mut again);
    assert_eq!(again, bytes);

    let (Some(id), Some(from)) = (MemberId::new(message.to), MemberId::new(message.from)) else {
        panic!("members have numbers");
    };
    let mut voters = vec![id, from];
    voters.dedup();
    let options = ConsensusOptions::new(id, Members::of_voters(&voters));
    let mut member = Consensus::new(options, RecoveredState::empty()).expect("a member can start");
    let mut effects = Effects::default();
    member.poll(&mut effects);
    member.persisted(effects.number);
    if let Err(error) = member.verify_append(&message, &[]) {
        return assert_says_something(&error);
    }
    if let Err(error) = member.step(from, message) {
        assert_says_something(&error);
    }
    for turn in 0..200 {
        member.poll(&mut effects);
        member.persisted(effects.number);
        member.tick(turn * 3_000_000);
    }
}

/// A member that receives it keeps its information.
pub fn history(bytes: &[u8]) {
    let Some(history) = LogHistory::from_bytes(bytes) else { return };
    assert_eq!(history.to_bytes(), bytes);
    let ids = [1, 2, 3].map(|number| MemberId::new(number).expect("not 0"));
    let options = ConsensusOptions::new(ids[0], Members::of_voters(&ids[..1 + usize::from(bytes[2] % 3)]));
    let mut member = Consensus::new(options, RecoveredState::empty()).expect("a member can start");
    let mut effects = Effects::default();
    for turn in 0..50 {
        member.poll(&mut effects);
        member.persisted(effects.number);
        member.tick(turn * 3_000_000);
    }
    let beside = member.history_in_answer_to(&history);
    assert!(LogHistory::from_bytes(&beside.to_bytes()).is_some() && member.divergence(&beside).is_none());
    if let Some(divergence) = member.divergence(&history).or_else(|| member.excess_over_leader(&history)) {
        assert!(divergence.same.is_none_or(|same| same != divergence.other));
    }
    member.remember(&history);
    let recovered =
        RecoveredState::from_records([(0, true, &member.checkpoint()[..])], 0).expect("what it keeps is read again");
    assert_eq!(recovered.acknowledged(), member.acknowledged().collect::<Vec<_>>());
}

pub fn record(bytes: &[u8]) {
    match RecordContent::from_bytes(bytes) {
        Ok(record) => assert_eq!(record.to_bytes(), bytes),
        Err(error) => assert_says_something(&error),
    }
    let mut input = FuzzInput(bytes);
    let mut records = Vec::new();
    while !input.is_empty() {
        let (behind_sequence, length) = (u64::from(input.byte()), usize::from(input.byte()));
        let payload = input.bytes(length);
        records.push((behind_sequence, payload.get(1) == Some(&3), payload));
    }
    for records in [vec![(1 << 60, bytes.get(1) == Some(&3), bytes)], records] {
        match RecoveredState::from_records(records, 1 << 60) {
            Ok(recovered) => {
                let truncate_after = recovered.truncate_after();
                if let Some(checkpoint) = recovered.checkpoint() {
                    let again = RecoveredState::from_records([(truncate_after, true, &checkpoint[..])], truncate_after);
                    assert_eq!(again, Ok(recovered));
                }
            }
            Err(error) => assert_says_something(&error),
        }
    }
}

pub fn snapshot_transfer(bytes: &[u8]) {
    match TransferRequest::from_bytes(bytes) {
        Ok(request) => assert_eq!(request.to_bytes(), bytes),
        Err(error) => assert_says_something(&error),
    }
    match TransferAnswer::from_bytes(bytes) {
        Ok(answer) => {
            assert_eq!(answer.to_bytes(), bytes);
            if let TransferAnswer::Offer(offer) = answer {
                assert!(offer.members.check().is_ok());
                for (file, length_max) in [(Some(offer.state), STATE_LENGTH_MAX), (offer.snapshot, SNAPSHOT_LENGTH_MAX)]
                {
                    let Some(file) = file else { continue };
                    assert!((1..=length_max).contains(&file.length));
                    assert!((offer.base.sequence..=offer.position.sequence).contains(&file.sequence));
                }
            }
        }
        Err(error) => assert_says_something(&error),
    }
}
