//! `gapless bench network`: calls between two domains with a bridge each, over Kafka, by the size of the payload, next to bare clients of the same
//! broker and a pair of plain Java clients in the same run.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options |
//! | `goals` | the goals, and rows judged by them |
//! | `places` | the broker, the domains, bridges and server |
//! | `java` | the pair of plain Java clients |
//! | `rows` | rows of a system |
//! | `table` | the printed table, and the picture |

mod arguments;
mod goals;
mod java;
mod places;
mod rows;
mod table;

pub use arguments::NetworkArguments;
pub(crate) use places::find_kafka;

use arguments::{NetworkPlan, NetworkSystem};
use gapless_load::network::bare::{BARE_ROUND_TRIP, BarePair};
use gapless_load::network::{NAME, failed};
use gapless_load::rpc::payloads::content::TaggedPayloads;
use gapless_load::rpc::payloads::cycles::forked_max;
use gapless_load::rpc::payloads::served::TWO_WAY;
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::published::mercury::PublishedPayload;
use gapless_measure::reporting::{BenchRun, ReportLayout, check_interrupted, not_measured, put};
use gapless_measure::{Result, Row};
use gapless_rpc::CallOptions;
use java::JavaClients;
use places::{CallEnds, KafkaBrokers};
use rows::EndsCpu;
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Fits one record at a broker's default limit. Longer calls go in segments; bare clients cannot send them.
const BARE_BYTES_MAX: usize = 900_000;
const LONE_BYTES: usize = 256;

/// Measures; returns the text to print.
///
/// # Errors
/// A broker that cannot be started or fails, a process that ends too early, a call that fails, a report or a picture that cannot be written.
pub fn run(arguments: &NetworkArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = arguments.plan()?;
    let shown = ReportLayout {
        benchmark: NAME,
        steps: plan.steps(),
        notes: table::notes(&plan),
        text: table::text,
        draw: table::draw,
    };
    Ok(BenchRun::of(shown, &arguments.output, interrupted, |run| measure(&plan, run))?.1)
}

/// Measures our calls of the least published size for another benchmark, one way and two ways.
pub(crate) fn least(arguments: &NetworkArguments, run: &mut BenchRun<'_>) -> Result<()> {
    measure(&arguments.least_plan()?, run)
}

fn measure(plan: &NetworkPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let interrupted = run.interrupted;
    run.next("broker starts")?;
    let broker = KafkaBrokers::start(plan, interrupted)?;
    let bare = BarePair::open(&broker.addresses, broker.topics.bare())?;
    let (mut ends, mut java) = (None, None);
    if plan.has(NetworkSystem::Gapless) {
        run.next("bridges start")?;
        ends = Some(CallEnds::start(&broker, interrupted)?);
    }
    if plan.has(NetworkSystem::Java) {
        run.next("Java clients start")?;
        java = peer(run, JavaClients::start(&broker, plan, interrupted))?;
    }
    let mut measurement = NetworkMeasurement { plan, ends, java, bare, _broker: broker };
    if plan.lone_calls > 0 {
        measurement.lone_calls(run)?;
    }
    for (sizes, published) in plan.each_size() {
        for (way, bytes) in sizes.into_iter().enumerate() {
            run.next(&format!("{bytes} B, {}", if way == 0 { "one way" } else { "two ways" }))?;
            measurement.one_size(run, (bytes, way + 1), published.as_ref())?;
        }
    }
    Ok(())
}

/// Clients end before the broker and the domain that they use.
struct NetworkMeasurement<'a> {
    plan: &'a NetworkPlan,
    ends: Option<CallEnds<'a>>,
    java: Option<JavaClients<'a>>,
    bare: BarePair,
    _broker: KafkaBrokers<'a>,
}

impl NetworkMeasurement<'_> {
    fn lone_calls(&mut self, run: &mut BenchRun<'_>) -> Result<()> {
        run.next("lone calls")?;
        let count = self.plan.lone_calls;
        let warm_up = count / 4;
        self.bare.exchange((LONE_BYTES, 2), 1, warm_up)?;
        let bare = self.bare.exchange((LONE_BYTES, 2), 1, count)?;
        let floor = bare.latencies.floor_row(BARE_ROUND_TRIP, LONE_BYTES as u64).filter(|_| bare.wrong == 0);
        let mut rows = Vec::new();
        if let Some(ends) = &self.ends {
            let (latencies, wrong) = lone_calls(ends, (warm_up, count), run.interrupted)?;
            let mut row = rows::lone_calls(NetworkSystem::Gapless, LONE_BYTES, &latencies, wrong);
            if let Some(floor) = &floor {
                goals::judge_latency(&mut row, floor);
            }
            rows.push(row);
        }
        if let Some(java) = &mut self.java {
            let measured = java.lone_calls(LONE_BYTES, (warm_up, count));
            match peer(run, measured)? {
                Some((latencies, wrong)) => {
                    let mut row = rows::lone_calls(NetworkSystem::Java, LONE_BYTES, &latencies, wrong);
                    floor.iter().for_each(|floor| row.compare_with(floor));
                    rows.push(row);
                }
                None => self.java = None,
            }
        }
        run.report.floor.extend(floor);
        rows.into_iter().for_each(|row| run.add(row, &table::COLUMNS));
        Ok(())
    }

    fn one_size(
        &mut self,
        run: &mut BenchRun<'_>,
        size: (usize, usize),
        published: Option<&PublishedPayload>,
    ) -> Result<()> {
        let (bytes, ways) = size;
        let calls = self.plan.calls(bytes);
        let mut floor = None;
        if bytes <= BARE_BYTES_MAX {
            floor = rows::bare_pair(size, &self.bare.exchange(size, forked_max(bytes), calls * 2)?);
        }
        if let Some(ends) = &mut self.ends {
            let cycles = if published.is_some() { self.plan.cycles } else { self.plan.curve_cycles };
            let mut row = our_cycles(ends, size, (calls, cycles), run.interrupted)?;
            floor.iter().for_each(|floor| row.compare_with(floor));
            if let Some(published) = published {
                let (least, greatest) = published.kafka[ways - 1];
                put(&mut row, "published", json!({ "through": "kafka", "min_per_s": least, "max_per_s": greatest }));
                goals::judge_rate(&mut row, published, greatest);
            }
            run.add(row, &table::COLUMNS);
        }
        if let Some(java) = self.java.as_mut().filter(|_| published.is_some()) {
            let measured = java.cycles(size, (calls, self.plan.java_cycles));
            match peer(run, measured)? {
                Some((cycles, server_ns)) => {
                    let cpu = EndsCpu { server_ns, bridges_ns: None };
                    let mut row = rows::cycles(NetworkSystem::Java, size, &cycles, cpu);
                    floor.iter().for_each(|floor| row.compare_with(floor));
                    run.add(row, &table::COLUMNS);
                }
                None => self.java = None,
            }
        }
        run.report.floor.extend(floor);
        Ok(())
    }
}

/// Turns the failure of a peer into a row, so that the other systems are still measured.
fn peer<T>(run: &mut BenchRun<'_>, measured: Result<T>) -> Result<Option<T>> {
    let error = match measured {
        Ok(measured) => return Ok(Some(measured)),
        Err(error) => error,
    };
    check_interrupted(NAME, run.interrupted)?;
    let mut row = not_measured(rows::peer_config(), &error.to_string());
    row.notes.push(format!("plain Java clients were not measured: {error}"));
    run.add(row, &table::COLUMNS);
    Ok(None)
}

fn lone_calls(
    ends: &CallEnds<'_>,
    (warm_up, count): (u64, u64),
    interrupted: &AtomicBool,
) -> Result<(LatencyHistogram, u64)> {
    let caller = ends.domain.caller::<Vec<u8>, Vec<u8>>(TWO_WAY).map_err(failed)?;
    let payloads = TaggedPayloads::new(LONE_BYTES);
    let (mut latencies, mut wrong) = (LatencyHistogram::default(), 0);
    for number in 0..warm_up + count {
        check_interrupted(NAME, interrupted)?;
        let request = payloads.of(number).to_vec();
        let begun = Instant::now();
        let reply = caller.call_with(request, &CallOptions::default()).map_err(failed)?;
        let took = begun.elapsed();
        wrong += u64::from(reply != payloads.of(number));
        if number >= warm_up {
            latencies.record(took.as_nanos() as u64);
        }
    }
    Ok((latencies, wrong))
}

fn our_cycles(
    ends: &mut CallEnds<'_>,
    (bytes, ways): (usize, usize),
    counts: (u64, (usize, usize)),
    interrupted: &AtomicBool,
) -> Result<Row> {
    let before = ends.cpu_ns()?;
    let cycles = match ways {
        1 => ends.callers.one_way(bytes, counts, interrupted)?,
        _ => ends.callers.two_way(bytes, counts, interrupted)?,
    };
    let after = ends.cpu_ns()?;
    let (calls, (all, _)) = counts;
    let of_call = |at: usize| (after[at] - before[at]) as f64 / (calls * all as u64) as f64;
    let cpu = EndsCpu { server_ns: of_call(0), bridges_ns: Some(of_call(1)) };
    Ok(rows::cycles(NetworkSystem::Gapless, (bytes, ways), &cycles, cpu))
}
