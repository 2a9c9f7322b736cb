//! A member that appended its leader's frames continues as if it had always led; while it follows, it redirects
//! publishers.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::member::{EXPIRY_NS, FRAME_LENGTH_MAX, IDENTITY, Member, WINDOW_BYTES, frames, rules, send};
use crate::raw_publisher::{event, frame, open, part};
use gapless_agent::{Agent, Now};
use gapless_client::control_messages::{ControlCommand, ControlStatus};
use gapless_client::stream_layout::StreamLayout;
use gapless_log::LogError;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::persistence::JournalParameters;
use gapless_stream::retention_watermark::RetentionWatermark;
use gapless_stream::sequencer_recovery::rebuild;
use gapless_stream::sequencer_state::SequencerState;
use gapless_stream::sequencer_state_writer::{SequencerStateWriter, StateInterval};
use gapless_stream::{Persistence, ResponderMessage, Sequencer, StreamError};
use gapless_testkit::random::Random;
use gapless_transport::Tier;
use gapless_transport::publisher_link::PublisherLink;
use gapless_wire::control::{RefusalCode, TimerFired};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::{FrameHeader, HEADER_LENGTH, Kind};
use std::time::{Duration, Instant};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn timer(session: u64, session_seq: u64, timer: u64, deadline_ns: u64) -> Vec<u8> {
    let header = FrameHeader { kind: Kind::TimerRequest, session, session_seq, ..FrameHeader::default() };
    frame(&header, &TimerFired { timer, deadline_ns }.to_bytes())
}

fn close(session: u64, session_seq: u64) -> Vec<u8> {
    frame(&FrameHeader { kind: Kind::SessionClose, session, session_seq, ..FrameHeader::default() }, &[])
}

fn leader(now_ns: u64) -> (Member, PublisherLink, u64) {
    let mut member = Member::new();
    member.ingress.lead(1).unwrap();
    let name = FeedSession::new("MONDAY").unwrap();
    member.requests.push(SequencerRequest::BeginFeed { name }).unwrap();
    let mut publisher = member.connect();
    send(&mut publisher, &open(7));
    member.poll(now_ns);
    let session = opened(&member);
    (member, publisher, session)
}

fn opened(member: &Member) -> u64 {
    match &member.told()[..] {
        [ResponderMessage::Attach { session, .. }] => *session,
        told => panic!("{told:?}"),
    }
}

fn follower_of(leader: &mut Member) -> Member {
    let mut member = Member::new();
    member.ingress.follow(None);
    member.take_over(&leader.appended());
    assert_eq!(member.state(), leader.state());
    member
}

struct Actor {
    link: PublisherLink,
    session: u64,
    next: u64,
}

#[test]
fn follower_has_the_leaders_state() {
    let mut random = Random::seeded();
    let mut below = |limit: u64| random.below(limit);
    let (mut now_ns, mut token) = (1_000 * S, 100);
    let (mut leader, _publisher, _) = leader(now_ns);
    let mut follower = follower_of(&mut leader);
    let mut actors: Vec<Actor> = Vec::new();
    let (mut timers_fired, mut expired, mut parts) = (0, 0, 0);
    for round in 0..3_000 {
        now_ns += below(50 * MS);
        match below(12) {
            0 => {
                token += 1;
                let mut link = leader.connect();
                send(&mut link, &open(token));
                leader.poll(now_ns);
                actors.push(Actor { link, session: opened(&leader), next: 1 });
            }
            1 if below(40) == 0 => {
                now_ns += EXPIRY_NS + 2 * S;
                actors.clear();
            }
            2 if below(10) == 0 && !actors.is_empty() => {
                let mut actor = actors.swap_remove(below(actors.len() as u64) as usize);
                send(&mut actor.link, &close(actor.session, actor.next));
                leader.poll(now_ns);
            }
            3 if below(10) == 0 => {
                let request = if below(2) == 0 {
                    SequencerRequest::Halt { reason: "a pause".to_owned() }
                } else {
                    SequencerRequest::BeginFeed { name: FeedSession::new(&format!("F{round}")).unwrap() }
                };
                leader.requests.push(request).unwrap();
                leader.requests.push(SequencerRequest::Resume).unwrap();
            }
            choice if !actors.is_empty() => {
                let index = below(actors.len() as u64) as usize;
                let Actor { link, session, next } = &mut actors[index];
                match choice {
                    4 => {
                        send(link, &timer(*session, *next, below(4), now_ns + below(S)));
                        *next += 1;
                    }
                    5 => {
                        let count = 2 + below(3) as u16;
                        for index in 0..count {
                            send(link, &part(*session, *next, index, count, 100));
                            *next += 1;
                        }
                    }
                    _ => {
                        send(link, &event(*session, *next, &[7; 60][..below(60) as usize]));
                        *next += 1;
                    }
                }
            }
            _ => {}
        }
        leader.poll(now_ns);
        let appended = leader.appended();
        leader.release();
        let mut from = 0;
        let mut ends = Vec::new();
        for frame in frames(&appended) {
            timers_fired += u32::from(frame.kind() == Kind::Timer);
            expired += u32::from(frame.kind() == Kind::SessionClose && frame.session_seq() == 0);
            parts += u32::from(frame.fragment().count > 1);
            from += frame.bytes().len().next_multiple_of(8);
            ends.push(from);
        }
        let mut begun = 0;
        for end in ends {
            if below(3) == 0 || end == appended.len() {
                follower.take_over(&appended[begun..end]);
                begun = end;
            }
        }
        follower.poll(now_ns + below(S));
        let _ = (leader.told(), follower.told(), follower.appended());
        follower.release();
        assert_eq!(follower.state(), leader.state(), "round {round}");
    }
    println!("{timers_fired} timers fired, {expired} sessions expired, {parts} parts of messages");
    assert!(timers_fired > 10 && expired > 10 && parts > 100, "all cases occurred");

    // Both lead: the same input must have the same result.
    actors.clear();
    leader.poll(now_ns);
    let _ = (leader.appended(), leader.told());
    let mut both = [leader, follower];
    let mut outcomes = Vec::new();
    for member in &mut both {
        member.ingress.lead(9).unwrap();
        let mut link = member.connect();
        send(&mut link, &open(1 << 70));
        member.poll(now_ns);
        let mut mine = member.appended();
        let session = member.state().sessions.iter().find(|each| each.token == 1 << 70).unwrap().session;
        for number in 1..100 {
            send(&mut link, &event(session, number, b"both"));
            member.poll(now_ns + number * 10 * MS);
            mine.extend(member.appended());
            member.release();
        }
        member.poll(now_ns + 2 * EXPIRY_NS);
        mine.extend(member.appended());
        assert!(frames(&mine).iter().all(|frame| frame.term() == 9));
        outcomes.push((mine, member.state()));
    }
    assert!(outcomes[0] == outcomes[1], "both leaders give the same result");
}

#[test]
fn time_continues_despite_slow_clock() {
    let (mut leader, mut publisher, session) = leader(5_000 * S);
    send(&mut publisher, &event(session, 1, b"one"));
    leader.poll(5_000 * S);
    let mut follower = follower_of(&mut leader);
    let before_ns = follower.ingress.sequencer().last_timestamp_ns();
    follower.ingress.lead(2).unwrap();
    let mut link = follower.connect();
    send(&mut link, &open(8));
    follower.poll(10 * S);
    let _ = follower.appended();
    assert_eq!(follower.ingress.sequencer().last_timestamp_ns(), before_ns + 1);
    // A timer due in a second fires within a second and a twentieth.
    follower.requests.push(SequencerRequest::SetTimer { timer: 5, deadline_ns: before_ns + S }).unwrap();
    follower.poll(11 * S + 40 * MS);
    assert!(follower.appended().is_empty());
    follower.poll(11 * S + 60 * MS);
    let fired = follower.appended();
    assert_eq!(frames(&fired).iter().map(|frame| frame.kind()).collect::<Vec<_>>(), [Kind::Timer]);
    let later_ns = frames(&fired)[0].timestamp_ns() - before_ns;
    assert!((S..S + 10 * MS).contains(&later_ns), "{later_ns} ns");
}

#[test]
fn expiry_counts_from_own_last_frame() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    // Almost the lifetime of a session.
    let sent_ns = 999 * S + EXPIRY_NS;
    send(&mut publisher, &event(session, 1, b"one"));
    leader.poll(sent_ns);
    leader.poll(sent_ns + 2 * S);
    let follower = follower_of(&mut leader);
    for member in [&leader, &follower] {
        assert!(!member.ingress.sequencer().is_expired(session, sent_ns + EXPIRY_NS));
        assert!(member.ingress.sequencer().is_expired(session, sent_ns + EXPIRY_NS + 1));
    }
}

#[test]
fn fast_clock_expires_nothing() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    send(&mut publisher, &event(session, 1, b"one"));
    leader.poll(1_000 * S);
    let frames_of_leader = leader.appended();
    let told_ns = leader.ingress.time().at(Now { monotonic_ns: 1_001 * S, epoch_ns: 1_001 * S });
    assert_eq!(told_ns, Some(1_001 * S));
    for is_told in [true, false] {
        let mut follower = Member::new();
        follower.ingress.follow(None);
        follower.take_over(&frames_of_leader);
        let _ = follower.appended();
        let ahead_ns = 2 * EXPIRY_NS;
        let now_ns = 1_001 * S + ahead_ns;
        let now = Now { monotonic_ns: now_ns, epoch_ns: now_ns };
        follower.poll(now_ns);
        assert_eq!(follower.ingress.time().ahead_ns(now), None);
        if is_told {
            assert!(follower.ingress.observe_time(told_ns.unwrap(), now));
            assert_eq!(follower.ingress.time().ahead_ns(now), Some(-(ahead_ns as i64)));
        }
        follower.ingress.lead(2).unwrap();
        let mut link = follower.connect();
        send(&mut link, &open(8));
        follower.poll(now_ns + S);
        follower.poll(now_ns + 2 * S);
        let kinds: Vec<_> = frames(&follower.appended()).iter().map(|frame| frame.kind()).collect();
        let expected = if is_told { vec![Kind::SessionOpen] } else { vec![Kind::SessionClose, Kind::SessionOpen] };
        assert_eq!(kinds, expected, "without the time of the leader, its own clock counts");
        if is_told {
            let passed_ns = follower.ingress.sequencer().last_timestamp_ns() - told_ns.unwrap();
            assert!((S..=S + MS).contains(&passed_ns), "{passed_ns} ns in a second");
        }
    }
}

#[test]
fn empty_term_accepts_earlier_leader() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    let mut follower = follower_of(&mut leader);
    // This member leads without appending; then another continues with an earlier leader's frames.
    for term in [3, 5] {
        follower.ingress.lead(term).unwrap();
        follower.ingress.follow(None);
    }
    assert_eq!(follower.ingress.sequencer().term(), 1);
    send(&mut publisher, &event(session, 1, b"of the first term"));
    leader.poll(1_000 * S + MS);
    follower.take_over(&leader.appended());
    assert_eq!(follower.state(), leader.state());
    follower.ingress.lead(6).unwrap();
    let mut own = follower.connect();
    send(&mut own, &open(8));
    follower.poll(1_000 * S + 2 * MS);
    follower.ingress.follow(None);
    send(&mut publisher, &event(session, 2, b"too late"));
    leader.poll(1_000 * S + 2 * MS);
    assert!(matches!(follower.ingress.append_followed(&leader.appended()), Err(StreamError::Follow { .. })));
}

#[test]
fn follower_redirects_publishers() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    send(&mut publisher, &timer(session, 1, 3, 1_001 * S));
    send(&mut publisher, &part(session, 2, 0, 2, 10));
    leader.poll(1_000 * S);
    let mut old = leader;
    let appended = old.ingress.last_sequence();
    let state = old.state();

    // The publisher may wait for frames that will be truncated.
    old.ingress.follow(None);
    old.poll(1_000 * S + 1);
    assert_eq!(old.turned_away(), [""; 0], "the next leader is most often known in a moment");
    let from_ns = 1_000 * S + 201 * MS;
    old.poll(from_ns);
    assert_eq!(old.turned_away(), [""]);
    for number in 0..300 {
        send(&mut publisher, &event(session, 3 + number, b"dropped"));
        old.poll(from_ns + 2 + number);
    }
    assert_eq!(old.turned_away(), [""; 0], "it is notified once per interval");
    assert_eq!(publisher.writer.backlog_bytes(), 0, "its ring is empty");
    old.ingress.follow(Some("/run/b"));
    old.ingress.follow(Some("/run/b"));
    old.poll(from_ns + 1_000);
    old.poll(from_ns + 1_001);
    assert_eq!(old.turned_away(), ["/run/b"], "once for a change of leaders");
    old.poll(from_ns + 99 * MS);
    assert_eq!(old.turned_away(), [""; 0]);
    old.poll(from_ns + 101 * MS);
    assert_eq!(old.turned_away(), ["/run/b"], "again after a while: an answer may have found no room");

    let mut late = old.connect();
    old.poll(from_ns + 102 * MS);
    assert_eq!(old.turned_away(), [""; 0]);
    send(&mut late, &open(70));
    old.poll(from_ns + 103 * MS);
    old.poll(from_ns + 104 * MS);
    assert_eq!(old.turned_away(), ["/run/b"]);

    old.requests.push(SequencerRequest::Halt { reason: "no".to_owned() }).unwrap();
    old.requests.push(SequencerRequest::Control { number: 4, command: ControlCommand::Resume }).unwrap();
    old.poll(from_ns + 2 * EXPIRY_NS);
    assert_eq!((old.ingress.last_sequence(), old.state()), (appended, state), "nothing changes");
    let outcome = old.ingress.shared().outcomes.pop().unwrap();
    assert_eq!((outcome.number, outcome.status), (4, ControlStatus::Follower));

    // A publisher must reopen its session to be served.
    let _ = old.told();
    old.ingress.lead(3).unwrap();
    let now_ns = 1_002 * S + 2 * EXPIRY_NS;
    send(&mut publisher, &event(session, 2, b"too soon"));
    old.poll(from_ns + 3 * MS);
    assert_eq!(old.ingress.last_sequence(), appended, "the frame is dropped, and time stands still");
    send(&mut publisher, &open(7));
    send(&mut publisher, &event(session, 2, b"again"));
    old.poll(from_ns + 200 * MS);
    let mut told = old.told();
    told.retain(|each| !matches!(each, ResponderMessage::NotLeader { .. }));
    match &told[..] {
        [ResponderMessage::Reopen { session: found, next_session_seq: 2, .. }] => assert_eq!(*found, session),
        told => panic!("{told:?}"),
    }
    assert_eq!(old.ingress.last_sequence(), appended + 1);
    old.poll(now_ns);
    let bytes = old.appended();
    let kinds: Vec<(Kind, u64)> = frames(&bytes)
        .iter()
        .filter(|frame| frame.sequence() > appended)
        .map(|frame| (frame.kind(), frame.term()))
        .collect();
    assert_eq!(
        kinds,
        [(Kind::Event, 3), (Kind::Timer, 3), (Kind::SessionClose, 3)],
        "overdue timers and expiries come now"
    );
}

#[test]
fn publishers_wait_for_next_leader() {
    let (mut old, mut publisher, session) = leader(1_000 * S);
    let appended = old.ingress.last_sequence();
    old.ingress.follow(None);
    send(&mut publisher, &event(session, 1, b"not lost, and not taken"));
    let mut late = old.connect();
    send(&mut late, &open(70));
    old.poll(1_000 * S + MS);
    old.poll(1_000 * S + 150 * MS);
    assert_eq!(old.turned_away(), [""; 0]);
    assert!(late.writer.backlog_bytes() > 0, "sent frames are still in the ring");
    assert!(Agent::next_deadline_ns(&old.ingress).is_some_and(|deadline_ns| deadline_ns <= 1_000 * S + 201 * MS));

    // A session opened meanwhile need not be reopened.
    old.ingress.lead(2).unwrap();
    old.poll(1_000 * S + 151 * MS);
    let _ = old.appended();
    assert_eq!(old.ingress.last_sequence(), appended + 1, "the session of the late publisher");
    let told = old.told();
    let away = told.iter().filter(|each| matches!(each, ResponderMessage::NotLeader { .. })).count();
    let attached = told.iter().filter(|each| matches!(each, ResponderMessage::Attach { token: 70, .. })).count();
    assert_eq!((away, attached), (1, 1), "the other publisher must reopen its session: {told:?}");

    old.ingress.follow(None);
    send(&mut late, &event(appended + 1, 1, b"to somebody else"));
    old.poll(1_000 * S + 160 * MS);
    assert_eq!(old.turned_away(), [""; 0]);
    old.ingress.follow(Some("/run/b"));
    old.poll(1_000 * S + 161 * MS);
    assert_eq!(old.turned_away(), ["/run/b"; 2]);
    assert_eq!(late.writer.backlog_bytes(), 0);
}

#[test]
fn all_sessions_must_be_reopened() {
    let (mut member, mut publisher, session) = leader(1_000 * S);
    let appended = member.ingress.last_sequence();
    member.ingress.follow(None);
    send(&mut publisher, &event(session, 1, b"before it knows"));
    send(&mut publisher, &open(8));
    send(&mut publisher, &event(session, 2, b"still"));
    send(&mut publisher, &part(session, 3, 0, 2, 10));
    member.poll(1_000 * S + MS);
    member.ingress.lead(2).unwrap();
    member.poll(1_000 * S + 2 * MS);
    member.poll(1_000 * S + 3 * MS);
    let told = member.told();
    assert!(
        matches!(&told[..], [ResponderMessage::Attach { token: 8, .. }, ResponderMessage::NotLeader { .. }]),
        "its session is not lost: {told:?}"
    );
    send(&mut publisher, &open(7));
    send(&mut publisher, &part(session, 1, 0, 2, 10));
    send(&mut publisher, &part(session, 2, 1, 2, 10));
    member.poll(1_000 * S + 4 * MS);
    let told = member.told();
    assert!(matches!(&told[..], [ResponderMessage::Reopen { next_session_seq: 1, .. }]), "{told:?}");
    assert_eq!(member.ingress.last_sequence(), appended + 3);
}

#[test]
fn stale_ring_steals_no_session() {
    // Either ring may be read first.
    for polls in 0..2 {
        let (mut member, mut publisher, session) = leader(1_000 * S);
        let mut successor = member.connect();
        (0..polls).for_each(|_| member.poll(1_000 * S + MS));
        send(&mut publisher, &event(session, 1, b"first"));
        send(&mut publisher, &open(7));
        drop(publisher);
        send(&mut successor, &open(7));
        (2..5).for_each(|ms| member.poll(1_000 * S + ms * MS));
        member.told();
        send(&mut successor, &event(session, 1, b"first"));
        send(&mut successor, &event(session, 2, b"second"));
        let appended = member.ingress.last_sequence();
        (5..8).for_each(|ms| member.poll(1_000 * S + ms * MS));
        let told = member.told();
        assert!(
            !told.iter().any(|told| matches!(told, ResponderMessage::Refuse { .. })),
            "after {polls} polls: {told:?}"
        );
        assert!(member.ingress.last_sequence() > appended, "after {polls} polls");
    }
}

#[test]
fn leading_witness_answers_no_one() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    send(&mut publisher, &event(session, 1, b"whose reply is a service's"));
    leader.poll(1_000 * S);
    let mut witness = follower_of(&mut leader);
    witness.ingress.redirect_all();
    witness.ingress.lead(2).unwrap();
    let mut link = witness.connect();
    send(&mut link, &open(7));
    send(&mut link, &event(session, 1, b"whose reply is a service's"));
    send(&mut link, &open(8));
    let appended = witness.ingress.last_sequence();
    witness.poll(1_001 * S);
    assert_eq!(witness.turned_away(), [""]);
    assert_eq!((witness.ingress.last_sequence(), link.writer.backlog_bytes()), (appended, 0));
}

#[test]
fn corrupt_ring_waits_for_full_service() {
    let mut member = Member::new();
    member.ingress.follow(Some("/run/b"));
    let mut publisher = member.connect();
    publisher.writer.claim(HEADER_LENGTH).unwrap().fill(0);
    publisher.writer.commit(HEADER_LENGTH);
    let _ = publisher.writer.publish();
    while member.service.push(ResponderMessage::Deposed).is_ok() {}
    member.poll(1_000 * S);
    assert!(!member.told().iter().any(|told| matches!(told, ResponderMessage::Refuse { .. })));
    member.poll(1_000 * S + 1);
    assert!(matches!(&member.told()[..], [ResponderMessage::Refuse { code: RefusalCode::Malformed, .. }]));
}

#[test]
fn truncated_frames_leave_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let layout = StreamLayout::new(directory.path());
    let persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    let mut opened =
        persistence.open(&layout.journal(), JournalParameters::new(Tier::Quorum, FRAME_LENGTH_MAX)).unwrap();
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    send(&mut publisher, &timer(session, 1, 3, 1_500 * S));
    leader.poll(1_000 * S);
    let mut follower = follower_of(&mut leader);
    let mut journaled = 0;
    let mut journal = |member: &mut Member| {
        let bytes = member.appended();
        let last = member.ingress.last_sequence();
        opened.journal.append(&bytes, journaled + 1, last).unwrap();
        opened.journal.commit().unwrap();
        journaled = last;
        bytes
    };
    journal(&mut follower);
    follower.release();
    let (kept, state) = (follower.ingress.last_sequence(), follower.state());

    send(&mut publisher, &timer(session, 2, 3, 1_700 * S));
    send(&mut publisher, &part(session, 3, 0, 2, 10));
    send(&mut publisher, &part(session, 4, 1, 2, 10));
    let mut other = leader.connect();
    send(&mut other, &open(8));
    leader.requests.push(SequencerRequest::Halt { reason: "no".to_owned() }).unwrap();
    leader.poll(1_001 * S);
    leader.requests.push(SequencerRequest::Resume).unwrap();
    leader.poll(1_001 * S);
    leader.poll(1_001 * S);
    let cut = leader.appended();
    assert!(frames(&cut).len() > 4);
    follower.take_over(&cut);
    journal(&mut follower);
    assert_ne!(follower.state().sessions, state.sessions);
    assert_ne!(follower.state().timers, state.timers);

    let sequencer = |sequence| rebuild(&layout, opened.identity, rules(), sequence);
    let middle = kept + frames(&cut).iter().position(|frame| frame.fragment().count > 1).unwrap() as u64 + 1;
    let refused = sequencer(middle).err().unwrap().to_string();
    assert!(refused.contains("middle of a message"), "{refused}");
    let refused = sequencer(journaled + 1).err().unwrap().to_string();
    assert!(refused.contains("the journal ends there"), "{refused}");
    assert_eq!(sequencer(0).unwrap().last_sequence(), 0);

    let is_refused = |outcome: Result<(), StreamError>| matches!(outcome, Err(StreamError::Follow { .. }));
    assert!(is_refused(follower.ingress.truncate_after(kept + 1, sequencer(kept).unwrap())), "it stands elsewhere");
    assert!(is_refused(leader.ingress.truncate_after(kept, sequencer(kept).unwrap())), "a leader cuts nothing");
    let released = follower.ingress.truncate_after(kept - 1, sequencer(kept - 1).unwrap());
    assert!(matches!(released, Err(StreamError::Log(LogError::TruncatesReleased { .. }))), "{released:?}");
    assert_ne!(follower.state(), state, "a refusal changes nothing");

    follower.ingress.truncate_after(kept, sequencer(kept).unwrap()).unwrap();
    assert_eq!(follower.state(), state);
    assert_eq!(follower.ingress.shared().feeds.lock().all(), &state.feeds[..]);

    let mut elected = Member::with(sequencer(kept).unwrap());
    elected.ingress.lead(2).unwrap();
    let mut link = elected.connect();
    send(&mut link, &open(7));
    send(&mut link, &event(session, 2, b"another"));
    elected.poll(1_002 * S);
    let others = elected.appended();
    assert_eq!(frames(&others).len(), 1);
    assert_eq!(follower.ingress.append_followed(&others).unwrap(), 0, "its cursor may read truncated frames");
    assert!(matches!(follower.cursor.available(), Err(LogError::Truncated { .. })));
    follower.cursor.rewind();
    follower.take_over(&others);
    assert_eq!(follower.state(), elected.state());
    assert_eq!(follower.appended(), others);
}

#[test]
fn discontinuous_frames_are_refused() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    let begun = leader.appended();
    for number in 1..=3 {
        send(&mut publisher, &event(session, number, b"one of three"));
    }
    leader.poll(1_001 * S);
    let bytes = leader.appended();
    let length = bytes.len() / 3;
    let fresh = || {
        let mut member = Member::new();
        member.ingress.follow(None);
        member.take_over(&begun);
        member
    };
    let refused = |member: &mut Member, bytes: &[u8]| {
        let before = member.state();
        let outcome = member.ingress.append_followed(bytes);
        assert!(matches!(outcome, Err(StreamError::Follow { .. })), "{outcome:?}");
        assert_eq!(member.state(), before);
    };
    let mut member = fresh();
    refused(&mut member, &bytes[length..]);
    refused(&mut member, &begun);
    refused(&mut member, &bytes[..length - 8]);
    refused(&mut member, &bytes[..20]);
    let mut early = bytes[..length].to_vec();
    early[16..24].copy_from_slice(&(999 * S).to_le_bytes());
    refused(&mut member, &early);
    let mut outdated = bytes[..length].to_vec();
    outdated[40..48].fill(0);
    refused(&mut member, &outdated);
    let mut strange = bytes[..length].to_vec();
    strange[5] = 0xee;
    refused(&mut member, &strange);
    member.take_over(&bytes);
    let mut late = member.ingress.lead(0);
    assert!(matches!(late, Err(StreamError::Follow { .. })), "a term that is over");
    member.ingress.lead(4).unwrap();
    refused(&mut member, &bytes);

    send(&mut publisher, &part(session, 4, 0, 2, 10));
    send(&mut publisher, &part(session, 5, 1, 2, 10));
    leader.poll(1_002 * S);
    let parts = leader.appended();
    let mut member = fresh();
    member.take_over(&bytes);
    member.take_over(&parts[..parts.len() / 2]);
    late = member.ingress.lead(4);
    assert!(matches!(late, Err(StreamError::Follow { .. })), "{late:?}");
    member.take_over(&parts[parts.len() / 2..]);
    member.ingress.lead(4).unwrap();
}

#[test]
fn full_window_takes_the_rest_later() {
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    let mut follower = follower_of(&mut leader);
    let mut all = Vec::new();
    leader.release();
    for number in 1..=2 * WINDOW_BYTES as u64 / 512 {
        send(&mut publisher, &event(session, number, &[number as u8; 440]));
        leader.poll(1_001 * S);
        all.extend(leader.appended());
        leader.release();
    }
    let (mut taken, mut rounds, mut read) = (0, 0, Vec::new());
    let _ = follower.appended();
    while taken < all.len() {
        taken += follower.ingress.append_followed(&all[taken..]).unwrap();
        assert_eq!(follower.ingress.append_followed(&all[taken..]).unwrap(), 0, "it stays full");
        follower.ingress.publish();
        read.extend(follower.appended());
        follower.release();
        rounds += 1;
    }
    assert!(rounds > 1 && read == all);
    assert_eq!(follower.state(), leader.state());
}

#[test]
fn no_state_without_its_journal() {
    for is_gone in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        let persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        let opened =
            persistence.open(&layout.journal(), JournalParameters::new(Tier::Quorum, FRAME_LENGTH_MAX)).unwrap();
        let [watermark] = RetentionWatermark::shared(&opened.journal.preparer(), [0]);
        let (below, window) = ((opened.journal.syncer(), watermark), Member::new().window);
        let interval = StateInterval { frames: 1, time_min_ns: 0 };
        let mut writer = SequencerStateWriter::by_hand(layout.state(), IDENTITY, 0, interval, window, below).unwrap();
        if is_gone {
            let files = std::fs::read_dir(layout.journal()).unwrap().map(|entry| entry.unwrap().path());
            let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "segment");
            files.filter(is_segment).for_each(|path| std::fs::remove_file(path).unwrap());
        }
        writer.submit(SequencerState::of(&Sequencer::new(rules()), IDENTITY), 0);
        writer.turn();
        assert_eq!(std::fs::read_dir(layout.state()).unwrap().count(), usize::from(!is_gone));
    }
}

#[test]
fn truncated_state_is_never_written() {
    let directory = tempfile::tempdir().unwrap();
    let layout = StreamLayout::new(directory.path());
    let persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    let opened = persistence.open(&layout.journal(), JournalParameters::new(Tier::Quorum, FRAME_LENGTH_MAX)).unwrap();
    let (mut leader, mut publisher, session) = leader(1_000 * S);
    let mut member = Member::new();
    let interval = StateInterval { frames: 1, time_min_ns: 0 };
    let [watermark] = RetentionWatermark::shared(&opened.journal.preparer(), [0]);
    let below = (opened.journal.syncer(), watermark);
    let writer =
        SequencerStateWriter::start(layout.state(), IDENTITY, 0, interval, member.window.clone(), below).unwrap();
    member.ingress = member.ingress.writing_state(writer);
    member.ingress.follow(None);
    member.take_over(&leader.appended());
    let kept = member.ingress.last_sequence();
    let mut reference = Sequencer::new(rules());
    frames(&member.appended()).iter().for_each(|frame| reference.observe(frame));

    for number in 1..=5 {
        send(&mut publisher, &event(session, number, b"cut"));
    }
    leader.poll(1_001 * S);
    member.take_over(&leader.appended());
    member.poll(1_001 * S);
    let _ = member.appended();
    let cut = member.ingress.last_sequence();
    member.ingress.truncate_after(kept, reference).unwrap();
    member.cursor.available().unwrap_err();
    member.cursor.rewind();
    member.ingress.lead(2).unwrap();
    let mut link = member.connect();
    send(&mut link, &open(7));
    for number in 1..=10 {
        send(&mut link, &event(session, number, b"others"));
    }
    member.poll(1_002 * S);
    let _ = member.appended();
    member.release();
    let last = member.ingress.last_sequence();
    assert!(last > cut);
    let written = || {
        let entries = std::fs::read_dir(layout.state()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.starts_with("state-"));
        names.sort();
        names
    };
    let begun = Instant::now();
    let mut next = 11;
    while written().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "no state is written");
        send(&mut link, &event(session, next, b"more"));
        next += 1;
        member.poll(1_003 * S + next);
        let _ = member.appended();
        member.release();
        std::thread::sleep(Duration::from_millis(1));
    }
    let first: u64 = written()[0]["state-".len()..].parse().unwrap();
    assert!(first >= last, "the state at {cut} was of frames that are gone; {first} is of those that are there");
}

#[test]
fn new_leader_requests_timers() {
    let (mut leader, _publisher, _) = leader(1_000 * S);
    let mut member = follower_of(&mut leader);
    leader.requests.push(SequencerRequest::SetTimer { timer: 5, deadline_ns: 1_001 * S }).unwrap();
    leader.poll(1_000 * S + 1);
    member.poll(1_000 * S + 2);
    member.everything_told();
    // The follower's service sets its own timer late.
    leader.poll(1_002 * S);
    let fired = leader.appended();
    assert_eq!(frames(&fired).iter().filter(|frame| frame.kind() == Kind::Timer).count(), 1);
    member.take_over(&fired);
    member.requests.push(SequencerRequest::SetTimer { timer: 5, deadline_ns: 1_001 * S }).unwrap();
    member.poll(1_002 * S);
    member.release();
    let last_sequence = member.ingress.last_sequence();
    member.appended();
    member.ingress.lead(2).unwrap();
    member.poll(1_003 * S);
    assert_eq!(member.everything_told(), [ResponderMessage::Leads { last_sequence }]);
    assert!(member.appended().is_empty(), "it has fired before");
    member.requests.push(SequencerRequest::SetTimer { timer: 6, deadline_ns: 1_002 * S }).unwrap();
    member.poll(1_003 * S + 1);
    let fired = member.appended();
    assert_eq!(frames(&fired).iter().map(|frame| frame.kind()).collect::<Vec<_>>(), [Kind::Timer], "this one has not");
    member.ingress.follow(Some("elsewhere"));
    member.poll(1_003 * S + 2);
    assert_eq!(member.everything_told(), [ResponderMessage::Deposed]);
}
