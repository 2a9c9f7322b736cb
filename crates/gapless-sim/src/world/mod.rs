//! [`World`]: machines, the network between them, publishers, operators and faults, from one seed. A phase of faults is
//! followed by a calm one, in which everything must arrive.
//!
//! | module | what lives there |
//! |---|---|
//! | `membership_changes` | members that are added, removed and replaced |
//! | `directory_rollbacks` | older copies of directories that are put back, and directories that are exchanged |

mod directory_rollbacks;
mod membership_changes;

use crate::checker::{Broken, Checker};
use crate::fault_profile::FaultProfile;
use crate::faulty_disk::FaultyDisk;
use crate::handler_fault::Place;
use crate::machine::{Machine, TurnOutcome, says_so};
use crate::network::Network;
use crate::options::{MS, Offer, Options};
use crate::publishing_node::PublishingNode;
use crate::random::Random;
use crate::record::Record;
use crate::reference::Reference;
use crate::report::Tally;
use crate::service_client::ServiceClient;
use crate::system_under_test::SystemUnderTest;
use crate::trace::Trace;
use crate::workload::Workload;
use gapless_agent::{Clock, VirtualTime};
use gapless_cluster::config::MemberKind;
use membership_changes::Change;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct World<'a, A: SystemUnderTest> {
    application: &'a A,
    options: &'a Options,
    pub(crate) profile: FaultProfile,
    pub(crate) network: Arc<Network>,
    /// Parent of the machines' directories.
    pub(crate) root: PathBuf,
    pub(crate) machines: Vec<Machine>,
    pub(crate) workloads: Vec<Box<dyn Workload<A>>>,
    workloads_made: u64,
    seed: u64,
    /// Pending membership change.
    pub(crate) change: Option<Change>,
    pub(crate) checker: Checker,
    /// Whether a rollback happened: several histories may exist until the members with another one stop.
    pub(crate) came_apart: bool,
    /// Expected states and replies.
    reference: Reference,
    pub(crate) random: Random,
    /// Clock of publishers and readers.
    time: VirtualTime,
    pub(crate) now_ns: u64,
    pub(crate) tally: Tally,
}

fn new_workload<A: SystemUnderTest>(
    application: &A,
    seed: u64,
    number: u64,
    options: &Options,
    clock: &Clock,
) -> Box<dyn Workload<A>> {
    match A::OFFER {
        Offer::EventStream => Box::new(PublishingNode::new(seed, number, options.messages, clock.clone())),
        Offer::Service | Offer::State | Offer::Commands => {
            Box::new(ServiceClient::new(seed, number, options.messages, application.crowd()))
        }
    }
}

impl<'a, A: SystemUnderTest> World<'a, A> {
    pub(crate) fn new(application: &'a A, options: &'a Options, seed: u64, root: &Path) -> Result<Self, Broken> {
        let profile = FaultProfile::of(seed, options);
        let network = Network::new(seed, Trace::new(options.prints_trace)).map_err(|error| error.to_string())?;
        let mut random = Random::of(seed, &[3]);
        let compared = (A::OFFER, options.compare_interval);
        let machine = |number| {
            let kind = if number > profile.shape.full { MemberKind::Witness } else { MemberKind::Full };
            Machine::new((number, kind), root, &profile, compared, &network, &mut random)
        };
        let machines = (1..=profile.shape.members()).map(machine).collect::<Result<_, _>>()?;
        let time = VirtualTime::new(1, 1);
        let clock = Clock::virtual_time(&time);
        let reference = application.reference();
        let mut world = Self {
            application,
            options,
            profile,
            network,
            root: root.to_owned(),
            machines,
            change: None,
            workloads: (1..=profile.publishers)
                .map(|number| new_workload(application, seed, number, options, &clock))
                .collect(),
            workloads_made: profile.publishers,
            seed,
            came_apart: false,
            checker: Checker::default(),
            reference,
            random,
            time,
            now_ns: 0,
            tally: Tally::default(),
        };
        world.network.lock().delay_ns_max = profile.delay_ns_max;
        world.tell(format_args!("{} members at tier {}, {}", profile.shape, profile.tier, A::OFFER));
        for at in 0..world.machines.len() {
            world.start(at)?;
        }
        Ok(world)
    }

    /// Runs the world to the end.
    pub(crate) fn run(&mut self) -> Result<(), Broken> {
        let calm_ns = self.options.faults_ms * MS;
        let end_ns = calm_ns + self.options.calm_ms * MS;
        while self.now_ns < calm_ns {
            self.step()?;
        }
        self.heal()?;
        if self.came_apart {
            return self.run_apart();
        }
        while !self.is_settled() {
            if self.now_ns >= end_ns {
                return Err(format!("{} ms after the last fault not everything has arrived", self.options.calm_ms));
            }
            self.step()?;
        }
        self.tell(format_args!("everything has arrived everywhere"));
        for machine in self.machines.iter_mut().filter(|machine| !machine.is_gone) {
            machine.die();
            let (last, all) = (machine.replay(&self.checker)?, self.checker.last_sequence());
            if last < all {
                return Err(format!("the journal of member {} ends at {last}; {all} was released", machine.number));
            }
        }
        Ok(())
    }

    /// Takes the released frames and their results; empty where several histories may exist.
    pub(crate) fn take_record(&mut self) -> Option<Record> {
        let mut record = std::mem::take(&mut self.reference.record);
        record.publishers = self.workloads_made;
        (!self.came_apart).then_some(record)
    }

    /// Returns the frame at which the run failed, if there is one.
    pub(crate) fn place(&self) -> Option<Place> {
        let faults = self.machines.iter().find_map(|machine| machine.fault).or(self.reference.fault);
        let complained = || self.workloads.iter().find_map(|workload| workload.complained_at());
        let parted = || self.checker.parted.or_else(complained).filter(|sequence| *sequence > 0);
        faults.or_else(|| parted().map(Place::Parted))
    }

    /// Returns a snapshot of a random member, if there is one.
    pub(crate) fn any_snapshot(&self) -> Option<Vec<u8>> {
        let mut random = Random::of(self.seed, &[19]);
        let all: Vec<_> = self.machines.iter().flat_map(Machine::snapshots).collect();
        let released = self.checker.last_sequence();
        let usable: Vec<_> = all.iter().filter(|(sequence, _)| *sequence < released).collect();
        if usable.is_empty() {
            return None;
        }
        let (_, path) = usable[random.below(usable.len() as u64) as usize];
        std::fs::read(path).ok()
    }

    /// Describes the whole state for a report.
    pub(crate) fn describe(&self) -> String {
        let mut lines: Vec<String> = self.machines.iter().map(Machine::describe).collect();
        lines.extend(self.workloads.iter().map(|workload| workload.describe()));
        lines.join("\n")
    }

    pub(crate) fn tally(&self) -> Tally {
        let state = self.network.lock();
        let (trace, events) = (state.trace.hash(), state.trace.events());
        let released = self.checker.last_sequence();
        let acknowledged = self.workloads.iter().map(|workload| workload.acknowledged()).sum();
        let repeated = self.workloads.iter().map(|workload| workload.repeated()).sum();
        let resolved = self.workloads.iter().map(|workload| workload.resolved()).sum();
        let (terms, timers, times_kept) = (self.checker.terms, self.checker.timers, self.checker.times_kept);
        let notices = self.reference.answers.notices.len() as u64;
        let virtual_ns = self.now_ns;
        Tally {
            trace,
            events,
            released,
            acknowledged,
            repeated,
            resolved,
            notices,
            terms,
            timers,
            times_kept,
            virtual_ns,
            ..self.tally
        }
    }

    /// Adds a machine whose member joins.
    pub(crate) fn add_machine(&mut self, kind: MemberKind) -> Result<u64, Broken> {
        let number = self.machines.len() as u64 + 1;
        let compared = (A::OFFER, self.options.compare_interval);
        let (network, random) = (&self.network, &mut self.random);
        self.machines.push(Machine::new((number, kind), &self.root, &self.profile, compared, network, random)?);
        self.start(number as usize - 1)?;
        Ok(number)
    }

    /// Prints without the run's directory, whose name changes and is no part of the events.
    pub(crate) fn tell(&self, what: fmt::Arguments<'_>) {
        let text = what.to_string().replace(&*self.root.to_string_lossy(), "");
        self.network.lock().trace.tell(self.now_ns, format_args!("{text}"));
    }

    pub(crate) fn step(&mut self) -> Result<(), Broken> {
        let step_ns =
            if self.random.happens_per_100_000(10_000) { self.random.below(3 * MS) } else { self.random.below(MS) } + 1;
        self.now_ns += step_ns;
        self.time.advance(step_ns);
        self.network.lock().now_ns = self.now_ns;
        for machine in &self.machines {
            machine.advance(step_ns);
        }
        self.inject_faults()?;
        self.go_on_changing();
        let mut order: Vec<usize> = (0..self.machines.len()).collect();
        self.random.shuffle(&mut order);
        for at in order {
            self.turn(at)?;
        }
        for at in 0..self.workloads.len() {
            let read = match self.turn_user(at) {
                Ok(read) => read,
                Err(said) if self.came_apart => {
                    // The publisher met another history; a new one takes its place.
                    self.tell(format_args!("{said}"));
                    self.workloads_made += 1;
                    let clock = Clock::virtual_time(&self.time);
                    self.workloads[at] =
                        new_workload(self.application, self.seed, self.workloads_made, self.options, &clock);
                    continue;
                }
                Err(said) => return Err(said),
            };
            if read > 0 {
                self.network.lock().trace.fold(&[self.now_ns, at as u64, read as u64]);
            }
        }
        Ok(())
    }

    fn turn_user(&mut self, at: usize) -> Result<usize, Broken> {
        if self.workloads[at].is_searching() {
            self.let_in(at)?;
        }
        self.workloads[at].poll(self.now_ns, self.application, &self.reference.answers, &mut self.random)
    }

    /// Connects a searching workload: preferably to the leader, rarely to another member without a leader.
    fn let_in(&mut self, workload: usize) -> Result<(), Broken> {
        let leads = |at: &usize| self.machines[*at].leads().is_some();
        let mut serving: Vec<usize> = (0..self.machines.len()).filter(|at| self.machines[*at].serves()).collect();
        let is_led = serving.iter().any(leads);
        if !self.random.happens_per_100_000(if is_led { 20_000 } else { 3_000 }) {
            return Ok(());
        }
        if self.random.happens_per_100_000(70_000) && is_led {
            serving.retain(leads);
        }
        if serving.is_empty() {
            return Ok(());
        }
        let machine = &self.machines[self.random.pick(&serving)];
        match machine.running() {
            Some(member) => self.workloads[workload].let_in(machine.number, member.stream()),
            None => Ok(()),
        }
    }

    fn turn(&mut self, at: usize) -> Result<(), Broken> {
        let machine = &mut self.machines[at];
        if machine.is_gone {
            return Ok(());
        }
        if !machine.is_up() {
            if self.now_ns >= machine.starts_ns {
                self.start(at)?;
            }
            return Ok(());
        }
        if self.now_ns < machine.paused_until_ns {
            return Ok(());
        }
        if let Some((_, share)) = self.profile.slow_member.filter(|(number, _)| *number == machine.number)
            && !self.random.happens_per_100_000(share)
        {
            return Ok(());
        }
        let outcome = machine.turn();
        if machine.fault.is_some() {
            machine.record_rest(&mut self.reference.record);
        }
        match outcome? {
            TurnOutcome::Lives => {}
            TurnOutcome::Killed => {
                self.tally.kills += 1;
                self.tell(format_args!("member {} is killed in the middle of a turn", at + 1));
                self.down(at, 150 * MS);
                return Ok(());
            }
            TurnOutcome::Fetched => {
                self.tally.fetched += 1;
                self.tell(format_args!("member {} has fetched a state", at + 1));
                self.down(at, 50 * MS);
                return Ok(());
            }
            TurnOutcome::FoundOut(said) => return self.note_found_out(at, &said),
            TurnOutcome::Stopped(said) => {
                self.stopped(at, &said);
                return Ok(());
            }
            TurnOutcome::Removed => {
                self.tell(format_args!("member {} stops, because it was removed", at + 1));
                self.down(at, 1);
                self.machines[at].is_gone = true;
                return Ok(());
            }
            TurnOutcome::Refused => {
                self.tell(format_args!("member {} is refused, because it has lost its disk", at + 1));
                self.down(at, 1);
                self.machines[at].is_gone = true;
                return Ok(());
            }
        }
        let released = machine.look(&mut self.checker, &mut self.reference, self.options.compare_interval)?;
        let leads = machine.stream_time();
        let number = machine.number;
        if released > 0 {
            let all = machine.released();
            self.network.lock().trace.fold(&[self.now_ns, number, all]);
        }
        if let Some(time) = leads {
            self.checker.leads(number, time.term)?;
            self.checker.time(number, time, self.now_ns, self.profile.drift_ppm_max)?;
        }
        Ok(())
    }

    pub(crate) fn start(&mut self, at: usize) -> Result<(), Broken> {
        let number = self.machines[at].number;
        self.network.lock().set_dark(number, false);
        let started = match self.machines[at].start(self.application) {
            Err(said) if self.came_apart && says_so(&said) => return self.note_found_out(at, &said),
            started => started?,
        };
        match started {
            None => self.tell(format_args!("member {number} starts")),
            Some(said) => self.stopped(at, &said),
        }
        Ok(())
    }

    /// Notes that the process ended because the disk refused a request.
    fn stopped(&mut self, at: usize, said: &str) {
        self.tell(format_args!("{said}"));
        *(if FaultyDisk::is_of_fullness(said) { &mut self.tally.full_disks } else { &mut self.tally.disk_errors }) += 1;
        self.down(at, 300 * MS);
    }

    /// Kills the process for up to `away_ns`.
    pub(crate) fn down(&mut self, at: usize, away_ns: u64) {
        self.machines[at].die();
        // Half of them restart at once: their lost state matters most then.
        let away_ns = if self.random.happens_per_100_000(50_000) {
            self.random.below(10 * MS)
        } else {
            self.random.below(away_ns)
        };
        self.machines[at].starts_ns = self.now_ns + away_ns;
        self.machines[at].paused_until_ns = 0;
        let number = self.machines[at].number;
        self.network.lock().spare();
        for workload in self.workloads.iter_mut().filter(|workload| workload.at() == Some(number)) {
            workload.lose();
        }
    }

    /// Ends the faults: every member runs and is connected to every other.
    fn heal(&mut self) -> Result<(), Broken> {
        self.tell(format_args!("no more faults"));
        self.profile = self.profile.calm();
        {
            let mut state = self.network.lock();
            state.heal();
            state.delay_ns_max = self.profile.delay_ns_max;
        }
        for at in 0..self.machines.len() {
            self.machines[at].paused_until_ns = 0;
            self.machines[at].disk.heal();
            if !self.machines[at].is_up() && !self.machines[at].is_gone {
                self.start(at)?;
            }
        }
        Ok(())
    }

    /// Returns whether there is a leader and all published messages are everywhere.
    fn is_settled(&self) -> bool {
        let all = self.checker.last_sequence();
        self.change.is_none()
            && self.workloads.iter().all(|workload| workload.is_done())
            && self.machines.iter().all(|machine| machine.is_gone || machine.released() == all)
            && self.machines.iter().any(|machine| machine.leads().is_some())
            && self.machines.iter().all(Machine::has_handled_all)
    }
}
