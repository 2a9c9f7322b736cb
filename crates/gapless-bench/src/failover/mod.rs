//! `gapless bench failover`: the outage that clients see while a cluster's leader is killed and comes back, the lead is
//! transferred, a follower is killed and comes back, and a snapshot is taken; and how fast a follower catches up that
//! has missed frames.
//!
//! | module | what lives there |
//! |---|---|
//! | this | the arguments, the order of things, the report |
//! | `cluster` | the members, each a process |
//! | `events` | the events, and their times |
//! | `catch_up` | a follower that has missed frames |
//! | `figures` | silences and latencies |
//! | `table`, `plot` | the printed table and the picture |
//!
//! Lost and doubled commands are counted from the outcomes that clients received and from the service's state at the
//! end.

mod catch_up;
mod cluster;
mod events;
mod figures;
mod plot;
mod table;

pub use cluster::Membership;

use crate::Result;
use crate::floor::FloorKind;
use catch_up::{CatchUpPlan, CatchUpResults};
use clap::Args;
use cluster::BenchCluster;
use events::{EventKind, EventMoment};
use figures::{EventFigures, EventPhase, figures};
use gapless::prelude::*;
use gapless_client::ClientError;
use gapless_load::failover::ledger::{COUNT, NOTE_LENGTH, words};
use gapless_load::failover::load::{ClientRecords, FailoverClient, SESSIONS, elapsed_ns};
use gapless_load::failover::{NAME, failed};
use gapless_measure::progress::BenchProgress;
use gapless_measure::reporting::{self, INTERRUPTED, OutputArguments, check_interrupted, is_set, keys, measure_floors};
use gapless_measure::table::{self as tables, TableStyle, floor_section};
use gapless_measure::{Report, Row, RowConfig, RunExtent};
use gapless_wire::HEADER_LENGTH;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const CLIENTS: u64 = 2;
const FILLERS: u64 = 100;
/// Quiet time around an event, and its least duration: quick, default, and full runs.
const WINDOW_QUICK: Duration = Duration::from_millis(250);
const WINDOW: Duration = Duration::from_millis(600);
const WINDOW_FULL: Duration = Duration::from_secs(1);
const REPEATS_QUICK: u32 = 1;
const REPEATS: u32 = 2;
const REPEATS_FULL: u32 = 5;
const FRAMES_QUICK: u64 = 20_000;
const LOG_FRAMES: u64 = 400_000;
const LOG_FRAMES_FULL: u64 = 1_000_000;
const LAG_FRAMES: u64 = 400_000;
const LAG_FRAMES_FULL: u64 = 1_000_000;
const SATURATED_MAX: Duration = Duration::from_secs(12);
const SATURATED_MAX_FULL: Duration = Duration::from_secs(30);
pub(crate) const FIRST_NEW_REPLY: &str = "first_new_reply_of_every_client_ns";
pub(crate) const RATE_PER_S: u64 = 2_000;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailoverPart {
    /// Outages that clients see while members are killed, hand over and come back
    Events,
    /// Catching up of a follower that has missed frames
    CatchUp,
}
const TIMEOUT: Duration = Duration::from_secs(60);

/// Options of the benchmark.
#[derive(Debug, Clone, Args)]
pub struct FailoverArguments {
    #[command(flatten)]
    pub output: OutputArguments,

    /// Cluster to measure [default: both, one after the other]
    #[arg(long, value_name = "MEMBERS")]
    pub members: Option<Membership>,

    /// Commands per second of all clients together, independent of the answers
    #[arg(long, value_name = "PER_SECOND", default_value_t = RATE_PER_S, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub rate: u64,

    /// Frames in the log before the first event [default: 400,000; with --full 1,000,000]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(0..=100_000_000))]
    pub log_frames: Option<u64>,

    /// Repetitions of each event [default: 2; with --full 5]
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub repeat: Option<u32>,

    /// Run as for the committed tables: each event 5 times, logs and gaps of 1,000,000 frames; about seven minutes
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,

    /// Part to measure [default: both]
    #[arg(long, value_name = "PART")]
    pub only: Option<FailoverPart>,

    /// Frames that a follower misses before it catches up, on an idle cluster, under live messages, under saturation
    /// [default: 400,000; with --full 1,000,000]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    pub behind_frames: Option<u64>,

    /// Live messages per second of all clients while a follower catches up
    #[arg(long, value_name = "PER_SECOND", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub live_rate: u64,

    /// Directory for the members' data, on the device to measure; it is removed afterwards
    #[arg(long, short = 'k', value_name = "DIRECTORY", default_value = ".")]
    pub log_location: PathBuf,
}

pub(crate) struct ClusterResults {
    membership: Membership,
    figures: Vec<EventFigures>,
    catch_ups: CatchUpResults,
    sent: u64,
    elapsed_ns: u64,
    lost: u64,
    doubled: u64,
    repeated: u64,
    reconnected: u64,
    rate_reached: bool,
    plan: String,
    is_whole: bool,
}

#[derive(Clone, Copy)]
struct FailoverPlan {
    rate_per_s: u64,
    log_frames: u64,
    repeats: u32,
    window: Duration,
    lag_frames: u64,
    live_per_s: u64,
    saturated_max: Duration,
    only: Option<FailoverPart>,
    events: &'static [EventKind],
}

impl FailoverPlan {
    fn has(self, part: FailoverPart) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// Measures; returns the text to print.
///
/// # Errors
/// Members that cannot be started, or do not come back; commands that are refused; a report that cannot be written.
pub fn run(arguments: &FailoverArguments, interrupted: &AtomicBool) -> Result<String> {
    arguments.output.check()?;
    let extent = RunExtent::of(arguments.output.quick, arguments.full);
    let frames_max = extent.pick(FRAMES_QUICK, u64::MAX, u64::MAX);
    let repeats_max = extent.pick(REPEATS_QUICK, u32::MAX, u32::MAX);
    let frames =
        |asked: Option<u64>, usual, full| asked.unwrap_or(extent.pick(FRAMES_QUICK, usual, full)).min(frames_max);
    let repeats = extent.pick(REPEATS_QUICK, REPEATS, REPEATS_FULL);
    let plan = FailoverPlan {
        rate_per_s: arguments.rate,
        log_frames: frames(arguments.log_frames, LOG_FRAMES, LOG_FRAMES_FULL),
        repeats: arguments.repeat.unwrap_or(repeats).min(repeats_max),
        window: extent.pick(WINDOW_QUICK, WINDOW, WINDOW_FULL),
        lag_frames: frames(arguments.behind_frames, LAG_FRAMES, LAG_FRAMES_FULL),
        saturated_max: extent.pick(SATURATED_MAX, SATURATED_MAX, SATURATED_MAX_FULL),
        live_per_s: arguments.live_rate,
        only: arguments.only,
        events: &EventKind::ALL,
    };
    let is_quiet = arguments.output.json.is_on_stdout();
    let mut report = Report::new(NAME);
    let items = vec![(FloorKind::TcpRoundTrip, (NOTE_LENGTH + HEADER_LENGTH) as u64), (FloorKind::FutexRoundTrip, 0)];
    measure_floors(&mut report, &arguments.log_location, items, Duration::from_millis(150));

    let all = [Membership::Full, Membership::Witness];
    let chosen: Vec<Membership> =
        all.into_iter().filter(|each| arguments.members.is_none_or(|only| only == *each)).collect();
    let steps = u64::from(plan.has(FailoverPart::Events)) * plan.events.len() as u64 * u64::from(plan.repeats)
        + u64::from(plan.has(FailoverPart::CatchUp)) * catch_up::CatchUpLoad::ALL.len() as u64
        + 1;
    let progress = BenchProgress::new(steps * chosen.len() as u64, NAME, is_quiet);
    let mut scenarios = Vec::new();
    for membership in chosen {
        let scenario = match measure(membership, plan, &arguments.log_location, &progress, interrupted) {
            Err(_) if is_set(interrupted) => break,
            measured => measured?,
        };
        let measured_rows = [rows(&scenario, plan, &report), catch_up_rows(&scenario, plan)].concat();
        measured_rows.iter().for_each(|row| progress.line(&tables::measured(row)));
        report.rows.extend(measured_rows);
        scenarios.push(scenario);
        if is_set(interrupted) {
            break;
        }
    }
    progress.finish();
    if scenarios.is_empty() {
        check_interrupted(NAME, interrupted)?;
    }
    if is_set(interrupted) {
        report.notes.push(format!("{INTERRUPTED}; whether anything was lost was not compared"));
    }
    report.notes.extend(notes(&scenarios, plan));
    report.extra.insert("timelines".to_owned(), scenarios.iter().map(timelines).collect());
    if let Some(path) = &arguments.output.plot {
        let title = format!(
            "Latency around events: {} commands/s, {} frames of log, {}",
            plan.rate_per_s,
            plan.log_frames,
            report.environment.summary().lines().next().unwrap_or_default(),
        );
        plot::write(&scenarios, &title, path)?;
    }
    arguments.output.json.write(&report)?;
    if is_quiet {
        return Ok(String::new());
    }
    let style = TableStyle::for_stdout();
    let mut text = format!("{}\n\n", report.environment.summary());
    if plan.has(FailoverPart::Events) {
        text += &format!("{}\n", table::text(&scenarios, style));
    }
    if let Some(catch_ups) = table::catch_ups(&scenarios, style) {
        text += &format!("{catch_ups}\n");
    }
    text += floor_section(&report.floor, "same run", style).trim_start();
    Ok(text + &tables::notes(&report))
}

/// Kills the leader of three full members `kills` times below a directory, for another benchmark. After a single kill
/// the leader does not come back.
///
/// # Errors
/// As of [`run`].
pub(crate) fn leader_killed(
    repeats: u32,
    parent: &Path,
    progress: &BenchProgress,
    interrupted: &AtomicBool,
) -> Result<Vec<Row>> {
    let plan = FailoverPlan {
        rate_per_s: RATE_PER_S,
        log_frames: FRAMES_QUICK,
        repeats,
        window: WINDOW_QUICK,
        lag_frames: 0,
        live_per_s: 0,
        saturated_max: Duration::ZERO,
        only: Some(FailoverPart::Events),
        events: if repeats == 1 {
            &[EventKind::LeaderKilled]
        } else {
            &[EventKind::LeaderKilled, EventKind::LeaderReturns]
        },
    };
    let scenario = measure(Membership::Full, plan, parent, progress, interrupted)?;
    let rows = rows(&scenario, plan, &Report::default());
    Ok(rows.into_iter().filter(|row| reporting::of_config(row, "event") == EventKind::LeaderKilled.name()).collect())
}

fn measure(
    membership: Membership,
    plan: FailoverPlan,
    parent: &Path,
    progress: &BenchProgress,
    interrupted: &AtomicBool,
) -> Result<ClusterResults> {
    let label = |what: &str| progress.set_label(&format!("{}: {what}", membership.key()));
    label("start");
    let mut cluster = BenchCluster::start(parent, membership, interrupted)?;
    cluster.leader()?;
    let sockets = cluster.sockets();
    label("fill the log");
    fill(&sockets, plan.log_frames, interrupted)?;
    cluster.wait_until_level()?;
    progress.set_position(progress.position() + 1);

    let senders =
        (1..=CLIENTS).map(|owner| FailoverClient::new(&sockets, owner, interrupted)).collect::<Result<Vec<_>>>()?;
    let (begin, stop) = (Instant::now(), AtomicBool::new(false));
    let interval_ns = 1_000_000_000 * CLIENTS / plan.rate_per_s;
    let mut events = Vec::new();
    let (happened, clients, elapsed) = std::thread::scope(|scope| {
        let begun = senders.into_iter().enumerate().map(|(number, sender)| {
            let (stop, offset_ns) = (&stop, number as u64 * interval_ns / CLIENTS);
            scope.spawn(move || sender.run(begin, (interval_ns, offset_ns), stop))
        });
        let threads: Vec<_> = begun.collect();
        let mut look = |what: EventMoment<'_>| {
            match what {
                EventMoment::Before(what) => {
                    label(what);
                    progress.set_position(progress.position() + 1);
                }
                EventMoment::After(event) => progress.line(&format!(
                    "failover {}: {}: all is well after {:.1} ms",
                    membership.key(),
                    event.what.name(),
                    (event.end_ns - event.at_ns) as f64 / 1e6
                )),
            }
            if threads.iter().any(|thread| thread.is_finished()) {
                return Err(failed("a client has given up"));
            }
            check_interrupted(NAME, interrupted)
        };
        let happened = if plan.has(FailoverPart::Events) {
            events::run(&mut cluster, (plan.events, plan.repeats, plan.window), begin, &mut look, &mut events)
        } else {
            Ok(())
        };
        stop.store(true, Ordering::Relaxed);
        let elapsed = elapsed_ns(begin);
        let seen: Vec<Result<ClientRecords>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(failed("a client panicked"))))
            .collect();
        (happened, seen, elapsed)
    });
    let clients: Vec<ClientRecords> = if is_set(interrupted) {
        clients.into_iter().flatten().collect()
    } else {
        let clients = clients.into_iter().collect::<Result<Vec<_>>>()?;
        happened.map(|()| clients)?
    };
    let mut catch_ups = CatchUpResults::default();
    if plan.has(FailoverPart::CatchUp) && !is_set(interrupted) {
        let mut look = |what: &str| {
            label(what);
            progress.set_position(progress.position() + 1);
            Ok(())
        };
        let FailoverPlan { lag_frames, live_per_s, window, saturated_max, .. } = plan;
        let plan = CatchUpPlan { lag_frames, live_per_s, window, saturated_max };
        let caught_up = catch_up::run(&mut cluster, plan, interrupted, &mut look, &mut catch_ups);
        caught_up.or_else(|error| if is_set(interrupted) { Ok(()) } else { Err(error) })?;
    }
    let plan_text = cluster.plan.clone();
    let is_whole = !is_set(interrupted);
    let (mut unseen, mut twice) = (0, 0);
    if is_whole {
        label("compare");
        (unseen, twice) = compare(&sockets, &clients, (plan.log_frames, &catch_ups))?;
        cluster.stop()?;
    }

    let sent: u64 = clients.iter().map(|client| client.records.len() as u64).sum();
    let due = elapsed / interval_ns * CLIENTS;
    let sum = |of: fn(&ClientRecords) -> u64| clients.iter().map(of).sum::<u64>();
    Ok(ClusterResults {
        membership,
        figures: figures(&clients, &events, plan.window.as_nanos() as u64),
        sent,
        elapsed_ns: elapsed,
        lost: sum(ClientRecords::unanswered) + unseen + catch_ups.lost,
        doubled: sum(|client| client.doubled) + twice + catch_ups.doubled,
        catch_ups,
        repeated: sum(|client| client.repeated),
        reconnected: sum(|client| client.reconnected),
        rate_reached: sent + sent / 100 >= due,
        plan: plan_text,
        is_whole,
    })
}

fn fill(sockets: &[PathBuf], frames: u64, interrupted: &AtomicBool) -> Result<()> {
    std::thread::scope(|scope| {
        let run = |client: u64| {
            scope
                .spawn(move || FailoverClient::new(sockets, FILLERS + client, interrupted)?.fill(share(frames, client)))
        };
        let threads: Vec<_> = (0..CLIENTS).map(run).collect();
        for thread in threads {
            let seen = thread.join().unwrap_or_else(|_| Err(failed("a client panicked")))?;
            if seen.doubled > 0 {
                return Err(failed("commands were doubled before anything happened"));
            }
        }
        Ok(())
    })
}

const fn share(frames: u64, client: u64) -> u64 {
    frames / CLIENTS + if client < frames % CLIENTS { 1 } else { 0 }
}

/// Commands that the service has not received, and those received twice.
fn compare(
    sockets: &[PathBuf],
    clients: &[ClientRecords],
    (log_frames, catch_ups): (u64, &CatchUpResults),
) -> Result<(u64, u64)> {
    let stream_failed = |error: ClientError| failed(error.to_string());
    let options = ClientOptions { timeout: TIMEOUT, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(sockets, options).map_err(stream_failed)?;
    let session = client.open_session(random_token(), 1).map_err(stream_failed)?;
    let mut of = |owner: u64| -> Result<[u64; 2]> {
        let reply = client.call(session, COUNT, &owner.to_le_bytes(), TIMEOUT).map_err(stream_failed)?;
        words(&reply.payload).ok_or_else(|| failed("a malformed reply"))
    };
    let (mut unseen, mut twice) = (0, 0);
    let sent = clients.iter().map(|client| client.records.len() as u64);
    let owners = (1..).zip(sent).chain((0..CLIENTS).map(|filler| (FILLERS + filler, share(log_frames, filler))));
    for (owner, sent) in owners.chain(catch_ups.sent.iter().copied()) {
        let [count, doubled] = of(owner)?;
        if count > sent {
            return Err(failed(format!("client {owner} has sent {sent} commands, the service knows {count}")));
        }
        unseen += sent - count;
        twice += doubled;
    }
    Ok((unseen, twice))
}

fn rows(scenario: &ClusterResults, plan: FailoverPlan, report: &Report) -> Vec<Row> {
    let is_right = scenario.lost == 0 && scenario.doubled == 0;
    let mut rows = Vec::new();
    for figures in &scenario.figures {
        for phase in EventPhase::ALL {
            let mut config = config(scenario, figures.what.name(), phase.name());
            config.name = Some(format!("{}: {}, {}", scenario.membership.key(), figures.what.name(), phase.name()));
            config.rate_per_s = Some(plan.rate_per_s);
            let mut put = |key: &str, value: Value| config.extra.insert(key.to_owned(), value);
            put("log_frames", plan.log_frames.into());
            put("sessions", (CLIENTS * SESSIONS as u64).into());
            let histogram = &figures.latencies[phase as usize];
            let mut row = Row {
                config,
                latency_ns: histogram.latency_ns(),
                rate_reached: Some(scenario.rate_reached),
                verified: scenario.is_whole.then_some(is_right),
                lost: scenario.is_whole.then_some(scenario.lost),
                duplicated: scenario.is_whole.then_some(scenario.doubled),
                ..Row::default()
            };
            if phase == EventPhase::During {
                let of = |of: &dyn Fn(&figures::EventOccurrence) -> Value| {
                    figures.occurrences.iter().map(of).collect::<Value>()
                };
                let mut put = |key: &str, value: Value| row.extra.insert(key.to_owned(), value);
                put("first_new_reply_ns", of(&|each| each.first_new_reply_ns.into()));
                put(FIRST_NEW_REPLY, of(&|each| each.last_client_ns.into()));
                put("longest_silence_ns", of(&|each| each.longest_silence_ns.into()));
                put("duration_ns", of(&|each| each.duration_ns.into()));
                if let (Some(target_ns), Some(met)) = (figures.what.target_ns(), figures.is_met()) {
                    put("target_ns", target_ns.into());
                    put("target_met", met.into());
                }
            }
            reporting::compare(&mut row, report, FloorKind::TcpRoundTrip, (NOTE_LENGTH + HEADER_LENGTH) as u64);
            rows.push(row);
        }
    }
    rows
}

fn config(scenario: &ClusterResults, event: &str, phase: &str) -> RowConfig {
    RowConfig {
        program: Some("es".to_owned()),
        tier: Some("quorum".to_owned()),
        cpu: Some("default".to_owned()),
        clustered: Some(true),
        transport: Some("shared memory".to_owned()),
        payload_bytes: Some(NOTE_LENGTH as u64),
        extra: keys(json!({ "members": scenario.membership.key(), "event": event, "phase": phase })),
        ..RowConfig::default()
    }
}

fn catch_up_rows(scenario: &ClusterResults, plan: FailoverPlan) -> Vec<Row> {
    let is_right = scenario.lost == 0 && scenario.doubled == 0;
    let row = |each: &catch_up::CatchUpResult| {
        let mut config = config(scenario, "follower catches up", each.case.name());
        config.name = Some(format!("{}: a follower catches up, {}", scenario.membership.key(), each.case.name()));
        config.rate_per_s = (each.case == catch_up::CatchUpLoad::Live).then_some(plan.live_per_s);
        config.extra.insert("behind_frames".to_owned(), plan.lag_frames.into());
        let mut row = Row {
            config,
            throughput_per_s: Some(each.moved_per_s()),
            elapsed_ns: Some(each.elapsed_ns),
            verified: scenario.is_whole.then_some(is_right),
            lost: scenario.is_whole.then_some(scenario.lost),
            duplicated: scenario.is_whole.then_some(scenario.doubled),
            ..Row::default()
        };
        let mut put = |key: &str, value: Value| row.extra.insert(key.to_owned(), value);
        put("gap_begin_frames", each.gap_begin.into());
        put("gap_end_frames", each.gap_end.into());
        put("moved_frames", each.moved.into());
        put("commits_before_per_s", each.before_per_s.into());
        put("commits_meanwhile_per_s", each.meanwhile_per_s.into());
        put("commits_after_per_s", each.after_per_s.into());
        if let Some(kept) = each.kept() {
            put("commits_kept", kept.into());
            put("target_commits_kept", catch_up::KEPT_TARGET.into());
        }
        if let Some(target_per_s) = each.case.target_per_s() {
            put("target_per_s", target_per_s.into());
        }
        put("target_met", each.is_met().into());
        row
    };
    scenario.catch_ups.all.iter().map(row).collect()
}

fn timelines(scenario: &ClusterResults) -> Value {
    let of_event = |figures: &EventFigures| {
        let lines = figures.occurrences.iter().map(|occurrence| {
            let moments: Vec<f64> = occurrence.points.iter().map(|point| point.at_ms.round()).collect();
            let longest: Vec<u64> = occurrence.points.iter().map(|point| point.latency_max_ns / 1000).collect();
            // One text, because an array of numbers would take a line for each.
            let text = |numbers: Vec<String>| numbers.join(" ");
            json!({
                "at_ms": text(moments.iter().map(|at| format!("{at:.0}")).collect()),
                "latency_max_us": text(longest.iter().map(u64::to_string).collect()),
            })
        });
        json!({"event": figures.what.name(), "happenings": lines.collect::<Vec<_>>()})
    };
    let events: Vec<Value> = scenario.figures.iter().map(of_event).collect();
    json!({"members": scenario.membership.key(), "point_ms": figures::POINT_NS / 1_000_000, "events": events})
}

fn notes(scenarios: &[ClusterResults], plan: FailoverPlan) -> Vec<String> {
    let mut notes = Vec::new();
    for scenario in scenarios {
        notes.push(format!(
            "{}: {} commands in {:.1} s, {}, {} replies again, {} times connected to another member{}; threads of a \
             member: {}",
            scenario.membership.name(),
            scenario.sent,
            scenario.elapsed_ns as f64 / 1e9,
            if scenario.is_whole {
                format!("{} lost, {} doubled", scenario.lost, scenario.doubled)
            } else {
                "not compared".to_owned()
            },
            scenario.repeated,
            scenario.reconnected,
            if scenario.rate_reached { "" } else { "; the rate was NOT reached" },
            scenario.plan.trim().replace('\n', "; "),
        ));
    }
    notes.push(format!(
        "first new reply: from the event to the first reply to a command that was sent after it; silence: of the client \
         that waited longest; a killed leader is measured against its target by the first new reply of every client, a \
         transfer by the longest silence; until all is well: looked at no sooner than {} ms behind the event; {} frames in \
         the log before, all settings as gapless cluster new writes them, tier quorum, every member and the clients on this machine",
        plan.window.as_millis(),
        plan.log_frames
    ));
    notes
}
