//! Commands on a cluster of two members with a core each. The leader and its sender take turns on one thread, as in the
//! canonical row; the follower is a process of its own.

use crate::commands::arguments::CommandsPlan;
use crate::commands::{NAME, rows};
use crate::ports::free_ports;
use gapless_load::commands::case::BusCase;
use gapless_load::commands::load::{CommandLoad, LoadLimit};
use gapless_load::commands::quorum::follower_process::{FollowerAssignment, FollowerReady};
use gapless_load::commands::quorum::{FOLLOWER, LEADER, drive};
use gapless_measure::Result;
use gapless_measure::Row;
use gapless_measure::affinity::pair_of_cores;
use gapless_measure::child_process::{Child, ChildRole};
use gapless_measure::own_directory::{OwnDirectory, sync_file_system};
use gapless_measure::reporting::{put, word};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Everything sent has room in the ring.
const IN_FLIGHT_MAX: usize = 1024;

pub(crate) fn measure(plan: &CommandsPlan, interrupted: &AtomicBool, case: BusCase) -> Result<Row> {
    let directory = OwnDirectory::create(&plan.directory, &format!(".gapless-commands-{}", std::process::id()))?;
    sync_file_system(directory.path())?;
    let addresses = free_addresses()?;
    let segment = plan.extent.pick("1 GiB", "1 GiB", "2 GiB");
    let assignment = FollowerAssignment {
        config: config(
            FOLLOWER,
            &directory.path().join("follower"),
            (&addresses, segment),
            pair_of_cores().map(|(_, second)| second),
        ),
        encoding: word(case.encoding),
    };
    let mut follower = Child::start(NAME, "the follower", (ChildRole::CommandsFollower, &assignment), interrupted)?;
    let _: FollowerReady = follower.receive()?;
    let first = pair_of_cores().map(|(first, _)| first);
    let text = config(LEADER, &directory.path().join("leader"), (&addresses, segment), first);
    let in_flight = plan.in_flight.min(IN_FLIGHT_MAX);
    let load = CommandLoad {
        until: LoadLimit::Time(plan.warm_up, plan.time),
        ..CommandLoad::of(case, in_flight, interrupted)
    };
    let (loaded, cpu_ns) = drive(&text, load, &mut follower)?;
    follower.finish()?;
    let mut row = rows::throughput(&case, in_flight, &loaded);
    put(&mut row, "follower_cpu_ns_per_command", cpu_ns as f64 / loaded.sent.max(1) as f64);
    Ok(row)
}

fn free_addresses() -> Result<[String; 2]> {
    let ports = free_ports(Ipv4Addr::LOCALHOST.into(), 2)?;
    Ok([0, 1].map(|member| format!("127.0.0.1:{}", ports[member])))
}

fn config(member: u64, directory: &Path, (addresses, segment): (&[String; 2], &str), cpu: Option<usize>) -> String {
    let pinned = cpu.map_or_else(String::new, |cpu| format!("sequencer_cpus = \"{cpu}\"\n"));
    format!(
        "[cluster]\nname = \"commands\"\nmember = {member}\ntier = \"quorum\"\n\
         [[member]]\nid = {LEADER}\naddresses = [{:?}]\n[[member]]\nid = {FOLLOWER}\naddresses = [{:?}]\n\
         [election]\ntimeout = \"1 s\"\nheartbeat_interval = \"50 ms\"\n\
         [stream]\ndirectory = {:?}\nwindow = \"16 MiB\"\nmessage_length_max = \"1 MiB\"\n\
         [journal]\nsegment_length = \"{segment}\"\nzero_initial = true\n\
         [threads]\nplan = \"default\"\noptimize_for = \"throughput\"\n{pinned}",
        addresses[0],
        addresses[1],
        directory.display().to_string(),
    )
}
