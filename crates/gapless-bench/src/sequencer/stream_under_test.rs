//! The stream of a row: a sequencer in a process of its own with its directory, or one that runs already.

use super::arguments::{StreamTier, StreamTransport};
use super::failed;
use super::plan::SequencerRunPlan;
use crate::Result;
use crate::child_process::{Child, ChildRole};
use crate::floor::{FloorKind, FloorPlan};
use crate::own_directory::{OwnDirectory, sync_file_system};
use gapless_load::sequencer::journal::of_journal;
use gapless_load::sequencer::protocol::{
    MessageAccount, NodeAssignment, PacketOptions, Participant, ProcessCost, SequencerAssignment, SequencerReady,
    SequencerRequest, StreamAddress, StreamAssignment,
};
use gapless_measure::FloorRow;
use gapless_measure::reporting::word;
use gapless_wire::mtu::Mtu;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Copy, Debug)]
pub(super) struct SequencerPlan {
    pub transport: StreamTransport,
    pub mtu: Option<Mtu>,
    pub batch: bool,
    /// Fills large gaps over TCP; its agents take part in every turn.
    pub rewinds: bool,
    /// `min`, `default` or `max`.
    pub plan: &'static str,
    pub for_throughput: bool,
    pub cpu: Option<usize>,
    pub journaled_bytes: u64,
}

impl SequencerPlan {
    /// Prevents preparation of the next segment, from the half on, during the row.
    fn segment_bytes(&self) -> u64 {
        const SEGMENT_BYTES_MIN: u64 = 64 << 20;
        const SEGMENT_BYTES_MAX: u64 = 5 << 30;
        (self.journaled_bytes * 9 / 4).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)
    }
}

/// Bytes in a journal.
pub(super) const fn journaled_bytes(messages: u64, payload_bytes: usize) -> u64 {
    messages * gapless_wire::aligned_length(payload_bytes + gapless_wire::HEADER_LENGTH) as u64
}

pub(super) struct StreamUnderTest<'a> {
    // Dropped before the directory, which it would go on filling.
    sequencer: Option<Child<'a>>,
    directory: Option<OwnDirectory>,
    has_journal: bool,
    way: StreamAddress,
    pub plan: Option<String>,
    interrupted: &'a AtomicBool,
    pub notes: Vec<String>,
}

impl<'a> StreamUnderTest<'a> {
    pub(super) fn open(
        plan: &SequencerRunPlan,
        directory: Option<OwnDirectory>,
        sequencer: SequencerPlan,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let Some(directory) = directory else {
            let way =
                plan.running.clone().ok_or_else(|| failed("neither a directory for a stream nor one that runs"))?;
            return Ok(Self {
                directory: None,
                has_journal: false,
                sequencer: None,
                way,
                plan: None,
                interrupted,
                notes: Vec::new(),
            });
        };
        let packets = match sequencer.transport {
            StreamTransport::SharedMemory | StreamTransport::Tcp => None,
            transport => Some(PacketOptions {
                multicast: transport == StreamTransport::Multicast,
                batch: sequencer.batch,
                rewinds: sequencer.rewinds,
            }),
        };
        let assignment = StreamAssignment::Sequencer(SequencerAssignment {
            directory: stream_in(&directory),
            packets,
            tcp: sequencer.transport == StreamTransport::Tcp,
            mtu: sequencer.mtu.map(Mtu::bytes),
            tier: word(plan.tier),
            plan: sequencer.plan.to_owned(),
            for_throughput: sequencer.for_throughput,
            cpu: sequencer.cpu,
            segment_bytes: sequencer.segment_bytes(),
        });
        let mut process = start("the sequencer", &assignment, interrupted)?;
        let SequencerReady { way, plan: threads } = process.receive()?;
        let has_journal = plan.tier != StreamTier::Memory;
        // Puts the journal's zeros on the device before the row.
        sync_file_system(directory.path())?;
        let (directory, sequencer) = (Some(directory), Some(process));
        Ok(Self { directory, has_journal, sequencer, way, plan: Some(threads), interrupted, notes: Vec::new() })
    }

    pub(super) fn node(&self, name: &str, assignment: NodeAssignment) -> Result<Child<'a>> {
        start(name, &StreamAssignment::Node(assignment), self.interrupted)
    }

    pub(super) const fn way(&self) -> &StreamAddress {
        &self.way
    }

    pub(super) fn cost(&mut self) -> Result<Option<ProcessCost>> {
        let Some(sequencer) = &mut self.sequencer else { return Ok(None) };
        sequencer.ask(&SequencerRequest::Cost).map(Some)
    }

    pub(super) fn check_running(&mut self) -> Result<()> {
        self.sequencer.as_mut().map_or(Ok(()), Child::check_running)
    }

    pub(super) fn finish(&mut self, process: Child<'a>) -> Result<()> {
        let stderr = process.finish()?;
        self.notes.extend(stderr.lines().take(3).map(str::to_owned));
        Ok(())
    }

    /// Stops the sequencer, and returns the fully checked account of its journal, which every node must have seen.
    pub(super) fn stop(&mut self, participants: &[Participant]) -> Result<Option<MessageAccount>> {
        let (Some(mut sequencer), Some(directory)) = (self.sequencer.take(), &self.directory) else { return Ok(None) };
        sequencer.ask::<ProcessCost>(&SequencerRequest::Stop)?;
        let stream = stream_in(directory);
        self.finish(sequencer)?;
        self.has_journal.then(|| of_journal(&stream, participants)).transpose()
    }
}

fn start<'a>(name: &str, assignment: &StreamAssignment, interrupted: &'a AtomicBool) -> Result<Child<'a>> {
    Child::start(super::NAME, name, (ChildRole::SequencerProcess, assignment), interrupted)
}

pub(super) fn own_directory(plan: &SequencerRunPlan, number: usize) -> Result<Option<OwnDirectory>> {
    if plan.running.is_some() {
        return Ok(None);
    }
    let name = format!(".gapless-bench-{}-{number}", std::process::id());
    let directory = OwnDirectory::create_with_parent(&plan.parent, &name)?;
    sync_file_system(directory.path())?;
    Ok(Some(directory))
}

fn stream_in(directory: &OwnDirectory) -> PathBuf {
    directory.path().join("stream")
}

/// `None` if it cannot be measured; the reason is noted.
pub(super) fn floor(plan: &SequencerRunPlan, kind: FloorKind, bytes: u64, notes: &mut Vec<String>) -> Option<FloorRow> {
    let mut floor = FloorPlan::new(&plan.parent, vec![(kind, bytes)]);
    floor.effort_percent = plan.floor_effort_percent;
    let measured = floor.measure();
    notes.extend(measured.skipped);
    measured.rows.into_iter().next()
}
