use super::checker::Checker;
use super::disk::{CHAIN_SEED, Disk};
use gapless_cluster::consensus::{
    Batch, Chain, Consensus, ConsensusOptions, Effects, MemberId, MemberRole, Members, OutgoingMessage, PositionFetch,
    RejoinState, wire,
};
use gapless_testkit::random::Random;
use gapless_wire::{Frame, FrameHeader, FrameWriter, aligned_length};
use std::collections::VecDeque;
use std::rc::Rc;

pub const MS: u64 = 1_000_000;

#[derive(Clone)]
pub struct Packet {
    pub from: u64,
    pub to: u64,
    pub bytes: Rc<[u8]>,
    pub frames: Rc<[u8]>,
}

pub struct Node {
    pub id: MemberId,
    options: ConsensusOptions,
    pub disk: Disk,
    pub core: Option<Consensus>,
    effects: Effects,
    /// Time of the write's end, number, length of the journal, whether it is synced.
    persisting: VecDeque<(u64, u64, usize, bool)>,
    is_other_boot: bool,
    /// Last term in which it may lack acknowledged entries.
    rejoin_term: Option<u64>,
    starts: u64,
    pub fetch: Option<(u64, PositionFetch)>,
    pub paused_until_ns: u64,
    pub write_ns_max: u64,
    pub is_early: bool,
    pub early: u64,
    outbox: Vec<Packet>,
    pub crash_in_cut: u64,
    pub refused: u64,
    pub restored: u64,
    pub cuts: u64,
}

impl Node {
    pub fn new(number: u64, members: Members, seed: u64, entries_kept_max: usize) -> Self {
        let id = MemberId::new(number).unwrap();
        let options = ConsensusOptions {
            chain_seed: CHAIN_SEED,
            seed,
            heartbeat_interval_ns: 4 * MS,
            election_timeout_min_ns: 20 * MS,
            election_timeout_max_ns: 40 * MS,
            in_flight_entries_max: 16,
            message_frames_max: 12,
            entries_kept_max,
            ..ConsensusOptions::new(id, members)
        };
        Self {
            id,
            options,
            disk: Disk::default(),
            core: None,
            effects: Effects::default(),
            persisting: VecDeque::new(),
            is_other_boot: false,
            rejoin_term: None,
            starts: 0,
            fetch: None,
            paused_until_ns: 0,
            write_ns_max: 0,
            is_early: false,
            early: 0,
            outbox: Vec::new(),
            crash_in_cut: 50,
            refused: 0,
            restored: 0,
            cuts: 0,
        }
    }

    pub fn is_up(&self, now_ns: u64) -> bool {
        self.core.is_some() && now_ns >= self.paused_until_ns
    }

    pub fn leads(&self) -> bool {
        self.core.as_ref().is_some_and(Consensus::is_leader)
    }

    pub fn start(&mut self, checker: &mut Checker) {
        let mut recovered = self.disk.recover();
        self.starts += 1;
        if std::mem::take(&mut self.is_other_boot) {
            self.rejoin_term = Some(recovered.hard_state().term);
        }
        if let Some(term) = self.rejoin_term {
            recovered = recovered.rejoining(RejoinState { term, start: self.starts });
        }
        checker.starts(self.id.get());
        self.core = Some(Consensus::new(self.options.clone(), recovered).unwrap());
    }

    pub fn crash(&mut self, random: &mut Random) {
        self.core = None;
        self.outbox.clear();
        self.persisting.clear();
        self.fetch = None;
        self.disk.crash(random);
    }

    pub fn lose_power(&mut self, random: &mut Random) {
        self.core = None;
        self.outbox.clear();
        self.persisting.clear();
        self.fetch = None;
        self.disk.lose_power(random);
        self.is_other_boot = true;
    }

    pub const fn may_lack_something(&self) -> bool {
        self.is_other_boot || self.rejoin_term.is_some()
    }

    pub fn turn(&mut self, now_ns: u64, random: &mut Random, checker: &mut Checker, out: &mut Vec<Packet>) {
        let Some(core) = &mut self.core else { return };
        core.tick(now_ns);
        self.persist_due(now_ns);
        self.poll(now_ns, &[], random, checker, out);
    }

    fn persist_due(&mut self, now_ns: u64) {
        let Some(core) = &mut self.core else { return };
        while let Some((_, number, length, is_synced)) = self.persisting.pop_front_if(|(at_ns, ..)| *at_ns <= now_ns) {
            self.disk.persist(length);
            if is_synced {
                self.disk.sync_up_to(length);
                // The first poll after a start with a cut returns the checkpoint again.
                self.disk.remove_pending_checkpoint();
            }
            core.persisted(number);
        }
        if !core.is_rejoining() {
            self.rejoin_term = None;
        }
    }

    pub fn receive(
        &mut self,
        packet: &Packet,
        now_ns: u64,
        random: &mut Random,
        checker: &mut Checker,
        out: &mut Vec<Packet>,
    ) {
        if self.is_early {
            self.persist_due(now_ns);
        }
        let Some(core) = &mut self.core else { return };
        let message = wire::decode(&packet.bytes).expect("an encoded message can be decoded");
        if core.verify_append(&message, &packet.frames).is_err() {
            self.refused += 1;
            return;
        }
        if core.step(MemberId::new(packet.from).unwrap(), message).is_err() {
            self.refused += 1;
        } else if self.is_early {
            self.use_fast_path(&packet.frames, checker, out);
        }
        self.poll(now_ns, &packet.frames, random, checker, out);
    }

    fn use_fast_path(&mut self, frames: &[u8], checker: &mut Checker, out: &mut Vec<Packet>) {
        let Some(core) = &mut self.core else { return };
        let released = core.poll_released();
        if core.is_leader() && released > checker.released_by(self.id.get()) {
            checker.releases(self.id.get(), released, &self.disk);
        }
        let mut records = Vec::new();
        if self.write_ns_max > 0 || !self.persisting.is_empty() || !core.append_on_fast_path(&mut records) {
            return;
        }
        self.early += 1;
        for record in &records {
            append_up_to(&mut self.disk, record.after_sequence, frames);
            self.disk.append_record(record);
        }
        self.disk.persist(self.disk.length());
        let mut messages = Vec::new();
        core.take_answers(&mut messages);
        messages.iter().for_each(|outgoing| out.push(self.packet(outgoing)));
    }

    fn packet(&self, outgoing: &OutgoingMessage) -> Packet {
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        wire::encode(&outgoing.message, &mut bytes);
        if let Some((first, last)) = outgoing.frames {
            (first..=last).for_each(|at| frames.extend_from_slice(self.disk.frame(at).expect("a sent frame is here")));
        }
        Packet { from: self.id.get(), to: outgoing.to.get(), bytes: bytes.into(), frames: frames.into() }
    }

    pub fn propose(&mut self, count: u64, random: &mut Random) -> bool {
        let Some(core) = self.core.as_mut().filter(|core| core.can_propose().is_ok()) else { return false };
        let end = core.end().sequence.max(self.disk.last_sequence());
        assert_eq!(end, self.disk.last_sequence(), "a leader has the frames of its log");
        let mut length_bytes = 0;
        for sequence in end + 1..=end + count {
            let bytes = frame(sequence, core.term(), random.number());
            length_bytes += bytes.len() as u64;
            self.disk.append_frame(bytes);
        }
        let hash = self.disk.chain(end + count).unwrap();
        core.propose(Batch { first_sequence: end + 1, end_sequence: end + count, hash }, length_bytes).unwrap();
        if self.is_early {
            let mut messages = Vec::new();
            core.take_appends(&mut messages);
            self.outbox.extend(messages.iter().map(|outgoing| self.packet(outgoing)).collect::<Vec<_>>());
        }
        true
    }

    pub fn fetched(
        &mut self,
        frames: &[Rc<[u8]>],
        now_ns: u64,
        random: &mut Random,
        checker: &mut Checker,
        out: &mut Vec<Packet>,
    ) {
        let (Some(core), Some((_, fetch))) = (&mut self.core, &self.fetch) else { return };
        let mut chain = Chain::at(fetch.base.hash);
        frames.iter().for_each(|bytes| chain.extend(&Frame::parse(bytes).unwrap()));
        assert_eq!(chain.value(), fetch.position.hash, "the fetched frames are the leader's");
        let behind = fetch.base.sequence;
        let same = frames.iter().zip(behind + 1..).take_while(|(bytes, at)| self.disk.frame(*at) == Some(bytes));
        if core.fetched(fetch.position, behind + same.count() as u64) {
            self.fetch = None;
            self.poll(now_ns, &frames.concat(), random, checker, out);
        }
    }

    pub fn poll(
        &mut self,
        now_ns: u64,
        frames: &[u8],
        random: &mut Random,
        checker: &mut Checker,
        out: &mut Vec<Packet>,
    ) {
        out.append(&mut self.outbox);
        let Some(core) = &mut self.core else { return };
        core.poll(&mut self.effects);
        let effects = &mut self.effects;
        if let Some(sequence) = effects.truncate_after {
            assert!(effects.records[0].is_checkpoint);
            assert!(sequence >= checker.released_by(self.id.get()), "released frames are never cut");
            self.cuts += 1;
            self.disk.write_aside(&effects.records[0].payload);
            self.persisting.iter_mut().for_each(|(_, _, length, _)| *length = 0);
            if random.happens(self.crash_in_cut) {
                return self.crash(random);
            }
            self.disk.truncate_after(sequence);
            if random.happens(self.crash_in_cut) {
                return self.crash(random);
            }
        }
        for (at, record) in effects.records.iter().enumerate() {
            append_up_to(&mut self.disk, record.after_sequence, frames);
            self.disk.append_record(record);
            if at == 0 && effects.truncate_after.is_some() {
                self.disk.sync();
                self.disk.remove_pending_checkpoint();
            }
        }
        self.restored += u64::from(effects.restored.is_some());
        // After the records or before: a leader's messages do not wait for its journal.
        let messages = std::mem::take(&mut effects.messages);
        messages.iter().for_each(|outgoing| out.push(self.packet(outgoing)));
        let (Some(core), effects) = (&mut self.core, &mut self.effects) else { return };
        if let Some(role) = effects.role
            && role.role == MemberRole::Leader
        {
            checker.leads(self.id.get(), role.term);
            assert_eq!(
                self.disk.last_sequence(),
                core.end().sequence,
                "a leader begins with the frames of its entries"
            );
        }
        if let Some(sequence) = effects.released {
            checker.releases(self.id.get(), sequence, &self.disk);
        }
        checker.keeps(self.id.get(), &self.disk);
        if let Some(fetch) = effects.fetch.take() {
            self.fetch = Some((now_ns + random.below(30 * MS), fetch));
        }
        let waits = self.persisting.back().map_or(0, |(at_ns, ..)| *at_ns);
        let at_ns = waits.max(now_ns + random.below(self.write_ns_max + 1));
        self.persisting.push_back((at_ns, effects.number, self.disk.length(), effects.must_sync));
    }
}

fn append_up_to(disk: &mut Disk, sequence: u64, frames: &[u8]) {
    let mut rest = frames;
    while disk.last_sequence() < sequence && !rest.is_empty() {
        let frame = Frame::parse(rest).unwrap();
        if frame.sequence() == disk.last_sequence() + 1 {
            disk.append_frame(rest[..aligned_length(frame.length())].into());
        }
        rest = &rest[aligned_length(frame.length())..];
    }
    assert!(disk.last_sequence() >= sequence, "the frames of a record up to {sequence} came with it");
}

fn frame(sequence: u64, term: u64, content: u64) -> Rc<[u8]> {
    let mut bytes = [0; 72];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..8].copy_from_slice(&content.to_le_bytes());
    writer.finish(&FrameHeader { sequence, term, ..FrameHeader::default() }, 8);
    bytes.as_slice().into()
}
