use super::*;
use gapless_cluster::consensus::record::{Checkpoint, HardState, RecordContent};

#[test]
fn only_applied_is_offered() {
    let mut alone = LoneMember::of(3);
    alone.lead(&[2]);
    for sequence in 1..=3 {
        alone.propose(sequence, 8).unwrap();
        alone.settle();
    }
    let last = alone.last();
    alone.acknowledge(2, last - 1);
    let (position, members) = alone.core.applied_position().unwrap();
    assert_eq!((position.sequence, position.index, &members), (2, last - 1, &voters(3)));
    let until = |sequence| alone.core.applied_position_until(sequence).map(|position| position.sequence);
    assert_eq!((until(0), until(1), until(2), until(3)), (Some(0), Some(1), Some(2), Some(2)));
}

#[test]
fn checkpoint_keeps_term_and_vote() {
    let mut alone = LoneMember::of(3);
    alone.follow(2);
    let (message, _) = append(&alone, 2, alone.core.end(), &[2, 2]);
    alone.tell(message).unwrap();
    let end = alone.core.end();
    let members = voters(3);
    let at = |index, term| alone.core.checkpoint_at(LogPosition { index, term, ..end }, &members);
    for index in [end.index, end.index + 1] {
        let bytes = at(index, 2).expect("a position at the end of the log or after it");
        let Ok(RecordContent::Checkpoint(checkpoint)) = RecordContent::from_bytes(&bytes) else { panic!("{bytes:?}") };
        let Checkpoint { hard_state, start, members: kept, entries, .. } = *checkpoint;
        assert_eq!(hard_state, HardState { term: 2, vote: None, commit: index });
        assert_eq!((start.index, start.term, &kept, entries.len()), (index, 2, &members, 0));
    }
    assert_eq!(at(end.index - 1, 2), None, "the log reaches further");
    assert_eq!(at(end.index, 3), None, "of a term that this member does not know");
    assert!(at(end.index, 1).is_some());
}
