//! `SimulatedMachine`: the machine of one member, with its disk, its clock, and the member while it runs.

use crate::checker::{Checker, LeaderTime, Violation};
use crate::disk::JournalBit;
use crate::fault_profile::FaultProfile;
use crate::faulty_disk::FaultyDisk;
use crate::handler_fault::{FailurePlace, HandlerFault};
use crate::network::{KillSignal, MemberPort, Network, address_of};
use crate::observed_service::{ObservedHashes, ObservedService, take_hashes};
use crate::options::ApplicationKind;
use crate::random::Random;
use crate::record::RunRecord;
use crate::reference::Reference;
use crate::system_under_test::{Deployment, SystemUnderTest};
use crate::trace::hash_of;
use crate::wall_clock::TimeOfDay;
use gapless_agent::{Clock, Now, VirtualTime};
use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::config::{ClusterConfig, MemberKind};
use gapless_cluster::consensus::MemberRole;
use gapless_cluster::member::{MemberEnvironment, MemberStatus};
use gapless_cluster::{ClusterError, ClusterMember};
use gapless_engine::Fold;
use gapless_engine::fold::NoSink;
use gapless_journal::{Disk, JournalEnvironment, JournalReader};
use gapless_transport::Tier;
use gapless_transport::sockets::Network as Connections;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Nanoseconds since the epoch.
const BEGINNING_NS: u64 = 1_900_000_000_000_000_000;
/// A small window is soon exceeded and makes a start cheap.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

pub(crate) enum TurnOutcome {
    Running,
    /// Death in the middle of the turn.
    Killed,
    /// The others refuse its new disk.
    Refused,
    /// An operator removed it.
    Removed,
    /// Fetched a state, which it installs at its next start.
    Fetched,
    /// The member stopped with this error because its history or a peer's was replaced.
    ReportedRollback(String),
    /// The member stopped with this error because its disk refused a request.
    Stopped(String),
}

pub(crate) struct SimulatedMachine {
    pub number: u64,
    directory: PathBuf,
    config: ClusterConfig,
    member_environment: MemberEnvironment,
    is_witness: bool,
    pub disk: Arc<FaultyDisk>,
    member: Option<RunningMember>,
    time: VirtualTime,
    clock: Clock,
    /// Parts per million; positive is fast.
    drift_ppm: i64,
    /// A pause too short for the member's clock to notice.
    pub paused_until_ns: u64,
    pub starts_ns: u64,
    pub flipped: Option<JournalBit>,
    /// The journal may lack acknowledged frames, unless the member reports otherwise.
    pub has_lost_power: bool,
    has_lost_disk: bool,
    pub is_leaving: bool,
    /// Refused or removed for good.
    pub is_gone: bool,
    /// A handler of this machine broke a rule here.
    pub fault: Option<FailurePlace>,
}

struct RunningMember {
    member: ClusterMember,
    reader: ReplayMerge,
    instance: ServiceInstance,
    released: u64,
}

enum ServiceInstance {
    /// A witness.
    None,
    /// A fold of the member's released stream.
    Folded(Box<Fold>),
    /// The member's own service with its state hashes.
    Reported(ObservedHashes),
}

impl Drop for SimulatedMachine {
    fn drop(&mut self) {
        // No last poll: after a failed run the member may be unable to continue.
        if let Some(running) = self.member.take() {
            running.member.abandon();
        }
    }
}

impl SimulatedMachine {
    pub(crate) fn new(
        (number, kind): (u64, MemberKind),
        root: &Path,
        profile: &FaultProfile,
        (offer, compare_interval): (ApplicationKind, u64),
        network: &Arc<Network>,
        random: &mut Random,
    ) -> Result<Self, Violation> {
        let directory = root.join(format!("member-{number}"));
        // A fold of an event stream begins at its first frame, an aggregate at its first event.
        let retains_little =
            profile.retains_little && !matches!(offer, ApplicationKind::EventStream | ApplicationKind::Commands);
        let text = config((number, kind), &directory, profile, (compare_interval, retains_little));
        let config = ClusterConfig::parse(&text, "simulated.toml");
        let disk = Arc::<FaultyDisk>::default();
        let faults: Arc<dyn Disk> = Arc::clone(&disk) as _;
        let port = MemberPort { network: Arc::clone(network), member: number };
        let member_environment = MemberEnvironment {
            network: Connections::Other(Arc::new(port)),
            instance: Some(random.number().max(1)),
            journal: JournalEnvironment {
                epoch_ns: || BEGINNING_NS,
                disk: Some(faults),
                ..JournalEnvironment::default()
            },
            message_bytes_max: Some(MESSAGE_BYTES_MAX),
            without_helpers: true,
        };
        let time = VirtualTime::new(1_000_000 + random.below(1_000_000_000), BEGINNING_NS + random.below(20_000_000));
        let drift = random.below(2 * profile.drift_ppm_max + 1) as i64 - profile.drift_ppm_max as i64;
        Ok(Self {
            number,
            directory,
            config: config.map_err(|error| error.to_string())?,
            member_environment,
            is_witness: kind == MemberKind::Witness,
            disk,
            member: None,
            clock: Clock::virtual_time(&time),
            time,
            drift_ppm: drift,
            paused_until_ns: 0,
            starts_ns: 0,
            flipped: None,
            has_lost_power: false,
            has_lost_disk: false,
            is_leaving: false,
            is_gone: false,
            fault: None,
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.directory.join("journal")
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.member.is_some()
    }

    /// False for a witness.
    pub(crate) const fn accepts_publishers(&self) -> bool {
        self.is_up() && !self.is_witness
    }

    pub(crate) fn running(&self) -> Option<&ClusterMember> {
        self.member.as_ref().map(|running| &running.member)
    }

    pub(crate) fn released(&self) -> u64 {
        self.member.as_ref().map_or(0, |running| running.released)
    }

    pub(crate) fn leading_term(&self) -> Option<u64> {
        let status = self.running()?.status()?.consensus;
        (status.role == MemberRole::Leader).then_some(status.term)
    }

    pub(crate) fn stream_time(&self) -> Option<LeaderTime> {
        let status = self.status().filter(|status| status.consensus.role == MemberRole::Leader)?;
        let now_ns = self.clock.now().epoch_ns.saturating_add_signed(status.time_ahead_ns?);
        Some(LeaderTime { term: status.consensus.term, now_ns, from_term: status.time_from_term })
    }

    /// Whether it has met all others, so that they know its disk.
    pub(crate) fn has_met_all(&self) -> bool {
        self.status().is_some_and(|status| status.waits_for.is_empty())
    }

    /// Acknowledged frames may be missing here.
    pub(crate) fn may_lack_frames(&self, is_synced: bool) -> bool {
        let is_level = || self.status().is_some_and(|status| !status.consensus.is_rejoining);
        self.has_lost_disk || self.has_lost_power && !is_synced && !is_level()
    }

    pub(crate) fn status(&self) -> Option<MemberStatus> {
        self.running()?.status()
    }

    pub(crate) fn advance(&self, ns: u64) {
        let extra = ns as i64 * self.drift_ppm / 1_000_000;
        self.time.advance(ns.saturating_add_signed(extra));
    }

    pub(crate) fn jump_clock(&self, ns: i64) {
        self.time.jump_wall_clock(ns);
    }

    pub(crate) fn replace_disk(&mut self, random: &mut Random) -> Result<(), Violation> {
        self.flipped = None;
        self.disk.heal();
        self.has_lost_disk = true;
        self.member_environment.instance = Some(random.number().max(1));
        std::fs::remove_dir_all(&self.directory).map_err(|error| error.to_string())
    }

    /// Returns the error if the member stopped at once because the disk refused a request.
    pub(crate) fn start(&mut self, system: &impl SystemUnderTest) -> Result<Option<String>, Violation> {
        if let Some(bit) = self.flipped.take() {
            if self.start_process(system).is_ok() {
                return Err(format!("member {} starts although {bit:?} of its journal has changed", self.number));
            }
            // The error named the place; an operator repaired only that.
            bit.flip().map_err(|error| error.to_string())?;
        }
        match self.start_process(system) {
            Ok(()) => Ok(None),
            Err(said) => self.disk_error_text(said).map(Some),
        }
    }

    /// Passes on `said` if it names a disk error as the reason.
    fn disk_error_text(&self, said: Violation) -> Result<String, Violation> {
        if self.disk.has_reported(&said) { Ok(said) } else { Err(said) }
    }

    fn start_process(&mut self, system: &impl SystemUnderTest) -> Result<(), Violation> {
        let number = self.number;
        self.disk.begin();
        let (mut instance, mut observed) = (ServiceInstance::None, None);
        if !self.is_witness {
            match system.deploy(&self.config)? {
                Deployment::Folded(fold) => instance = ServiceInstance::Folded(fold),
                Deployment::OwnService(service) => {
                    let hashes = ObservedHashes::default();
                    observed = Some(ObservedService { service, hashes: Arc::clone(&hashes) });
                    instance = ServiceInstance::Reported(hashes);
                }
            }
        }
        // A process trusts the wall clock of its start.
        self.clock = Clock::virtual_time(&self.time);
        let _time_of_day = TimeOfDay::set(self.clock.now().epoch_ns);
        let started = catch_unwind(AssertUnwindSafe(|| match observed {
            Some(observed) => {
                ClusterMember::start_by_hand_with_in(&self.config, Box::new(observed), &self.member_environment)
            }
            None => ClusterMember::start_by_hand_in(&self.config, &self.member_environment),
        }));
        let member = match started {
            Ok(Ok(member)) => member,
            Ok(Err(error)) => {
                return Err(match self.note_fault(&error) {
                    Some(said) => format!("member {number} does not start: {said}"),
                    None => format!("member {number} does not start: {error}"),
                });
            }
            Err(panic) => return Err(format!("member {number} panicked at its start: {}", text_of(&*panic))),
        };
        let first = member.stream().reader(1).first_held();
        let first = first.map_err(|error| format!("the journal of member {number} cannot be read: {error}"))?;
        let reader = member.stream().reader(first);
        self.member = Some(RunningMember { member, reader, instance, released: first - 1 });
        Ok(())
    }

    pub(crate) fn kill(&mut self) {
        if let Some(running) = self.member.take() {
            running.member.abandon();
        }
    }

    pub(crate) fn turn(&mut self) -> Result<TurnOutcome, Violation> {
        let Some(running) = &mut self.member else { return Ok(TurnOutcome::Running) };
        let Now { monotonic_ns, epoch_ns } = self.clock.now();
        let number = self.number;
        let _time_of_day = TimeOfDay::set(epoch_ns);
        let turned = catch_unwind(AssertUnwindSafe(|| running.member.turn(Now { monotonic_ns, epoch_ns })));
        if self.disk.was_retried() {
            return Err(format!("member {number} has asked for a sync after one had failed"));
        }
        if let Ok(Err(error)) = &turned
            && let Some(said) = self.note_fault(error)
        {
            return Err(format!("member {number} has stopped: {said}"));
        }
        let Some(running) = &self.member else { return Ok(TurnOutcome::Running) };
        match turned {
            Ok(Ok(_)) => Ok(TurnOutcome::Running),
            Ok(Err(error)) if self.has_lost_disk && error.to_string().contains("it comes with another directory") => {
                Ok(TurnOutcome::Refused)
            }
            Ok(Err(error)) if self.is_leaving && error.to_string().contains("was removed from its cluster") => {
                Ok(TurnOutcome::Removed)
            }
            Ok(Err(error)) if reports_rollback(&error.to_string()) => {
                Ok(TurnOutcome::ReportedRollback(format!("member {number} has stopped: {error}")))
            }
            Ok(Err(_)) if running.member.must_start_again() => Ok(TurnOutcome::Fetched),
            Ok(Err(error)) => self
                .disk_error_text(format!("member {number} has stopped by itself: {error}"))
                .map(TurnOutcome::Stopped),
            Err(panic) if panic.is::<KillSignal>() => Ok(TurnOutcome::Killed),
            Err(panic) => Err(format!("member {number} panicked: {}", text_of(&*panic))),
        }
    }

    fn note_fault(&mut self, error: &ClusterError) -> Option<String> {
        let HandlerFault { place, text: said } = HandlerFault::of(error)?;
        self.fault = Some(place);
        Some(said)
    }

    pub(crate) fn record_rest(&mut self, record: &mut RunRecord) {
        let Some(RunningMember { reader, .. }) = &mut self.member else { return };
        while let Ok(ReplayRead::Frame(frame)) = reader.read() {
            if frame.sequence() == record.frames.len() as u64 + 1 {
                record.follow(&frame);
            }
        }
    }

    pub(crate) fn read_released(
        &mut self,
        checker: &mut Checker,
        reference: &mut Reference,
        compare_interval: u64,
    ) -> Result<u64, Violation> {
        let number = self.number;
        // Handlers run here, too.
        let _time_of_day = TimeOfDay::set(self.clock.now().epoch_ns);
        let Some(RunningMember { member, reader, instance, released }) = &mut self.member else { return Ok(0) };
        let until = member.stream().released_sequence();
        if until < *released {
            return Err(format!("member {number} had released {released} and says {until} now"));
        }
        let mut seen = 0;
        while *released < until {
            let frame = match reader.read() {
                Ok(ReplayRead::Frame(frame)) => frame,
                Ok(ReplayRead::Empty) => return Err(format!("member {number} has no frame {}", *released + 1)),
                Err(error) => return Err(format!("member {number}: frame {}: {error}", *released + 1)),
            };
            if frame.sequence() != *released + 1 {
                return Err(format!("member {number} has frame {} behind {released}", frame.sequence()));
            }
            if checker.released(number, &frame)? {
                reference.follow(&frame)?;
            }
            *released += 1;
            seen += 1;
            if let ServiceInstance::Folded(fold) = instance {
                fold.apply_event_stream_frame(&frame, false, &mut NoSink)
                    .map_err(|error| format!("member {number}: {error}"))?;
                if released.is_multiple_of(compare_interval) {
                    checker.state(number, *released, hash_of(&fold.state()))?;
                }
            }
        }
        if let ServiceInstance::Reported(hashes) = instance {
            for state in take_hashes(hashes) {
                checker.state(number, state.sequence, state.hash)?;
            }
        }
        Ok(seen)
    }

    pub(crate) fn has_handled_all(&self) -> bool {
        let Some(RunningMember { member, instance: ServiceInstance::Reported(_), released, .. }) = &self.member else {
            return true;
        };
        let counted = member.stream().counters().values();
        counted.iter().any(|(label, value)| label == "service.last_sequence" && value == released)
    }

    pub(crate) fn snapshots(&self) -> Vec<(u64, PathBuf)> {
        let directory = StreamLayout::new(&self.directory).snapshots();
        gapless_engine::snapshot::list(&directory).unwrap_or_default()
    }

    /// Returns the last frame of the journal on disk.
    pub(crate) fn replay(&self, checker: &Checker) -> Result<u64, Violation> {
        let number = self.number;
        let failed = |error: gapless_journal::JournalError| format!("the journal of member {number}: {error}");
        let reader = JournalReader::open(self.journal()).map_err(failed)?;
        let mut replay = reader.replay(reader.first_sequence()).map_err(failed)?;
        let mut last = reader.first_sequence() - 1;
        while let Some(frame) = replay.next_frame().map_err(failed)? {
            checker.journaled(number, &frame)?;
            last = frame.sequence();
        }
        Ok(last)
    }

    pub(crate) fn describe(&self) -> String {
        let number = self.number;
        let Some(running) = &self.member else {
            return format!("  member {number} is {}", if self.is_gone { "gone" } else { "down" });
        };
        let status = running.member.status().map(|status| {
            let consensus = status.consensus;
            let (role, term, end) = (consensus.role, consensus.term, consensus.end);
            let connected: Vec<_> =
                status.links.iter().filter(|(_, is, _)| *is).map(|(member, ..)| member.get()).collect();
            format!(
                "{role:?} in term {term}, follows {:?}, log to {end:?}, journaled {}, fetching to {:?}, {} messages refused, {} without room, \
                 connected to {connected:?}, {:?}",
                consensus.leader.map(gapless_cluster::consensus::MemberId::get),
                status.journaled_sequence,
                status.fetching_to,
                consensus.refused_messages,
                status.dropped_full,
                consensus.peers
            )
        });
        format!("  member {number}: released {}; {}", running.released, status.unwrap_or_default())
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}

fn config(
    (number, kind): (u64, MemberKind),
    directory: &Path,
    profile: &FaultProfile,
    (compare_interval, retains_little): (u64, bool),
) -> String {
    let tier = if profile.tier == Tier::QuorumSync { "quorum-sync" } else { "quorum" };
    let founders = profile.shape.members();
    let join = number > founders;
    let mut text = format!("[cluster]\nname = \"simulated\"\nmember = {number}\njoin = {join}\ntier = \"{tier}\"\n");
    for other in (1..=founders).chain(join.then_some(number)) {
        let kind = match other {
            _ if other == number => kind,
            _ if other > profile.shape.full => MemberKind::Witness,
            _ => MemberKind::Full,
        };
        let kind = MemberKind::NAMES.iter().find(|(_, each)| *each == kind).map_or("full", |(name, _)| *name);
        let address = address_of(other);
        let _ = writeln!(text, "[[member]]\nid = {other}\naddresses = [\"{address}\"]\nkind = \"{kind}\"");
    }
    let _ = writeln!(
        text,
        "[election]\ntimeout = \"100 ms\"\nheartbeat_interval = \"10 ms\"\n[stream]\ndirectory = \"{}\"\nwindow = \"4 MiB\"\n\
         frame_length_max = \"4 KiB\"\nmessage_length_max = \"64 KiB\"\nstate_interval_frames = 40\n\
         state_interval_min = \"20 ms\"\n[journal]\nsegment_length = \"1280 KiB\"\n[service]\n\
         hash_interval_frames = {compare_interval}",
        directory.display()
    );
    if retains_little {
        text = text.replace("[journal]\n", "[journal]\nretention_bytes = \"1 MiB\"\n");
    }
    text
}

/// The error reports a rolled-back or exchanged directory, here or of a peer.
pub(crate) fn reports_rollback(said: &str) -> bool {
    [
        "it has less than it has acknowledged",
        "the logs of the members",
        "it comes with another directory",
        "the directory is another member's",
    ]
    .into_iter()
    .any(|words| said.contains(words))
}
