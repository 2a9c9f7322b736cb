//! Commands on a cluster of two members, each with a core of this machine: the one that leads and what sends to it take turns on one thread, as in
//! the canonical row; the follower is a process of its own.
//!
//! | module | what lives there |
//! |---|---|
//! | this | the member that leads, and the row |
//! | `follower_process` | the other member |

pub mod follower_process;

use crate::commands::arguments::Plan;
use crate::commands::case::Case;
use crate::commands::load::{Driver, Load, Outcome, Sender, Until, on_driver_with};
use crate::commands::messages::{Counter, Form};
use crate::commands::{NAME, failed, rows};
use crate::ports::free_ports;
use follower_process::{Assignment, Order, Ready, Stopped};
use gapless_agent::Clock;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::Role as MemberRole;
use gapless_cqrs::member::CommandMember;
use gapless_cqrs::{BusOptions, CommandBus, CommandHostOptions, CommandModel, Draft, Pending};
use gapless_measure::Result;
use gapless_measure::Row;
use gapless_measure::affinity::pair_of_cores;
use gapless_measure::child_process::{Child, Role};
use gapless_measure::own_directory::{OwnDirectory, settle};
use gapless_measure::reporting::{put, word};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LEADER: u64 = 1;
const FOLLOWER: u64 = 2;
/// A cluster is ready within this.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The follower is asked again for the lead after this.
const ASKED_AGAIN: Duration = Duration::from_millis(200);
/// Commands in flight at most, as many as the canonical row sends in some turns: all that is sent has room in the ring.
const IN_FLIGHT_MAX: usize = 1024;

/// Measures a row.
pub(crate) fn measure<F: Form>(plan: &Plan, interrupted: &AtomicBool, case: Case) -> Result<Row> {
    let directory = OwnDirectory::create(&plan.directory, &format!(".gapless-commands-{}", std::process::id()))?;
    settle(directory.path())?;
    let addresses = free_addresses()?;
    let assignment = Assignment {
        config: config(
            FOLLOWER,
            &directory.path().join("follower"),
            &addresses,
            pair_of_cores().map(|(_, second)| second),
        ),
        encoding: word(case.encoding),
    };
    let mut follower = Child::start(NAME, "the follower", (Role::CommandsFollower, &assignment), interrupted)?;
    let _: Ready = follower.receive()?;
    let text = config(LEADER, &directory.path().join("leader"), &addresses, pair_of_cores().map(|(first, _)| first));
    let in_flight = plan.in_flight.min(IN_FLIGHT_MAX);
    let load = Load { until: Until::Time(plan.warm_up, plan.time), ..Load::of(case, in_flight, interrupted) };
    let start = || Leading::start::<F>(&text, in_flight, &mut follower, interrupted);
    let (loaded, leading) = on_driver_with(start, |mut leading| {
        let loaded = Driver::<F, _>::new(&mut leading, load).run()?;
        Ok((loaded, leading))
    })?;
    let Stopped { cpu_ns } = follower.ask(&Order::Stop)?;
    leading.stop()?;
    follower.finish()?;
    let mut row = rows::throughput(&case, in_flight, &loaded);
    put(&mut row, "follower_cpu_ns_per_command", cpu_ns as f64 / loaded.sent.max(1) as f64);
    Ok(row)
}

fn free_addresses() -> Result<[String; 2]> {
    let ports = free_ports(Ipv4Addr::LOCALHOST.into(), 2)?;
    Ok([0, 1].map(|member| format!("127.0.0.1:{}", ports[member])))
}

/// The file of a member, as that of the canonical row.
fn config(member: u64, directory: &Path, addresses: &[String; 2], cpu: Option<usize>) -> String {
    let pinned = cpu.map_or_else(String::new, |cpu| format!("sequencer_cpus = \"{cpu}\"\n"));
    format!(
        "[cluster]\nname = \"commands\"\nmember = {member}\ntier = \"quorum\"\n\
         [[member]]\nid = {LEADER}\naddresses = [{:?}]\n[[member]]\nid = {FOLLOWER}\naddresses = [{:?}]\n\
         [election]\ntimeout = \"1 s\"\nheartbeat_interval = \"50 ms\"\n\
         [stream]\ndirectory = {:?}\nwindow = \"16 MiB\"\nmessage_length_max = \"1 MiB\"\n\
         [journal]\nsegment_length = \"2 GiB\"\nzero_initial = true\n\
         [threads]\nplan = \"default\"\noptimize_for = \"throughput\"\n{pinned}",
        addresses[0],
        addresses[1],
        directory.display().to_string(),
    )
}

pub(crate) fn parse(text: &str) -> Result<ClusterConfig> {
    ClusterConfig::parse(text, NAME).map_err(failed)
}

pub(crate) fn model<F: Form>() -> CommandModel {
    CommandModel::new().aggregate::<Counter<F>>()
}

/// The member that leads, turned by who sends to it.
struct Leading {
    member: CommandMember,
    bus: CommandBus,
    clock: Clock,
}

impl Leading {
    fn start<F: Form>(
        text: &str,
        in_flight: usize,
        follower: &mut Child<'_>,
        interrupted: &AtomicBool,
    ) -> Result<Self> {
        let started = CommandMember::start_by_hand(model::<F>(), CommandHostOptions::default(), &parse(text)?);
        let (mut member, (clock, _)) = (started.map_err(failed)?, Clock::fastest());
        let (since, mut asked) = (Instant::now(), Instant::now());
        loop {
            member.turn(clock.now()).map_err(failed)?;
            if interrupted.load(Ordering::Relaxed) || since.elapsed() > TIMEOUT {
                return Err(failed(format!("an election took longer than {} s", TIMEOUT.as_secs())));
            }
            let Some(status) = member.replica().member().status() else { continue };
            if status.consensus.role == MemberRole::Leader
                && status.links.iter().all(|(_, is_connected, _)| *is_connected)
            {
                break;
            }
            if status.consensus.leader.is_some() && asked.elapsed() > ASKED_AGAIN {
                follower.send(&Order::HandOver)?;
                asked = Instant::now();
            }
        }
        let bus = member.bus(&BusOptions { in_flight_max: in_flight }).map_err(failed)?;
        Ok(Self { member, bus, clock })
    }

    fn turn(&mut self) -> Result<()> {
        self.member.turn(self.clock.now()).map(drop).map_err(failed)
    }

    fn stop(self) -> Result<()> {
        drop(self.bus);
        self.member.stop().map(drop).map_err(failed)
    }
}

impl<F: Form> Sender<F> for &mut Leading {
    type Pending = Pending<(), ()>;

    #[inline]
    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending {
        loop {
            if let Some(pending) = self.bus.try_send(&draft) {
                return pending;
            }
            // Nobody else makes room. Where the turn fails, the outcome says so.
            if self.turn().is_err() {
                return self.bus.send(draft);
            }
        }
    }

    fn wait(&mut self, mut pending: Self::Pending) -> Outcome {
        loop {
            match pending.try_wait() {
                Ok(outcome) => return outcome,
                Err(none_yet) => pending = none_yet,
            }
            if let Err(error) = self.turn() {
                return Err(gapless_cqrs::CommandError::Failed(error.to_string()));
            }
        }
    }
}
