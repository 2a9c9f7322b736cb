//! Commands on a cluster of two members: the leader and its driver share one thread; the follower is a process of its
//! own.

pub mod follower_process;

use crate::commands::case::CommandEncoding;
use crate::commands::load::{BusAnswer, CommandLoad, CommandSender, LoadDriver, LoadResult, on_driver_with};
use crate::commands::messages::{CommandForm, Counter, SbeForm, SerdeForm};
use crate::commands::{NAME, failed};
use follower_process::{FollowerReport, FollowerRequest};
use gapless_agent::Clock;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberRole;
use gapless_cqrs::member::CommandMember;
use gapless_cqrs::{AggregateOptions, BusOptions, CommandBus, CommandModel, Draft, PendingOutcome};
use gapless_measure::Result;
use gapless_measure::child_process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const LEADER: u64 = 1;
pub const FOLLOWER: u64 = 2;
const TIMEOUT: Duration = Duration::from_secs(60);
const ASKED_AGAIN: Duration = Duration::from_millis(200);

/// `text` is the leader's member file. Returns the outcome, and the follower's CPU time, ns.
///
/// # Errors
/// A member that does not start or stop; an interrupt.
pub fn drive(text: &str, load: CommandLoad<'_>, follower: &mut Child<'_>) -> Result<(LoadResult, u64)> {
    match load.case.encoding {
        CommandEncoding::Sbe => drive_form::<SbeForm>(text, load, follower),
        CommandEncoding::Serde => drive_form::<SerdeForm>(text, load, follower),
    }
}

fn drive_form<F: CommandForm>(
    text: &str,
    load: CommandLoad<'_>,
    follower: &mut Child<'_>,
) -> Result<(LoadResult, u64)> {
    let start = || PolledLeader::start::<F>(text, load.in_flight, follower, load.interrupted);
    let (loaded, leading) = on_driver_with(start, |mut leading| {
        let loaded = LoadDriver::<F, _>::new(&mut leading, load).run()?;
        Ok((loaded, leading))
    })?;
    let FollowerReport { cpu_ns } = follower.ask(&FollowerRequest::Stop)?;
    leading.stop()?;
    Ok((loaded, cpu_ns))
}

pub fn parse(text: &str) -> Result<ClusterConfig> {
    ClusterConfig::parse(text, NAME).map_err(failed)
}

pub fn model<F: CommandForm>() -> CommandModel {
    CommandModel::new().aggregate::<Counter<F>>()
}

struct PolledLeader {
    member: CommandMember,
    bus: CommandBus,
    clock: Clock,
}

impl PolledLeader {
    fn start<F: CommandForm>(
        text: &str,
        in_flight: usize,
        follower: &mut Child<'_>,
        interrupted: &AtomicBool,
    ) -> Result<Self> {
        let started = CommandMember::start_by_hand(model::<F>(), AggregateOptions::default(), &parse(text)?);
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
                follower.send(&FollowerRequest::HandOver)?;
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

impl<F: CommandForm> CommandSender<F> for &mut PolledLeader {
    type Pending = PendingOutcome<(), ()>;

    #[inline]
    fn send(&mut self, draft: Draft<'_, F::Command, (), ()>) -> Self::Pending {
        loop {
            if let Some(pending) = self.bus.try_send(&draft) {
                return pending;
            }
            // Only this thread makes room; the outcome reports a failed poll.
            if self.turn().is_err() {
                return self.bus.send(draft);
            }
        }
    }

    fn wait(&mut self, mut pending: Self::Pending) -> BusAnswer {
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
