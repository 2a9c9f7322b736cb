//! Encoded messages and records decode to the same value; other bytes are an error, never a panic.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_cluster::consensus::record::{Checkpoint, EntryRecord, HardState, RecordContent};
use gapless_cluster::consensus::{
    Batch, ChangeStep, JoiningMember, LogPosition, MemberDetails, MemberId, Members, MembershipChange, Transition, wire,
};
use gapless_cluster::link::log_state::Acknowledgement;
use proptest::prelude::*;

fn member() -> impl Strategy<Value = MemberId> {
    (1u64..=9).prop_map(|number| MemberId::new(number).unwrap())
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..4, 0u64..=1 << 61]
}

fn members() -> impl Strategy<Value = Members> {
    let members =
        (1u64..=6, 0u64..=3, any::<bool>(), any::<bool>()).prop_map(|(voters, learners, is_joint, auto_leave)| {
            let range = |from: u64, count: u64| (from..from + count).filter_map(MemberId::new).collect::<Vec<_>>();
            Members {
                voters: range(1, voters),
                voters_outgoing: if is_joint { range(2, voters + 2) } else { Vec::new() },
                learners: range(20, learners),
                learners_next: if is_joint { range(voters + 1, 2) } else { Vec::new() },
                auto_leave: is_joint && auto_leave,
                witnesses: range(1, voters / 2),
                ..Members::default()
            }
        });
    (members, 0usize..4, prop::option::of(100u64..1 << 40)).prop_map(|(mut members, count, used)| {
        let details = |member: MemberId| {
            let is_learner = members.learners.contains(&member);
            let replaces = members.voters.first().copied().filter(|_| member.get().is_multiple_of(2));
            MemberDetails {
                member,
                addresses: (0..member.get() % 3).map(|at| format!("host-{member}.example:{}", at + 1)).collect(),
                joining: is_learner.then_some(JoiningMember { replaces }),
            }
        };
        members.details = members.all().into_iter().rev().take(count).rev().map(details).collect();
        members.numbers_used = used.unwrap_or_default();
        members
    })
}

fn change() -> impl Strategy<Value = MembershipChange> {
    let transition = prop_oneof![Just(Transition::Auto), Just(Transition::Joint), Just(Transition::JointExplicit)];
    let step = prop_oneof![
        member().prop_map(ChangeStep::Voter),
        member().prop_map(ChangeStep::Learner),
        member().prop_map(ChangeStep::Remove),
    ];
    let details = (prop::option::of(prop::option::of(member())), 0usize..3).prop_map(|(joining, count)| {
        let addresses = (0..count).map(|at| format!("[::1]:{}", at + 1)).collect();
        let joining = joining.map(|replaces| JoiningMember { replaces });
        MemberDetails { member: MemberId::new(7).unwrap(), addresses, joining }
    });
    let details = prop::collection::vec(details, 0..2);
    (transition, prop::collection::vec(step, 0..5), prop::collection::vec(member(), 0..3), details)
        .prop_map(|(transition, steps, witnesses, details)| MembershipChange { transition, steps, witnesses, details })
}

/// With frames, or a change, or neither.
fn entries(start: LogPosition) -> impl Strategy<Value = Vec<EntryRecord>> {
    let content = (0u64..3, 0u64..5, any::<u64>(), prop::option::of(change()));
    prop::collection::vec(content, 0..8).prop_map(move |contents| {
        let mut end = start;
        let mut entry = |(later, frames, hash, change): (u64, u64, u64, Option<MembershipChange>)| {
            let frames = if change.is_some() { 0 } else { frames };
            let hash = if frames == 0 { end.hash } else { hash };
            let batch = Batch { first_sequence: end.sequence + 1, end_sequence: end.sequence + frames, hash };
            let (index, term) = (end.index + 1, end.term + later);
            end = LogPosition { index, term, sequence: batch.end_sequence, hash };
            EntryRecord { index, term, batch, change }
        };
        contents.into_iter().map(&mut entry).collect()
    })
}

fn position() -> impl Strategy<Value = LogPosition> {
    (1u64..1 << 40, 1u64..1 << 40, number(), any::<u64>()).prop_map(|(index, term, sequence, hash)| LogPosition {
        index,
        term,
        sequence,
        hash,
    })
}

fn record() -> impl Strategy<Value = RecordContent> {
    let state = (number(), prop::option::of(member()), number());
    let state = state.prop_map(|(term, vote, commit)| HardState { term, vote, commit }).boxed();
    let acknowledged = prop::collection::btree_map(member(), (number(), number()), 0..4).prop_map(|all| {
        all.into_iter().map(|(member, (term, index))| (member, Acknowledgement { term, index })).collect::<Vec<_>>()
    });
    let acknowledged = acknowledged.boxed();
    let of_checkpoint = acknowledged.clone();
    let checkpoint =
        (state.clone(), position(), members(), of_checkpoint).prop_flat_map(|(hard_state, start, members, known)| {
            entries(start).prop_map(move |entries| {
                let (members, acknowledged) = (members.clone(), known.clone());
                Checkpoint { hard_state, start, members, entries, acknowledged }
            })
        });
    let entry = (position().prop_flat_map(entries), number())
        .prop_filter_map("no entry", |(entries, commit)| Some(RecordContent::Entry(entries.last()?.clone(), commit)));
    prop_oneof![
        state.prop_map(RecordContent::HardState),
        entry,
        checkpoint.prop_map(|checkpoint| RecordContent::Checkpoint(Box::new(checkpoint))),
        acknowledged.prop_filter("none", |list| !list.is_empty()).prop_map(RecordContent::Acknowledged),
    ]
}

/// Built from the layout by hand, for comparison with the encoder.
fn message_bytes() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![3u8, 4, 5, 6, 7, 8, 9, 14, 15, 16, 17, 18]);
    let numbers = (prop::array::uniform4(number()), 0u8..2);
    (kinds, member(), member(), numbers, position(), members()).prop_flat_map(
        |(kind, to, from, ([index, commit, commit_term, hint], reject), position, members)| {
            entries(LogPosition { index: index >> 1, ..position }).prop_map(move |entries| {
                let is_read = matches!(kind, 15 | 16);
                let has_context = is_read || (matches!(kind, 8 | 9) && commit % 2 == 0);
                let is_transfer = matches!(kind, 5 | 17) && commit % 2 == 0;
                let is_conditional = matches!(kind, 6 | 18) && reject == 0 && commit % 2 == 0;
                let is_about_end = is_read && commit % 2 == 0;
                let flags = reject | u8::from(is_transfer) << 1 | u8::from(has_context) << 2;
                let flags = flags | u8::from(is_conditional) << 3 | u8::from(is_about_end) << 4;
                let entries = if kind == 3 { &entries[..] } else { &[] };
                let mut bytes = vec![1, kind, flags, 0];
                bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
                let term = if kind == 15 { 0 } else { position.term + 100 };
                for value in [to.get(), from.get(), term, position.term, index >> 1, commit, commit_term, hint] {
                    bytes.extend_from_slice(&value.to_le_bytes());
                }
                if has_context {
                    bytes.extend_from_slice(&[7; 16]);
                }
                for entry in entries {
                    bytes.extend_from_slice(&entry.term.to_le_bytes());
                    match &entry.change {
                        Some(change) => put_change(change, &mut bytes),
                        None if entry.batch.is_empty() => bytes.push(0),
                        None => {
                            bytes.push(1);
                            bytes.extend_from_slice(&entry.batch.to_bytes());
                        }
                    }
                }
                if kind == 7 {
                    for value in [position.index, position.term, position.sequence, position.hash] {
                        bytes.extend_from_slice(&value.to_le_bytes());
                    }
                    put_list(&members.voters, &mut bytes);
                    put_list(&members.voters_outgoing, &mut bytes);
                    put_list(&members.learners, &mut bytes);
                    put_list(&members.learners_next, &mut bytes);
                    let has_more = members.numbers_used != 0 || !members.details.is_empty();
                    bytes.push(u8::from(members.auto_leave) | u8::from(has_more) << 1);
                    put_list(&members.witnesses, &mut bytes);
                    if has_more {
                        bytes.extend_from_slice(&members.numbers_used.to_le_bytes());
                        put_details(&members.details, &mut bytes);
                    }
                }
                bytes
            })
        },
    )
}

fn put_list(list: &[MemberId], bytes: &mut Vec<u8>) {
    bytes.push(list.len() as u8);
    list.iter().for_each(|member| bytes.extend_from_slice(&member.get().to_le_bytes()));
}

fn put_details(details: &[MemberDetails], bytes: &mut Vec<u8>) {
    bytes.push(details.len() as u8);
    for each in details {
        bytes.extend_from_slice(&each.member.get().to_le_bytes());
        let replaces = each.joining.and_then(|joining| joining.replaces);
        bytes.push(u8::from(each.joining.is_some()) | u8::from(replaces.is_some()) << 1);
        replaces.iter().for_each(|member| bytes.extend_from_slice(&member.get().to_le_bytes()));
        bytes.push(each.addresses.len() as u8);
        for address in &each.addresses {
            bytes.extend_from_slice(&(address.len() as u16).to_le_bytes());
            bytes.extend_from_slice(address.as_bytes());
        }
    }
}

fn put_change(change: &MembershipChange, bytes: &mut Vec<u8>) {
    bytes.push(2);
    let transition = match change.transition {
        Transition::Auto => 0,
        Transition::Joint => 1,
        Transition::JointExplicit => 2,
    };
    bytes.push(transition | u8::from(!change.details.is_empty()) << 7);
    bytes.push(change.steps.len() as u8);
    for step in &change.steps {
        let (kind, member) = match step {
            ChangeStep::Voter(member) => (0, member),
            ChangeStep::Remove(member) => (1, member),
            ChangeStep::Learner(member) => (2, member),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&member.get().to_le_bytes());
    }
    put_list(&change.witnesses, bytes);
    if !change.details.is_empty() {
        put_details(&change.details, bytes);
    }
}

fn check_message(bytes: &[u8]) {
    match wire::decode(bytes) {
        Ok(message) => {
            let mut again = Vec::new();
            wire::encode(&message, &mut again);
            assert_eq!(again, bytes);
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

fn check_record(bytes: &[u8]) {
    match RecordContent::from_bytes(bytes) {
        Ok(record) => assert_eq!(record.to_bytes(), bytes),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn message_round_trips(bytes in message_bytes()) {
        let message = wire::decode(&bytes).unwrap();
        let mut again = Vec::new();
        wire::encode(&message, &mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn record_round_trips(record in record()) {
        prop_assert_eq!(RecordContent::from_bytes(&record.to_bytes()).unwrap(), record);
    }

    #[test]
    fn truncated_message_is_an_error(bytes in message_bytes(), at in any::<prop::sample::Index>()) {
        prop_assert!(wire::decode(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn changed_byte_never_panics(
        mut bytes in message_bytes(),
        record in record(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let position = at.index(bytes.len());
        bytes[position] = byte;
        check_message(&bytes);
        bytes.push(byte);
        check_message(&bytes);
        let mut bytes = record.to_bytes();
        let position = at.index(bytes.len());
        bytes[position] = byte;
        check_record(&bytes);
        bytes.truncate(position);
        check_record(&bytes);
    }

    #[test]
    fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0u8..20) {
        check_message(&bytes);
        check_record(&bytes);
        if bytes.len() > 4 {
            bytes[..2].copy_from_slice(&[1, kind]);
            check_message(&bytes);
            bytes[1] = kind % 4;
            check_record(&bytes);
        }
    }
}

#[test]
fn local_message_types_are_refused() {
    let mut bytes = vec![1u8, 0, 0, 0];
    bytes.extend_from_slice(&[0; 68]);
    bytes[8] = 1;
    bytes[16] = 2;
    bytes[24] = 3;
    bytes[1] = 8;
    assert!(wire::decode(&bytes).is_ok(), "a heartbeat");
    // Local types: campaign, beat, proposal, unreachable, snapshot's status, quorum check, transfer.
    for local in [0u8, 1, 2, 10, 11, 12, 13, 19, 255] {
        bytes[1] = local;
        assert_eq!(wire::decode(&bytes), Err(wire::DecodeError::Type { found: local }));
    }
}
