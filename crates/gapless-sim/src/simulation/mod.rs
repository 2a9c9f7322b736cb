//! [`Simulation`]: machines, the network between them, publishers, operators and faults, from one seed. A phase of
//! faults is followed by a calm one, in which everything must arrive.

mod directory_rollbacks;
mod membership_changes;

use crate::checker::{Checker, Violation};
use crate::fault_profile::FaultProfile;
use crate::faulty_disk::FaultyDisk;
use crate::handler_fault::FailurePlace;
use crate::machine::{SimulatedMachine, TurnOutcome, reports_rollback};
use crate::network::Network;
use crate::options::{ApplicationKind, MS, Options};
use crate::publishing_node::PublishingNode;
use crate::random::Random;
use crate::record::RunRecord;
use crate::reference::Reference;
use crate::report::Tally;
use crate::service_client::ServiceClient;
use crate::system_under_test::SystemUnderTest;
use crate::trace::Trace;
use crate::workload::Workload;
use gapless_agent::{Clock, VirtualTime};
use gapless_cluster::config::MemberKind;
use membership_changes::PendingChange;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct Simulation<'a, A: SystemUnderTest> {
    application: &'a A,
    options: &'a Options,
    pub(crate) profile: FaultProfile,
    pub(crate) network: Arc<Network>,
    /// Parent of the machines' directories.
    pub(crate) root: PathBuf,
    pub(crate) machines: Vec<SimulatedMachine>,
    pub(crate) workloads: Vec<Box<dyn Workload<A>>>,
    workloads_made: u64,
    seed: u64,
    pub(crate) change: Option<PendingChange>,
    pub(crate) checker: Checker,
    /// A rollback happened: several histories may exist until the differing members stop.
    pub(crate) histories_diverged: bool,
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
    match A::APPLICATION_KIND {
        ApplicationKind::EventStream => Box::new(PublishingNode::new(seed, number, options.messages, clock.clone())),
        ApplicationKind::Service | ApplicationKind::State | ApplicationKind::Commands => {
            Box::new(ServiceClient::new(seed, number, options.messages, application.crowd()))
        }
    }
}

impl<'a, A: SystemUnderTest> Simulation<'a, A> {
    pub(crate) fn new(application: &'a A, options: &'a Options, seed: u64, root: &Path) -> Result<Self, Violation> {
        let profile = FaultProfile::of(seed, options);
        let network = Network::new(seed, Trace::new(options.prints_trace)).map_err(|error| error.to_string())?;
        let mut random = Random::of(seed, &[3]);
        let compared = (A::APPLICATION_KIND, options.compare_interval);
        let machine = |number| {
            let kind = if number > profile.shape.full { MemberKind::Witness } else { MemberKind::Full };
            SimulatedMachine::new((number, kind), root, &profile, compared, &network, &mut random)
        };
        let machines = (1..=profile.shape.members()).map(machine).collect::<Result<_, _>>()?;
        let time = VirtualTime::new(1, 1);
        let clock = Clock::virtual_time(&time);
        let reference = application.reference();
        let mut simulation = Self {
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
            histories_diverged: false,
            checker: Checker::default(),
            reference,
            random,
            time,
            now_ns: 0,
            tally: Tally::default(),
        };
        simulation.network.lock().delay_ns_max = profile.delay_ns_max;
        simulation.log(format_args!("{} members at tier {}, {}", profile.shape, profile.tier, A::APPLICATION_KIND));
        for at in 0..simulation.machines.len() {
            simulation.start(at)?;
        }
        Ok(simulation)
    }

    pub(crate) fn run(&mut self) -> Result<(), Violation> {
        let calm_ns = self.options.faults_ms * MS;
        let end_ns = calm_ns + self.options.calm_ms * MS;
        while self.now_ns < calm_ns {
            self.step()?;
        }
        self.heal()?;
        if self.histories_diverged {
            return self.run_until_rollbacks_reported();
        }
        while !self.is_settled() {
            if self.now_ns >= end_ns {
                return Err(format!("{} ms after the last fault not everything has arrived", self.options.calm_ms));
            }
            self.step()?;
        }
        self.log(format_args!("everything has arrived everywhere"));
        for machine in self.machines.iter_mut().filter(|machine| !machine.is_gone) {
            machine.kill();
            let (last, all) = (machine.replay(&self.checker)?, self.checker.last_sequence());
            if last < all {
                return Err(format!("the journal of member {} ends at {last}; {all} was released", machine.number));
            }
        }
        Ok(())
    }

    /// `None` where several histories may exist.
    pub(crate) fn take_record(&mut self) -> Option<RunRecord> {
        let mut record = std::mem::take(&mut self.reference.record);
        record.publishers = self.workloads_made;
        (!self.histories_diverged).then_some(record)
    }

    pub(crate) fn place(&self) -> Option<FailurePlace> {
        let faults = self.machines.iter().find_map(|machine| machine.fault).or(self.reference.fault);
        let complained = || self.workloads.iter().find_map(|workload| workload.mismatch_sequence());
        let diverged = || self.checker.diverged_after.or_else(complained).filter(|sequence| *sequence > 0);
        faults.or_else(|| diverged().map(FailurePlace::Divergence))
    }

    pub(crate) fn any_snapshot(&self) -> Option<Vec<u8>> {
        let mut random = Random::of(self.seed, &[19]);
        let all: Vec<_> = self.machines.iter().flat_map(SimulatedMachine::snapshots).collect();
        let released = self.checker.last_sequence();
        let usable: Vec<_> = all.iter().filter(|(sequence, _)| *sequence < released).collect();
        if usable.is_empty() {
            return None;
        }
        let (_, path) = usable[random.below(usable.len() as u64) as usize];
        std::fs::read(path).ok()
    }

    pub(crate) fn describe(&self) -> String {
        let mut lines: Vec<String> = self.machines.iter().map(SimulatedMachine::describe).collect();
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

    pub(crate) fn add_machine(&mut self, kind: MemberKind) -> Result<u64, Violation> {
        let number = self.machines.len() as u64 + 1;
        let compared = (A::APPLICATION_KIND, self.options.compare_interval);
        let (network, random) = (&self.network, &mut self.random);
        self.machines.push(SimulatedMachine::new(
            (number, kind),
            &self.root,
            &self.profile,
            compared,
            network,
            random,
        )?);
        self.start(number as usize - 1)?;
        Ok(number)
    }

    /// Omits the run's directory, whose name changes.
    pub(crate) fn log(&self, what: fmt::Arguments<'_>) {
        let text = what.to_string().replace(&*self.root.to_string_lossy(), "");
        self.network.lock().trace.log(self.now_ns, format_args!("{text}"));
    }

    pub(crate) fn step(&mut self) -> Result<(), Violation> {
        let step_ns =
            if self.random.happens_per_100_000(10_000) { self.random.below(3 * MS) } else { self.random.below(MS) } + 1;
        self.now_ns += step_ns;
        self.time.advance(step_ns);
        self.network.lock().now_ns = self.now_ns;
        for machine in &self.machines {
            machine.advance(step_ns);
        }
        self.inject_faults()?;
        self.continue_change();
        let mut order: Vec<usize> = (0..self.machines.len()).collect();
        self.random.shuffle(&mut order);
        for at in order {
            self.turn(at)?;
        }
        for at in 0..self.workloads.len() {
            let read = match self.poll_workload(at) {
                Ok(read) => read,
                Err(said) if self.histories_diverged => {
                    // The publisher met another history; a new one replaces it.
                    self.log(format_args!("{said}"));
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

    fn poll_workload(&mut self, at: usize) -> Result<usize, Violation> {
        if self.workloads[at].is_searching() {
            self.connect_to(at)?;
        }
        self.workloads[at].poll(self.now_ns, self.application, &self.reference.answers, &mut self.random)
    }

    /// Preferably to the leader; without one, rarely to another member.
    fn connect_to(&mut self, workload: usize) -> Result<(), Violation> {
        let leads = |at: &usize| self.machines[*at].leading_term().is_some();
        let mut serving: Vec<usize> =
            (0..self.machines.len()).filter(|at| self.machines[*at].accepts_publishers()).collect();
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
            Some(member) => self.workloads[workload].connect_to(machine.number, member.stream()),
            None => Ok(()),
        }
    }

    fn turn(&mut self, at: usize) -> Result<(), Violation> {
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
            TurnOutcome::Running => {}
            TurnOutcome::Killed => {
                self.tally.kills += 1;
                self.log(format_args!("member {} is killed in the middle of a turn", at + 1));
                self.take_down(at, 150 * MS);
                return Ok(());
            }
            TurnOutcome::Fetched => {
                self.tally.fetched += 1;
                self.log(format_args!("member {} has fetched a state", at + 1));
                self.take_down(at, 50 * MS);
                return Ok(());
            }
            TurnOutcome::ReportedRollback(said) => return self.note_reported_rollback(at, &said),
            TurnOutcome::Stopped(said) => {
                self.stopped(at, &said);
                return Ok(());
            }
            TurnOutcome::Removed => {
                self.log(format_args!("member {} stops, because it was removed", at + 1));
                self.take_down(at, 1);
                self.machines[at].is_gone = true;
                return Ok(());
            }
            TurnOutcome::Refused => {
                self.log(format_args!("member {} is refused, because it has lost its disk", at + 1));
                self.take_down(at, 1);
                self.machines[at].is_gone = true;
                return Ok(());
            }
        }
        let released = machine.read_released(&mut self.checker, &mut self.reference, self.options.compare_interval)?;
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

    pub(crate) fn start(&mut self, at: usize) -> Result<(), Violation> {
        let number = self.machines[at].number;
        self.network.lock().set_powered_off(number, false);
        let started = match self.machines[at].start(self.application) {
            Err(said) if self.histories_diverged && reports_rollback(&said) => {
                return self.note_reported_rollback(at, &said);
            }
            started => started?,
        };
        match started {
            None => self.log(format_args!("member {number} starts")),
            Some(said) => self.stopped(at, &said),
        }
        Ok(())
    }

    fn stopped(&mut self, at: usize, said: &str) {
        self.log(format_args!("{said}"));
        *(if FaultyDisk::is_full_disk_error(said) {
            &mut self.tally.full_disks
        } else {
            &mut self.tally.disk_errors
        }) += 1;
        self.take_down(at, 300 * MS);
    }

    pub(crate) fn take_down(&mut self, at: usize, away_ns: u64) {
        self.machines[at].kill();
        // Half restart at once: lost state matters most then.
        let away_ns = if self.random.happens_per_100_000(50_000) {
            self.random.below(10 * MS)
        } else {
            self.random.below(away_ns)
        };
        self.machines[at].starts_ns = self.now_ns + away_ns;
        self.machines[at].paused_until_ns = 0;
        let number = self.machines[at].number;
        self.network.lock().cancel_kill();
        for workload in self.workloads.iter_mut().filter(|workload| workload.connected_member() == Some(number)) {
            workload.disconnect();
        }
    }

    /// Every member runs and is connected to every other.
    fn heal(&mut self) -> Result<(), Violation> {
        self.log(format_args!("no more faults"));
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

    /// There is a leader, and all published messages are everywhere.
    fn is_settled(&self) -> bool {
        let all = self.checker.last_sequence();
        self.change.is_none()
            && self.workloads.iter().all(|workload| workload.is_done())
            && self.machines.iter().all(|machine| machine.is_gone || machine.released() == all)
            && self.machines.iter().any(|machine| machine.leading_term().is_some())
            && self.machines.iter().all(SimulatedMachine::has_handled_all)
    }
}
