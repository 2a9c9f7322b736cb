//! `gapless bench messaging`: from a client to a service at tier `memory` and back, with everything that
//! is on the way: rings, sequencer, window, handler, exactly-once, both checksums, fragments. Then commands of the Car at
//! the highest rate, typed and as objects of the schema, at tiers `memory` and `journal`.

use super::{
    ComponentArguments, TimeUnit, compare, failed, is_interrupted, measure_floors, named, print_measured,
    shared_clients,
};
use crate::Result;
use crate::floor::{FloorKind, HEADER_BYTES};
use gapless::prelude::*;
use gapless_agent::CpuMask;
use gapless_client::ClientError;
use gapless_engine::ServiceHostOptions;
use gapless_load::canonical::form::CarFunctions;
use gapless_load::components::messaging::{round_trips, start};
use gapless_load::components::typed_commands::{self, CarCommand, TypedCar, WINDOW, commands_per_s};
use gapless_load::values::MessageEncoding;
use gapless_measure::affinity::{available_cpus, pair_of_cores, pin_current_thread};
use gapless_measure::own_directory::OwnDirectory;
use gapless_measure::{Report, Row};
use gapless_transport::link::RingSizes;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const ROUND_TRIPS: u64 = 1_500;
const COMMANDS_PER_ROUND_TRIP: u64 = 1_000;
/// Payloads in bytes; from 64 KiB on a message is several frames.
const PAYLOADS: [usize; 8] = [72, 256, 1024, 4096, 16 << 10, 64 << 10, 256 << 10, 500_000];
/// Measures; returns the text to print.
///
/// # Errors
/// A host that cannot be run, a reply that is late or another one, a report that cannot be written.
pub fn run(arguments: &ComponentArguments, interrupted: &AtomicBool) -> Result<String> {
    let count = arguments.count.unwrap_or(ROUND_TRIPS);
    let mut report = Report::new("messaging");
    let mut items = PAYLOADS.map(|payload| (FloorKind::ShmPingPong, payload as u64 + HEADER_BYTES)).to_vec();
    for kind in [CarCommand::SbeObject, CarCommand::Typed] {
        items.push((FloorKind::ShmStream, car_bytes(kind)? + HEADER_BYTES));
    }
    items.extend(shared_clients::floors()?);
    measure_floors(&mut report, Path::new("."), items);
    let cpus = pair_of_cores();
    let threads = Threads { callers_hot: 1, service_cpus: cpus.and_then(all_but_the_first), ..Threads::default() };
    let mut options = ServiceHostOptions::in_memory();
    options.threads = threads.clone();
    let host = start(options)?;
    let plan = host.plan().to_string();
    report
        .notes
        .extend(plan.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("plan: {line}")));
    let link = RingSizes { command_ring_bytes: 4 << 20, reply_ring_bytes: 4 << 20 };
    let mut client =
        host.connect(ClientOptions { link, ..ClientOptions::default() }).map_err(|error| failed("messaging", error))?;
    let measured = std::thread::scope(|scope| {
        let report = &mut report;
        let client = &mut client;
        let driver = scope.spawn(move || {
            if let Some((first, _)) = cpus {
                pin_current_thread(&[first])?;
            }
            let session = client.open_session(random_token(), 16).map_err(|error| failed("messaging", error))?;
            for payload in PAYLOADS {
                if is_interrupted(report, interrupted) {
                    break;
                }
                let mut row = named("client to node and back", payload as u64, count);
                row.config.tier = Some("memory".to_owned());
                row.latency_ns = round_trips(client, session, payload, count)?.latency_ns();
                row.verified = Some(true);
                compare(&mut row, report, FloorKind::ShmPingPong, payload as u64 + HEADER_BYTES);
                print_measured(std::slice::from_ref(&row));
                report.rows.push(row);
            }
            Ok(())
        });
        driver.join().unwrap_or_else(|_| Err(failed("messaging", "the client panicked")))
    });
    drop(client);
    host.stop().map_err(|error| failed("messaging", error))?;
    measured?;
    for tier in [Tier::Memory, Tier::Journal] {
        for kind in [CarCommand::SbeObject, CarCommand::Typed] {
            if is_interrupted(&mut report, interrupted) {
                break;
            }
            let mut row = car_commands(tier, kind, count * COMMANDS_PER_ROUND_TRIP)?;
            compare(&mut row, &report, FloorKind::ShmStream, car_bytes(kind)? + HEADER_BYTES);
            print_measured(std::slice::from_ref(&row));
            report.rows.push(row);
        }
    }
    if !is_interrupted(&mut report, interrupted) {
        shared_clients::measure(&mut report, threads, count)?;
    }
    arguments.finish(&report, TimeUnit::Microseconds)
}

fn all_but_the_first((first, _): (usize, usize)) -> Option<CpuMask> {
    let others: Vec<usize> = available_cpus().into_iter().filter(|cpu| *cpu != first).collect();
    CpuMask::of(&others)
}

/// Client and service choose their cores by themselves.
fn car_commands(tier: Tier, kind: CarCommand, count: u64) -> Result<Row> {
    let directory = OwnDirectory::create(Path::new("."), &format!(".gapless-messaging-{}", std::process::id()))?;
    let mut options = match tier {
        Tier::Memory => ServiceHostOptions::in_memory(),
        tier => ServiceHostOptions { tier, ..ServiceHostOptions::in_directory(directory.path()) },
    };
    options.threads.callers_hot = 1;
    options.snapshot_interval_frames = None;
    let host = typed_commands::start(options)?;
    let failed = |error: ClientError| failed("messaging", error);
    let mut client = host.connect(ClientOptions::default()).map_err(failed)?;
    let session = client.open_session(random_token(), WINDOW).map_err(failed)?;
    let measured = commands_per_s(&mut client, session, kind, count.div_ceil(10))
        .and_then(|_| commands_per_s(&mut client, session, kind, count));
    drop(client);
    host.stop().map_err(|error| super::failed("messaging", error))?;
    let name = match kind {
        CarCommand::Typed => "Car as a typed command",
        CarCommand::SbeObject => "Car as an SBE object",
    };
    let mut row = named(name, car_bytes(kind)?, count);
    row.config.tier = Some(tier.to_string());
    row.throughput_per_s = Some(measured?);
    row.verified = Some(true);
    Ok(row)
}

fn car_bytes(kind: CarCommand) -> Result<u64> {
    match kind {
        CarCommand::Typed => TypedCar::length(),
        CarCommand::SbeObject => CarFunctions::of(MessageEncoding::SbeRandom).length(Some(1)),
    }
}
