//! Rewrites the seeds of every corpus, from bytes of our own writers and of the official SBE generator: `cargo run -p
//! gapless-fuzz --example seeds`. Inputs added by fuzzing stay.
#![allow(clippy::unwrap_used, reason = "a program for developers says where it failed")]

use gapless_agent::Counters;
use gapless_client::control_messages::{
    ControlAnswer, ControlCommand, ControlRequest, ControlStatus, NodeRow, NodesAnswer, NodesRequest, StreamState,
};
use gapless_cluster::consensus::{
    ChangeStep, Consensus, ConsensusOptions, Effects, LogPosition, MemberId, Members, MembershipChange, RecoveredState,
};
use gapless_cluster::link::beacon::Beacon;
use gapless_cluster::link::log_state::LogState;
use gapless_cluster::link::wire::{
    ClusterName, Introduction, LinkRefusal, LinkRefusalCode, MemberIdentity, MessageHeader, MessageKind,
};
use gapless_cluster::member::snapshot_transfer::wire::{
    JournalBase, OfferedFile, PieceLocation, TransferAnswer, TransferFile, TransferOffer, TransferRequest,
};
use gapless_engine::dead_letters::{DeadLetter, DeadLetters, FILE_NAME};
use gapless_engine::store::{ByteKey, InlineMessage};
use gapless_fuzz::bridges::{self, FLAG_END, FLAG_PRESENCE, FLAG_TOMBSTONE, OWN, PEER};
use gapless_fuzz::calls::{self, Line};
use gapless_fuzz::connections::{SESSION, TOKEN};
use gapless_fuzz::input::scratch;
use gapless_fuzz::services::ECHO;
use gapless_fuzz::{journals, messages, stores, workbooks};
use gapless_journal::Journal;
use gapless_kafka::outcome::CallFailure;
use gapless_kafka::presence::{Lease, MarkPlace, OfferedInstance, OfferedRoute};
use gapless_kafka::record::{KafkaRecord, RecordHeader, RecordWriter, ReplyHead, RequestHead, SegmentPlace, names};
use gapless_log::{MemoryKind, StreamIdentity, WindowOptions, descriptor as log_layout, ring};
use gapless_rpc::{Headers, Message as _};
use gapless_schema::{Protobuf, ProtobufObject, Sbe, SbeObject, schema_key};
use gapless_stream::sequencer::{Sequencer, SequencerRules, Timer};
use gapless_stream::sequencer_state::SequencerState;
use gapless_transport::Tier;
use gapless_transport::handshake::{HandshakeStatus, Hello, Welcome};
use gapless_transport::link::RingSizes;
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::transport::Transport;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen, SessionOpened, TimerFired};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::mark::Mark;
use gapless_wire::mold::{MoldRequest, PacketWriter};
use gapless_wire::soup::{Field, Login, RejectReason};
use gapless_wire::upstream::{RefusalReason, UpstreamBody, UpstreamPacket};
use gapless_wire::{
    Encoding, FeedSession, Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length, mark, mold, soup,
    upstream,
};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

fn main() {
    wire();
    feeds();
    stream_seeds();
    mappings();
    journals_and_snapshots();
    transactions();
    commands();
    stores();
    connections();
    clusters();
    schemas_and_messages();
    bridges();
    calls();
    workbook();
    links();
}

fn clusters() {
    let ids = [1, 2].map(|number| MemberId::new(number).unwrap());
    let start =
        |id| Consensus::new(ConsensusOptions::new(id, Members::of_voters(&ids)), RecoveredState::empty()).unwrap();
    let mut members = ids.map(start);
    let mut effects = Effects::default();
    let (mut seen, mut waiting) = (std::collections::BTreeSet::new(), Vec::new());
    for turn in 0..200u64 {
        for message in std::mem::take(&mut waiting) {
            let message: gapless_cluster::consensus::Message = message;
            let at = (message.to - 1) as usize;
            if at < 2 {
                let _ = members[at].step(MemberId::new(message.from).unwrap(), message);
            }
        }
        for (at, member) in members.iter_mut().enumerate() {
            member.tick(turn * 2_000_000);
            if turn == 100 && member.is_leader() {
                let _ = member.propose_members(&MembershipChange::of(ChangeStep::Learner(MemberId::new(3).unwrap())));
            }
            member.poll(&mut effects);
            member.persisted(effects.number);
            for record in &effects.records {
                if seen.insert((100 + u8::from(record.is_checkpoint), record.payload.len())) {
                    seed("consensus_record", &format!("{at}-{turn}-{}", record.payload.len()), &record.payload);
                }
            }
            if turn % 90 == 50 {
                seed("cluster_history", &format!("{at}-{turn}"), &member.history().to_bytes());
            }
            for outgoing in effects.messages.drain(..) {
                let mut bytes = Vec::new();
                gapless_cluster::consensus::wire::encode(&outgoing.message, &mut bytes);
                if seen.insert((bytes[1], bytes.len())) {
                    seed("consensus_message", &format!("{}-{}", bytes[1], bytes.len()), &bytes);
                }
                waiting.push(outgoing.message);
            }
        }
    }
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn seed(target: &str, name: &str, bytes: &[u8]) {
    let folder = corpus(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn frame(header: FrameHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    writer.finish(&header, payload.len());
    bytes
}

fn with_mode(mode: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    [vec![mode], parts.concat()].concat()
}

fn open_payload() -> [u8; SessionOpen::LENGTH] {
    SessionOpen { token: TOKEN, window_messages: 4, shared: false, notices_seen: 0 }.to_bytes()
}

fn command(session_seq: u64, payload: &[u8]) -> Vec<u8> {
    frame(FrameHeader { session: 1, session_seq, schema: ECHO, ..FrameHeader::default() }, payload)
}

fn wire() {
    seed("frame", "command", &command(1, b"hello"));
    let header = FrameHeader { kind: Kind::Reply, flags: REFUSED_FLAG | 1, ..FrameHeader::default() };
    seed("frame", "refusal", &frame(header, &[0; 17]));
    let header = FrameHeader { fragment: Fragment { index: 2, count: 3 }, session_seq: 9, ..FrameHeader::default() };
    seed("frame", "fragment", &frame(header, &[7; 40]));

    seed("control", "open", &open_payload());
    let opened = SessionOpened { token: TOKEN, next_session_seq: 3, notices_acknowledged: 2 };
    seed("control", "opened", &opened.to_bytes());
    let mut refusal = [0; 64];
    let length = Refusal { code: RefusalCode::Gap, detail: 3, text: "3 was expected, né" }.write_to(&mut refusal);
    seed("control", "refusal", &refusal[..length]);
    seed("control", "timer", &TimerFired { timer: 1, deadline_ns: 2 }.to_bytes());

    let identity = StreamIdentity { stream_id: 9, incarnation: 4 };
    seed(
        "handshake",
        "hello",
        &Hello {
            link: RingSizes::default(),
            identity,
            reads: false,
            seen: SeenFrame { identity, sequence: 7, timestamp_ns: 9 },
            mtu: None,
        }
        .to_bytes(),
    );
    let welcome = Welcome {
        status: HandshakeStatus::Welcome,
        connection: 1,
        identity,
        frame_length_max: 1376,
        tier: 1,
        process_id: 17,
        message_length_max: 1 << 20,
        released_sequence: 99,
        mtu: None,
    };
    seed("handshake", "welcome", &welcome.to_bytes());
}

fn feeds() {
    let feed_session = FeedSession::new("MONDAY").unwrap();
    let mut buffer = [0; mold::PACKET_LENGTH_UDP];
    let mut writer = PacketWriter::new(&mut buffer, feed_session, 7);
    for message in [&command(1, b"hello")[..], b"", b"text"] {
        assert!(writer.push(message));
    }
    let length = writer.finish();
    seed("mold_packet", "three-messages", &buffer[..length]);
    let length = mold::heartbeat(&mut buffer, feed_session, 8);
    seed("mold_packet", "heartbeat", &buffer[..length]);
    let length = mold::end_of_session(&mut buffer, FeedSession::new("0123456789").unwrap(), u64::MAX);
    seed("mold_packet", "end-of-session", &buffer[..length]);
    for (name, feed_session, sequence, count) in
        [("two", feed_session, 7, 2), ("blank", FeedSession::BLANK, u64::MAX - 0xffff, 0xffff)]
    {
        seed("mold_request", name, &MoldRequest { feed_session, sequence, count }.to_bytes());
    }

    let stream = |limit: u16, packets: &[Vec<u8>]| [limit.to_le_bytes().to_vec(), packets.concat()].concat();
    let server = [
        written(|packet| soup::write_debug(packet, b"welcome")),
        written(|packet| soup::write_login_accepted(packet, feed_session, 7)),
        written(|packet| soup::write_sequenced(packet, &command(1, b"hello"))),
        written(soup::write_server_heartbeat),
        written(|packet| soup::write_sequenced(packet, b"")),
        written(soup::write_end_of_session),
    ];
    seed("soup_server", "a-feed", &stream(1024, &server));
    let rejected = |reason| stream(64, &[written(|packet| soup::write_login_rejected(packet, reason))]);
    seed("soup_server", "not-authorized", &rejected(RejectReason::NotAuthorized));
    seed("soup_server", "no-such-session", &rejected(RejectReason::SessionNotAvailable));
    seed("soup_server", "padded-otherwise", b"\x21\0\0\x1fAMONDAY    00000000000000000007\0\x01H");

    let (username, password) = (Field::new("reader").unwrap(), Field::new("secret").unwrap());
    let client = [
        written(|packet| soup::write_login(packet, &Login { username, password, feed_session, sequence: 7 })),
        written(soup::write_client_heartbeat),
        written(|packet| soup::write_unsequenced(packet, &command(1, b"hello"))),
        written(|packet| soup::write_debug(packet, b"")),
        written(soup::write_logout),
    ];
    seed("soup_client", "a-reader", &stream(1024, &client));
    let (username, password, feed_session) = (Field::BLANK, Field::BLANK, FeedSession::BLANK);
    let nobody = Login { username, password, feed_session, sequence: 0 };
    seed("soup_client", "nobody", &stream(64, &[written(|packet| soup::write_login(packet, &nobody))]));
    let padded_otherwise = b"\x31\0\0\x2fL   joe    secretMONDAY    7                   \0\x01R";
    seed("soup_client", "padded-otherwise", padded_otherwise);
}

fn stream_seeds() {
    let feed_session = FeedSession::new("FEED").unwrap();
    let (username, password) = (Field::new("reader").unwrap(), Field::new("secret").unwrap());
    let (nonce, stream_id, incarnation, position) = (9, 7, 3, 0);
    let hello = upstream::NodeHello {
        nonce,
        stream_id,
        incarnation,
        position,
        username,
        password,
        seen_sequence: 7,
        seen_timestamp_ns: 9,
        seen_stream_id: stream_id,
        seen_incarnation: incarnation,
        mtu: None,
    };
    let frames = command(1, b"hello");
    let report = upstream::NodeReport { position: 5, is_live: true, ..upstream::NodeReport::default() };
    let refusal = UpstreamBody::Refusal { nonce, reason: RefusalReason::NotHeld, text: "begins at 1000" };
    for (name, key, body) in [
        ("hello", 0, UpstreamBody::Hello(hello)),
        ("frames", 5, UpstreamBody::Frames(&frames)),
        ("report", 5, UpstreamBody::Report(report)),
        ("refusal", 0, refusal),
        ("farewell", 5, UpstreamBody::Farewell),
    ] {
        let packet = UpstreamPacket { key, body };
        seed("upstream_packet", name, &written(|buffer| packet.write_to(buffer)));
    }
    let mut payload = [0; mark::LENGTH_MAX];
    for (name, mark) in [
        ("began", Mark::FeedBegan { feed_session }),
        ("ended", Mark::FeedEnded { feed_session }),
        ("halted", Mark::Halted { reason: "prices" }),
        ("resumed", Mark::Resumed),
    ] {
        let length = mark.write_to(&mut payload);
        seed("stream_mark", name, &payload[..length]);
    }
    let identity = StreamIdentity { stream_id: 7, incarnation: 3 };
    for command in [
        ControlCommand::Halt { reason: "prices are wrong".to_owned() },
        ControlCommand::Resume,
        ControlCommand::RollOver { name: feed_session },
        ControlCommand::End,
    ] {
        let name = command.name();
        seed("stream_control", name, &ControlRequest { command, identity }.to_bytes());
    }
    let answer = ControlAnswer { status: ControlStatus::Done, identity, sequence: 12, process_id: 34 };
    seed("stream_control", "answer", &answer.to_bytes());
    let row = NodeRow {
        connection: 4,
        name: "anna".to_owned(),
        process_id: None,
        address: Some("10.1.2.3:4000".parse().unwrap()),
        transport: Transport::Udp,
        is_live: Some(true),
        position: 13,
        lag_frames: 0,
        frames_requested: 1,
        frames_resent: 2,
        frames_published: 3,
        frames_dropped: 0,
        in_flight: 1,
        noted_ns: 5,
    };
    let answer = NodesAnswer {
        identity,
        released_sequence: 12,
        process_id: 34,
        stream: StreamState {
            tier: Tier::Journal,
            transports: vec![Transport::SharedMemory, Transport::Udp],
            is_halted: Some(false),
            feed_session,
            has_feed_ended: false,
        },
        has_more: false,
        rows: vec![row],
    };
    seed("stream_control", "nodes", &answer.to_bytes());
    seed("stream_control", "nodes-request", &NodesRequest { behind: 3 }.to_bytes());
    let mut sequencer = Sequencer::new(SequencerRules::of_stream(1));
    sequencer.resume_at(10, 20);
    sequencer.restore_session(2, 1 << 100, 5, 19);
    sequencer.restore_shared(2);
    sequencer.restore_timer(Timer { deadline_ns: 30, owner: 2, timer: 1 });
    sequencer.note(1, Mark::FeedBegan { feed_session });
    seed("sequencer_state", "a-state", &SequencerState::of(&sequencer, identity).to_bytes());
    feed_receiver_seeds(feed_session);
}

fn feed_receiver_seeds(feed_session: FeedSession) {
    let event = |sequence: u64| {
        let mut bytes = vec![0; 128];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..5].copy_from_slice(b"hello");
        let header = FrameHeader { kind: Kind::Event, sequence, ..FrameHeader::default() };
        let length = writer.finish(&header, 5);
        bytes.truncate(length);
        bytes
    };
    let packet = |sequence: u64, count: u64| {
        let mut bytes = [0; 1400];
        let mut writer = PacketWriter::new(&mut bytes, feed_session, sequence);
        (sequence..sequence + count).for_each(|each| assert!(writer.push(&event(each))));
        let length = writer.finish();
        [&(length as u16).to_le_bytes()[..], &bytes[..length]].concat()
    };
    let feed = [packet(1, 2), packet(5, 1), packet(5, 1), packet(3, 2), packet(6, 3)].concat();
    seed("feed_receiver", "out-of-order", &feed);

    let note = |sequence, mark: Mark<'_>| {
        let mut bytes = vec![0; 512];
        let mut writer = FrameWriter::new(&mut bytes);
        let mut payload = [0; mark::LENGTH_MAX];
        let length = mark.write_to(&mut payload);
        writer.payload_mut()[..length].copy_from_slice(&payload[..length]);
        let header = FrameHeader { kind: Kind::Mark, sequence, ..FrameHeader::default() };
        let length = writer.finish(&header, length);
        bytes.truncate(length);
        bytes
    };
    let framed = |write: &dyn Fn(&mut [u8]) -> usize| {
        let mut bytes = [0; 1400];
        let length = write(&mut bytes);
        [&(length as u16).to_le_bytes()[..], &bytes[..length]].concat()
    };
    let one = |name, number, frame: Vec<u8>| {
        framed(&|buffer| {
            let mut writer = PacketWriter::new(buffer, name, number);
            assert!(writer.push(&frame));
            writer.finish()
        })
    };
    let (first, second) = (FeedSession::new("FEED").unwrap(), FeedSession::new("NEXT").unwrap());
    let end = framed(&|buffer| mold::end_of_session(buffer, first, 4));
    let rolled = [
        one(first, 1, event(1)),
        one(first, 2, event(2)),
        end.clone(),
        one(first, 3, note(3, Mark::FeedEnded { feed_session: first })),
        end.clone(),
        one(second, 1, note(4, Mark::FeedBegan { feed_session: second })),
        end,
        one(second, 2, event(5)),
    ];
    seed("feed_receiver", "a-roll-over", &rolled.concat());
}

fn written(write: impl Fn(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut packet = [0; 256];
    let length = write(&mut packet).unwrap();
    packet[..length].to_vec()
}

fn taken_apart(file: &[u8], words: &[usize], index_slots: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|number| file[number * 8..number * 8 + 8].to_vec()).collect();
    bytes.extend_from_slice(&file[log_layout::HEADER_LENGTH..log_layout::HEADER_LENGTH + index_slots * 8]);
    let data = &file[file.len() - log_layout::CAPACITY_MIN..];
    let end = data.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last + 1).next_multiple_of(8));
    bytes.extend_from_slice(&data[..end]);
    bytes
}

fn mappings() {
    use log_layout::*;
    let directory = scratch();
    let path = directory.path().join("ring");
    let (mut writer, reader) =
        ring::create(&MemoryKind::File(path.clone()), CAPACITY_MIN, StreamIdentity::default()).unwrap();
    for session_seq in 1..4 {
        writer.append(&command(session_seq, &[session_seq as u8; 20])).unwrap();
    }
    let _ = writer.publish();
    let file = std::fs::read(&path).unwrap();
    let words = [HEAD_WORD, TAIL_WORD, READER_PARKED_WORD, CLOSED_WORD];
    let apart = taken_apart(&file, &words, 0);
    seed("ring", "three-frames", &[vec![0], apart.clone()].concat());
    seed("ring", "three-frames-healed", &[vec![2], apart.clone()].concat());
    seed("ring", "memory-that-can-shrink", &[vec![4], apart].concat());
    seed("ring", "a-header-cut-short", &[vec![1], file[..200].to_vec()].concat());
    drop((writer, reader));

    let path = directory.path().join("window");
    let options = WindowOptions {
        memory: MemoryKind::File(path.clone()),
        capacity_bytes: CAPACITY_MIN,
        index_slots: 64,
        frame_length_max: CAPACITY_MIN / 2,
        ..WindowOptions::default()
    };
    let (mut writer, mut releaser) = options.create(1).unwrap();
    for sequence in 1..=8 {
        let header = FrameHeader { sequence, ..FrameHeader::default() };
        writer.append(&frame(header, &[sequence as u8; 30]), sequence).unwrap();
        writer.publish();
        releaser.release(writer.tail(), sequence);
    }
    let file = std::fs::read(&path).unwrap();
    let words = [TAIL_WORD, TAIL_SEQUENCE_WORD, RELEASED_WORD, RELEASED_SEQUENCE_WORD, CLAIMED_WORD];
    let mut start = vec![0];
    start.extend_from_slice(&3u64.to_le_bytes());
    let apart = taken_apart(&file, &words, 64);
    seed("window", "eight-frames", &[start.clone(), apart.clone()].concat());
    start[0] = 4;
    seed("window", "memory-that-can-shrink", &[start.clone(), apart.clone()].concat());
    let mut odd = [vec![0], start[1..].to_vec(), apart].concat();
    odd[9 + 2 * 8] += 4;
    seed("window", "released-in-the-middle-of-a-word", &odd);
    start[0] = 1;
    seed("window", "a-header-cut-short", &[start, file[..100].to_vec()].concat());

    let path = directory.path().join("counters");
    let counters = Counters::create(&path, 4).unwrap();
    counters.add("sequencer.frames").unwrap().add(3);
    counters.add("größe").unwrap().add(u64::MAX);
    let file = std::fs::read(&path).unwrap();
    seed("counters", "two-of-four", &[vec![0], file.clone()].concat());
    seed("counters", "as-it-is", &[vec![1], file].concat());
}

fn segment_files(directory: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    files.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("prepared"));
    files.sort();
    let number = |path: &Path| path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    files.iter().map(|path| (number(path), std::fs::read(path).unwrap())).collect()
}

fn stores() {
    let (mut store, handles) = stores::store();
    let car = || messages::car::Car {
        serial_number: Some(1234),
        some_numbers: vec![1, 2, 3],
        manufacturer: "Honda".to_owned(),
        model: "Civic".to_owned(),
        ..Default::default()
    };
    let mut bytes = vec![0; car().sbe_length()];
    car().to_sbe(&mut bytes).unwrap();
    let key = ByteKey::new(b"first").unwrap();
    let mut all = Vec::new();
    let mut keep = |changes: &mut Vec<u8>| {
        all.extend_from_slice(&(changes.len() as u16).to_le_bytes());
        all.append(changes);
    };
    let mut changes = Vec::new();
    let mut transaction = store.begin();
    for number in 0..3 {
        transaction.insert(handles.flags, number, stores::Flags { number, are_set: [true; 5] });
        transaction.push(handles.queue, Sbe(car())).unwrap();
    }
    transaction.insert(handles.cars, key, Sbe(car()));
    transaction.insert(handles.records, 7 << 70, InlineMessage::new(&bytes).unwrap());
    transaction.insert(handles.title, (), Protobuf(car()));
    transaction.add(handles.counter, -5).unwrap();
    transaction.commit(&mut changes).unwrap();
    seed("store_changes", "first", &[&(changes.len() as u16).to_le_bytes()[..], &changes].concat());
    keep(&mut changes);
    let mut snapshot = Vec::new();
    store.begin_snapshot(&mut snapshot).unwrap();
    let mut transaction = store.begin();
    transaction.get_mut(handles.flags, &1).unwrap().are_set[2] = false;
    transaction.get_mut(handles.cars, &key).unwrap().0.model.push('X');
    transaction.get_mut(handles.title, &()).unwrap().0.serial_number = Some(4321);
    transaction.get_mut(handles.records, &(7 << 70)).unwrap().overwrite(8, [1; 4]).unwrap();
    transaction.remove(handles.flags, &2);
    transaction.pop(handles.queue);
    transaction.commit(&mut changes).unwrap();
    keep(&mut changes);
    seed("store_changes", "patches", &all);
    while !store.snapshot_step(&mut snapshot, 100).unwrap() {}
    seed("store_snapshot", "while-changed", &snapshot);
    snapshot.clear();
    store.write_snapshot(&mut snapshot).unwrap();
    seed("store_snapshot", "whole", &snapshot);
}

fn transactions() {
    let sample = gapless_fuzz::transactions::sample();
    let of = |what: u8, bytes: &[u8]| [&[what][..], &(bytes.len() as u16).to_le_bytes(), bytes].concat();
    seed("transactions", "whole", &of(0, &sample));
    seed("transactions", "in-parts", &of(4, &sample));
    let mut refusal = sample[..32].to_vec();
    refusal[1] = 2;
    refusal[4..8].copy_from_slice(&(gapless_wire::control::RefusalCode::Rejected as u32).to_le_bytes());
    refusal[20..24].copy_from_slice(&2_u32.to_le_bytes());
    refusal[24..32].fill(0);
    refusal.extend_from_slice(b"no");
    seed("transactions", "refused", &[of(0, &sample), of(0, &refusal), of(8, b"never run")].concat());
    let (schema, deadline_ns) = (7_u64.to_le_bytes(), 9_u64.to_le_bytes());
    let message = [&4_u32.to_le_bytes()[..], b"wake"].concat();
    let mut timers = sample[..32].to_vec();
    timers[20..24].fill(0xff);
    timers[24..28].fill(0);
    timers[28..32].copy_from_slice(&2_u32.to_le_bytes());
    timers.extend([&[3][..], &schema, &deadline_ns, &message].concat());
    timers.extend([&[4][..], &schema, &[0; 8], &message].concat());
    seed("transactions", "typed-timers", &[of(0, &sample), of(0, &timers)].concat());
    let timer = [&3_u64.to_le_bytes()[..], &9_u64.to_le_bytes(), &refusal].concat();
    seed("transactions", "timer", &[of(0, &sample), of(1, &timer)].concat());
}

fn commands() {
    let samples = gapless_fuzz::commands::samples();
    let mut writer = gapless_fuzz::commands::writer();
    let mut all = vec![0];
    for (name, bytes) in &samples {
        let one = [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat();
        seed("command_envelope", name, &[&[0][..], &one].concat());
        all.extend_from_slice(&one);
        if let gapless_cqrs::bare_writer::BareResult::Answered(_, changes @ [_, ..]) = writer.decide(bytes, 1 << 16) {
            seed("command_transaction", name, changes);
        }
    }
    seed("command_envelope", "all", &all);
}

fn journals_and_snapshots() {
    let directory = scratch();
    let (mut journal, _) = Journal::open(journals::options(directory.path())).unwrap();
    let append = |journal: &mut Journal, count: u64, length: usize| {
        for sequence in journal.last_sequence() + 1..=journal.last_sequence() + count {
            let header = FrameHeader { sequence, timestamp_ns: sequence, ..FrameHeader::default() };
            journal.append(&frame(header, &vec![sequence as u8; length]), sequence, sequence).unwrap();
            journal.commit().unwrap();
        }
    };
    let both = |name: &str, mode: u8, segments: &[(u64, Vec<u8>)]| {
        let packed: Vec<Vec<u8>> = segments.iter().map(|(first, file)| journals::pack(*first, file)).collect();
        for target in ["journal_read", "journal_recovery"] {
            seed(target, name, &with_mode(mode, &packed));
        }
    };
    both("empty", 0, &segment_files(directory.path()));
    append(&mut journal, 5, 21);
    both("five-frames", 0, &segment_files(directory.path()));
    journal.syncer().sync().unwrap();
    append(&mut journal, 2, 50);
    both("two-not-synced", 1, &segment_files(directory.path()));
    // Few enough to stay small, long enough to fill a segment.
    append(&mut journal, 10, 900);
    drop(journal);
    // Opening gives the newest segment its final name.
    drop(Journal::open(journals::options(directory.path())).unwrap());
    let segments = segment_files(directory.path());
    assert!(segments.len() == 2, "{} segments", segments.len());
    both("two-segments", 2, &segments);
    both("the-first-is-missing", 1, &segments[1..]);
    let mut torn = segments[1].clone();
    let end = torn.1.iter().rposition(|byte| *byte != 0).unwrap();
    torn.1[end - 3] ^= 1;
    for target in ["journal_read", "journal_recovery"] {
        let mut packed = journals::pack(torn.0, &torn.1);
        packed[0] = 3;
        seed(target, "a-flipped-bit", &with_mode(1, &[packed]));
    }
    seed("journal_read", "a-header", &segments[0].1[..128]);

    let directory = scratch();
    let (mut journal, _) = Journal::open(journals::options(directory.path())).unwrap();
    journal.append_checkpoint(b"what consensus keeps").unwrap();
    append(&mut journal, 2, 21);
    journal.append_record(b"an entry").unwrap();
    journal.sync().unwrap();
    journal.append_record(b"a vote").unwrap();
    journal.commit().unwrap();
    both("records-among-frames", 0, &segment_files(directory.path()));
    both("a-record-not-synced", 1, &segment_files(directory.path()));
    append(&mut journal, 7, 900);
    while journal.segments_begun() < 2 {
        journal.append_record(&[7; 900]).unwrap();
    }
    journal.append_checkpoint(b"what it keeps now").unwrap();
    append(&mut journal, 1, 21);
    drop(journal);
    drop(Journal::open(journals::options(directory.path())).unwrap());
    both("a-checkpoint-in-the-second-segment", 2, &segment_files(directory.path()));
    both("records-at-the-end-of-a-segment", 1, &segment_files(directory.path()));

    let put = |bytes: &mut Vec<u8>, values: &[u64]| {
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    };
    let mut body = vec![0];
    put(&mut body, &[1, 1]);
    body.extend_from_slice(&1u32.to_le_bytes());
    put(&mut body, &[1]);
    body.extend_from_slice(&TOKEN.to_le_bytes());
    put(&mut body, &[1, 1, 1]);
    body.extend_from_slice(&2u32.to_le_bytes());
    for payload in [&b"reply"[..], b""] {
        put(&mut body, &[payload.len() as u64 / 5, 1, 1]);
        body.extend_from_slice(&ECHO.to_le_bytes());
        body.extend_from_slice(&0u16.to_le_bytes());
        body.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        body.extend_from_slice(payload);
    }
    put(&mut body, &[1]);
    body.extend_from_slice(&1u32.to_le_bytes());
    put(&mut body, &[1, 1, 1]);
    body.extend_from_slice(&ECHO.to_le_bytes());
    body.extend_from_slice(&1u16.to_le_bytes());
    body.extend_from_slice(&3u32.to_le_bytes());
    body.extend_from_slice(b"new");
    body.extend_from_slice(&1u32.to_le_bytes());
    put(&mut body, &[7, 1_000, 8, 5]);
    seed("snapshot", "a-session-and-a-timer", &body);
    let mut empty = vec![0];
    put(&mut empty, &[1, 1, 0, 8, 0]);
    seed("snapshot", "empty", &empty);
    seed("snapshot", "as-it-is", &[1, b'G', b'A', b'P']);

    let mut letters = DeadLetters::open(directory.path(), u64::MAX).unwrap();
    for sequence in [3, 9] {
        let (code, reason) = (RefusalCode::Unhandled, "no handler takes \"it\"\n".to_owned());
        letters.record(&DeadLetter { sequence, session: 1, session_seq: 2, schema: ECHO, code, reason });
    }
    let file = std::fs::read(directory.path().join(FILE_NAME)).unwrap();
    seed("dead_letters", "two", &file);
    seed("dead_letters", "none", b"");
}

fn connections() {
    let open = frame(FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, &open_payload());
    let fragment = |index: u16, session_seq| {
        let fragment = Fragment { index, count: 2 };
        frame(FrameHeader { fragment, session: 1, session_seq, schema: ECHO, ..FrameHeader::default() }, b"half")
    };
    let of = |kind, session_seq, payload: &[u8]| {
        frame(FrameHeader { kind, session: 1, session_seq, ..FrameHeader::default() }, payload)
    };
    let car = golden("car");
    let schema = schema_key(1, 1);
    let car = frame(
        FrameHeader { session: 1, session_seq: 5, flags: Encoding::Sbe.flags(), schema, ..FrameHeader::default() },
        &car,
    );
    let stream = [
        open,
        command(1, b"one"),
        command(2, b"two"),
        command(2, b"two"),
        fragment(0, 3),
        fragment(1, 4),
        car,
        of(Kind::Acknowledge, 6, &1u64.to_le_bytes()),
        of(Kind::SessionClose, 7, &[]),
        command(8, b"late"),
    ];
    seed("ingress", "a-session", &with_mode(1, &stream));
    seed("ingress", "a-session-bit-by-bit", &with_mode(3, &stream));
    seed("ingress", "a-session-as-it-is", &with_mode(0, &stream));
    seed("replay", "a-session", &with_mode(0, &stream));
    let query = FrameHeader {
        kind: Kind::Query,
        session_seq: 1,
        sequence: 2,
        timestamp_ns: 1_000_000_000,
        schema: ECHO,
        ..FrameHeader::default()
    };
    let queries = [frame(query, b"how many"), frame(FrameHeader { sequence: u64::MAX, ..query }, b"late")];
    seed("ingress", "a-session-with-queries", &with_mode(1, &[&stream[..2], &queries, &stream[2..]].concat()));
    let timer = frame(
        FrameHeader { kind: Kind::Timer, ..FrameHeader::default() },
        &TimerFired { timer: 111, deadline_ns: 1 }.to_bytes(),
    );
    seed("replay", "a-journal", &with_mode(1, &[&stream[..], &[timer, of(Kind::Mark, 0, &[])]].concat()));

    let from_service = |kind, session_seq, flags, fragment, payload: &[u8]| {
        let header = FrameHeader { kind, flags, session: SESSION, session_seq, fragment, ..FrameHeader::default() };
        frame(header, payload)
    };
    let opened = SessionOpened { token: TOKEN, next_session_seq: 1, notices_acknowledged: 0 }.to_bytes();
    let refusal = |code| {
        let mut bytes = [0; 32];
        let length = Refusal { code, detail: 1, text: "no" }.write_to(&mut bytes);
        bytes[..length].to_vec()
    };
    let half = |index| Fragment { index, count: 2 };
    let whole = Fragment::WHOLE;
    let stream = [
        from_service(Kind::SessionOpen, 0, 0, whole, &opened),
        from_service(Kind::Reply, 1, 0, whole, b"reply"),
        from_service(Kind::Notice, 1, 0, whole, b"notice"),
        from_service(Kind::Reply, 2, 0, half(0), b"re"),
        from_service(Kind::Reply, 2, 0, half(1), b"ply"),
        from_service(Kind::Reply, 3, REFUSED_FLAG, whole, &refusal(RefusalCode::Rejected)),
        from_service(Kind::Reply, 3, REFUSED_FLAG, whole, &refusal(RefusalCode::Gap)),
        from_service(Kind::Reply, 4, REFUSED_FLAG, whole, &refusal(RefusalCode::SessionUnknown)),
    ];
    let answer = |session_seq, flags, payload: &[u8]| {
        let header = FrameHeader { kind: Kind::Answer, sequence: 3, session_seq, flags, ..FrameHeader::default() };
        frame(header, payload)
    };
    let answers = [
        answer(1, 0, b"answer"),
        answer(2, REFUSED_FLAG, &refusal(RefusalCode::Unhandled)),
        answer(u64::MAX, 0, b"of no query"),
    ];
    seed("client", "answers", &with_mode(1, &[&stream[..1], &answers, &stream[1..]].concat()));
    seed("client", "a-session", &with_mode(1, &stream));
    seed("client", "a-session-bit-by-bit", &with_mode(3, &stream));
    seed(
        "client",
        "a-refused-ring",
        &with_mode(1, &[from_service(Kind::Reply, 0, REFUSED_FLAG, whole, &refusal(RefusalCode::Malformed))]),
    );
}

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gapless-schema/golden")
}

fn golden(name: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(golden_folder().join(format!("{name}.hex"))).unwrap();
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn schemas_and_messages() {
    for entry in std::fs::read_dir(golden_folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "hex") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            seed("sbe", name, &golden(name));
        }
    }
    fn protobuf<T: SbeObject + ProtobufObject>(number: u8, name: &str) {
        let object = T::from_sbe(&golden(name)).unwrap();
        let mut bytes = vec![0; object.protobuf_length()];
        object.to_protobuf(&mut bytes).unwrap();
        seed("protobuf", name, &[vec![number], bytes].concat());
    }
    use messages::*;
    protobuf::<big_endian::Big>(0, "big-endian");
    protobuf::<car::Car>(1, "car");
    protobuf::<extension_v0::Note>(2, "extension-v0-note");
    protobuf::<extension_v0::Order>(3, "extension-v0-order");
    protobuf::<extension_v2::Late>(4, "extension-v2-late");
    protobuf::<extension_v2::Note>(5, "extension-v2-note");
    protobuf::<extension_v2::Order>(6, "extension-v2-order");
    protobuf::<numbers::Arrays>(9, "numbers-arrays");
    protobuf::<numbers::Choices>(10, "numbers-choices");
    protobuf::<numbers::Empty>(11, "numbers-empty");
    protobuf::<numbers::Keywords>(12, "numbers-keywords");
    protobuf::<numbers::Padded>(14, "numbers-padded");
    protobuf::<numbers::Scalars>(15, "numbers-scalars");
    protobuf::<truck::Truck>(16, "truck");

    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gapless-schema/schemas");
    for name in ["big-endian", "car", "extension-v2", "names"] {
        seed("schema", name, &std::fs::read(schemas.join(format!("{name}.xml"))).unwrap());
    }
    seed("schema", "an-endless-include", br#"<messageSchema><include href="/dev/zero"/></messageSchema>"#);
}

fn workbook() {
    let relationship = |id: &str, kind: &str, target: &str| {
        format!(r#"<Relationship Id="{id}" Type="http://x/{kind}" Target="{target}"/>"#)
    };
    let relationships = |inner: String| format!("<Relationships>{inner}</Relationships>");
    let texts = [
        r#"<Types><Override PartName="/xl/calcChain.xml" ContentType="x"/></Types>"#.to_owned(),
        relationships(relationship("r1", "officeDocument", "xl/workbook.xml")),
        r#"<workbook><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets><calcPr calcId="1"/></workbook>"#.to_owned(),
        relationships(
            relationship("r1", "worksheet", "worksheets/sheet1.xml") + &relationship("r2", "calcChain", "calcChain.xml"),
        ),
        r#"<calcChain><c r="B2" i="1"/><c r="C3"/></calcChain>"#.to_owned(),
        r#"<worksheet><dimension ref="A1:C3"/><sheetData><row r="1"><c r="A1" s="1" t="s"><v>0</v></c></row><row r="3"><c r="B3"><f>SUM(A1:A2)</f><v>2</v></c></row></sheetData></worksheet>"#
            .to_owned(),
    ];
    for (name, cell) in [("a-value", [0, 0]), ("a-formula", [2, 1]), ("a-new-cell", [1, 4])] {
        let mut bytes = vec![0, cell[0], cell[1]];
        for (text, _) in texts.iter().zip(workbooks::PARTS) {
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        seed("workbook", name, &bytes);
    }
    let directory = scratch();
    let path = directory.path().join("book.xlsx");
    std::fs::File::create(&path).unwrap().write_all_at(b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 0).unwrap();
    seed("workbook", "an-empty-archive", &[vec![1, 0, 0], std::fs::read(&path).unwrap()].concat());
}

fn calls() {
    let order = |parent| calls::Order {
        id: 300,
        price: -5,
        weight: 0.25,
        grade: 'é',
        lines: vec![Line::Empty, Line::Count(-2), Line::Pair(7, 70_000)],
        marks: [("fragile".to_owned(), Some(true)), ("loose".to_owned(), None)].into(),
        holes: vec![(); 3],
        parent,
    };
    let mut bytes = vec![0, 0];
    order(Some(Box::new(order(None)))).encode(&mut bytes).unwrap();
    seed("call_message", "two-orders", &bytes);
    let mut bytes = vec![0, 1];
    order(None).encode_as(1, &mut bytes).unwrap();
    seed("call_message", "an-older-order", &bytes);
    seed("call_message", "an-order-as-json", &with_mode(0, &[vec![2], order(None).to_json().unwrap()]));
    let mut bytes = vec![1, 0];
    Line::Nested { lines: vec![Line::Nested { lines: Vec::new() }, Line::Empty] }.encode(&mut bytes).unwrap();
    seed("call_message", "nested-lines", &bytes);
    seed("call_message", "a-text", b"\x02\0\x05hello");
    seed("call_message", "bytes-as-json", b"\x04\x02[1,2,255]");
    let mut bytes = Vec::new();
    Headers::default().with("tenant", "blue").with("empty", "").encode(&mut bytes).unwrap();
    seed("call_headers", "two", &bytes);
    call_packets();
    let text = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let (attempts, time) = (2_u32.to_le_bytes(), 5_u64.to_le_bytes());
    seed("call_ended", "unknown", &[&[4], &attempts[..], &text("the broker is gone")].concat());
    seed("call_ended", "refused", &[&[5], &attempts[..], &text("late"), &text("\u{1}\u{2}")].concat());
    seed("call_ended", "timed-out", &[&[6], &time[..], &[0, 1, 0], &attempts].concat());
    seed("call_ended", "mismatch", &[vec![7], text("u64"), text("u8"), text("in the request")].concat());
    seed(
        "call_refusal",
        "with-a-payload",
        &[&7_u32.to_le_bytes()[..], &4_u32.to_le_bytes(), b"late", b"\x01\x02"].concat(),
    );
    let words = |places: &[(u16, u64)]| {
        let each = places.iter().flat_map(|(place, word)| [&place.to_le_bytes()[..], &word.to_le_bytes()].concat());
        std::iter::once(places.len() as u8).chain(each).collect::<Vec<u8>>()
    };
    let requests = words(&[(512, 9), (516, u64::MAX), (528, 1 << 32)]);
    let (claims, answers) = (words(&[(513, 1 << 32 | 2), (521, 7)]), words(&[(529, 1 << 32 | 4)]));
    seed("call_table", "scribbled", &[requests, claims, vec![64, 0, 3, 17], answers].concat());
}

/// The same as in `registry/packets.rs` of gapless-rpc.
fn call_packets() {
    let packet = |kind: u16, fields: &[&[u8]]| {
        [b"GAPR", &4_u16.to_le_bytes()[..], &kind.to_le_bytes(), &fields.concat()].concat()
    };
    let sound = |name: &str, bytes: &[u8]| {
        assert_eq!(gapless_rpc::packet_again(bytes).as_deref(), Ok(bytes), "{name}");
        seed("call_packet", name, bytes);
    };
    let text = |text: &str| [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    let described =
        |name: &str| [&77_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &2_u32.to_le_bytes(), &text(name)].concat();
    let (number, length) = (3_u64.to_le_bytes(), (1_u64 << 20).to_le_bytes());
    let (four, one) = (4_u32.to_le_bytes(), 1_u16.to_le_bytes());
    sound("hello", &packet(1, &[&[1], &four, &number, &text("shop")]));
    let types = [described("Order"), described("Price")].concat();
    let metadata = [text("zone"), text("b")].concat();
    let route =
        [text("shop/price"), vec![1], four.to_vec(), text("1.2"), types.clone(), one.to_vec(), metadata].concat();
    sound("route", &packet(2, &[&route, &[0; 2]]));
    sound("route-of-a-relay", &packet(2, &[&route, &one, &number, &text("depot/1")]));
    sound("listed", &packet(3, &[]));
    let attach = packet(4, &[&number, &four, &length, &length, &text("shop/price"), &types, &[2]]);
    sound("attach", &attach);
    sound("detach", &packet(5, &[&number]));
    sound("refused", &packet(7, &[&number, &1_u32.to_le_bytes(), &text("no such route"), &text(""), &text("")]));
    let shapes = [text("Order v2 {id: u64}"), text("u64")].concat();
    sound("refused-for-types", &packet(7, &[&number, &2_u32.to_le_bytes(), &text(""), &shapes]));
    sound("change", &packet(8, &[&text("shop/price"), &[2]]));
}

fn bridges() {
    let (writer, to) = (RecordWriter::new(&bridges::bridge(PEER)), OWN.1);
    let head = RequestHead {
        route: "shop/price".to_owned(),
        priority: gapless_rpc::Priority::High,
        key: Some(3),
        time_left_ms: Some(900),
        attempt: 2,
        hops: 1,
        encoding: gapless_rpc::Encoding::Json,
        headers: Headers::default().with("tenant", "blue"),
        ..RequestHead::default()
    };
    let with = |mut record: KafkaRecord, payload: &[u8]| {
        record.payload = Some(payload.to_vec());
        record
    };
    let place = |index| SegmentPlace { index, count: 3, total_bytes: 12 };
    let call = "0000000000000007:1";
    let each = |records: &[(u8, KafkaRecord)]| {
        records.iter().flat_map(|(flags, record)| bridges::to_bytes(*flags, record)).collect::<Vec<u8>>()
    };
    let request = with(writer.request("9:1", to, &head, None), b"{}");
    let repeated = each(&[(FLAG_END, request.clone()), (0, request), (0, writer.control("cancel", "9:1", Some(to)))]);
    seed("bridge_records", "a-request-again", &repeated);
    let segments = [
        (0, with(writer.request("9:2", to, &head, Some(place(0))), b"0123")),
        (0, with(writer.segment(true, "9:2", Some(to), place(1)), b"4567")),
        (FLAG_END, with(writer.segment(true, "9:2", Some(to), place(2)), b"89ab")),
    ];
    seed("bridge_records", "a-request-in-segments", &each(&segments));
    let replies = [
        (0, with(writer.reply(call, Some(to), &ReplyHead::Reply, Some(place(0))), b"0123")),
        (0, with(writer.segment(false, call, Some(to), place(2)), b"4567")),
        (0, writer.reply(call, Some(to), &ReplyHead::Refused { code: 7, text: "late".to_owned() }, None)),
    ];
    seed("bridge_records", "a-reply-without-a-segment", &each(&replies));
    let ended = CallFailure::NotBegun { attempts: 1, reason: "it stops".to_owned() }.to_json();
    let ended_reply = (0, with(writer.reply(call, Some(to), &ReplyHead::Failed, None), &ended));
    seed("bridge_records", "an-end", &each(&[ended_reply]));
    let others = [
        (0, writer.control("ping", "1", Some(to))),
        (0, writer.control("pong", "1", Some(to))),
        (0, writer.control("discarded", call, Some(to))),
        (0, writer.mark("m/x")),
        (FLAG_PRESENCE | FLAG_TOMBSTONE, writer.lease(PEER.0, "", None)),
    ];
    seed("bridge_records", "of-other-kinds", &each(&others));
    // The layout of a bundle, as `record/bundle.rs` of gapless-kafka has it.
    let bundle = |records: &[KafkaRecord]| {
        let mut payload = Vec::new();
        for record in records {
            let headers = || record.headers.iter().filter(|(name, _)| name != names::PROTOCOL);
            payload.extend((headers().count() as u16).to_le_bytes());
            for bytes in headers().flat_map(|(name, value)| [name.as_bytes(), value]) {
                payload.extend((bytes.len() as u16).to_le_bytes());
                payload.extend(bytes);
            }
            let bytes = record.payload.as_deref().unwrap_or_default();
            payload.extend((bytes.len() as u32).to_le_bytes());
            payload.extend(bytes);
        }
        with(KafkaRecord { headers: bundle_headers(), ..Default::default() }, &payload)
    };
    let bundled = [
        with(writer.request("9:3", to, &head, None), b"{}"),
        with(writer.reply(call, Some(to), &ReplyHead::Reply, None), b"42"),
        writer.control("cancel", "9:3", Some(to)),
    ];
    seed("bridge_records", "a-bundle", &each(&[(FLAG_END, bundle(&bundled))]));
    let lease = Lease {
        protocol: 1,
        incarnation: PEER.1 + 1,
        mark: MarkPlace { offset: 5, time_ms: 2_000 },
        machine: "m".to_owned(),
        lease_ms: 5_000,
        routes: vec![OfferedRoute {
            route: "shop/price".to_owned(),
            instances: vec![OfferedInstance { identity: 4, is_open: true, ..OfferedInstance::default() }],
            ..OfferedRoute::default()
        }],
        ..Lease::default()
    };
    seed("bridge_json", "lease", &lease.to_json());
    seed("bridge_json", "other-version", b"{\"protocol\":2}");
    seed("bridge_json", "not-begun", &ended);
}

fn bundle_headers() -> Vec<RecordHeader> {
    [(names::PROTOCOL, "1"), (names::KIND, "bundle")].map(|(name, value)| (name.into(), value.into())).into()
}

fn links() {
    let message = |kind, number, consensus: &[u8], frames: &[u8]| {
        let mut bytes = MessageHeader::new(kind, number, consensus, frames.len()).to_bytes().to_vec();
        for part in [consensus, frames] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    };
    let cluster = ClusterName::new("market").unwrap();
    let from = MemberIdentity { cluster, stream_id: 9, incarnation: 4, member: 1, instance: 77 };
    let introduction = Introduction { from, to: 2, log: LogState::default() }.to_bytes();
    let refusal = LinkRefusal { code: LinkRefusalCode::OtherStream, text: "here 9, there 8, né".to_owned() }.to_bytes();
    let stream = [
        message(MessageKind::Hello, 1, &introduction, b""),
        message(MessageKind::Ping, 2, b"", b""),
        message(MessageKind::Consensus, 3, b"append", &command(1, b"hello")),
        message(MessageKind::CatchUpRequest, 4, b"from 7", b""),
        message(MessageKind::CatchUpFrames, 5, b"", &command(2, b"")),
        message(MessageKind::Refusal, 6, &refusal, b""),
    ];
    // First byte: whether checksums are repaired; second: how long the pieces are.
    for (name, flags, piece) in [("as-it-is", 0, 255), ("healed", 1, 255), ("byte-by-byte", 1, 0)] {
        seed("cluster_link", name, &with_mode(flags, &[vec![piece], stream.concat()]));
    }
    seed("cluster_link", "two-hellos", &with_mode(1, &[vec![40], stream[0].clone(), stream[0].clone()]));
    seed("cluster_handshake", "introduction", &introduction);
    seed("cluster_handshake", "refusal", &refusal);
    let addresses = ["10.0.0.2:4100", "[fd00::2]:4101", "0.0.0.0:4102"].map(|text| text.parse().unwrap()).to_vec();
    let cluster = ClusterName::new("market").unwrap();
    seed("cluster_beacon", "three-addresses", &Beacon { cluster, member: 2, incarnation: 4, addresses }.to_bytes());
    let piece = PieceLocation { transfer: 7, part: TransferFile::Snapshot, offset: 1 << 20 };
    let members = Members {
        witnesses: vec![MemberId::new(3).unwrap()],
        ..Members::of_voters(&[1, 2, 3].map(|number| MemberId::new(number).unwrap()))
    };
    let offer = TransferOffer {
        transfer: 7,
        base: JournalBase { sequence: 100, hash: 5 },
        position: LogPosition { index: 9, term: 3, sequence: 250, hash: 6 },
        members,
        state: OfferedFile { sequence: 100, length: 68 },
        snapshot: Some(OfferedFile { sequence: 250, length: 1 << 33 }),
    };
    seed("snapshot_transfer", "what-is-there", &TransferRequest::Offer { with_snapshot: true }.to_bytes());
    seed("snapshot_transfer", "a-piece-please", &TransferRequest::Piece(piece).to_bytes());
    seed("snapshot_transfer", "an-offer", &TransferAnswer::Offer(Box::new(offer)).to_bytes());
    seed("snapshot_transfer", "a-piece", &TransferAnswer::Piece(piece, 9).to_bytes());
    seed("snapshot_transfer", "no", &TransferAnswer::refuse("nothing hére").to_bytes());
}
