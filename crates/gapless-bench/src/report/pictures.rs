//! The pictures of each table: curves against size, latency percentiles, failover timelines, growth.

use super::chart::{AxisScale, CurveMark, HtmlChart};
use super::runs::{StoredRun, StoredRuns, config, has_our_load};
use gapless_measure::Row;
use gapless_measure::plot::{Curve, add_point};
use gapless_measure::published::{coralsequencer, endurox, rumi};
use gapless_measure::reporting::{config_number, nines, percentiles};
use serde_json::Value;

#[derive(Default)]
pub(super) struct Pictures<'a> {
    pub(super) html: String,
    pub(super) runs: Vec<&'a StoredRun>,
}

impl<'a> Pictures<'a> {
    fn add(&mut self, run: &'a StoredRun, chart: &HtmlChart) {
        let html = chart.html();
        if !html.is_empty() {
            self.html += &html;
            self.runs.push(run);
        }
    }
}

fn percentile_ticks(percents: &[f64]) -> Vec<(f64, String)> {
    percents.iter().map(|&percent| (nines(percent), format!("{percent} %"))).collect()
}

pub(super) fn rumi(runs: &StoredRuns) -> Pictures<'_> {
    let mut pictures = Pictures::default();
    let is_latency = |row: &Row| {
        row.latency_ns.is_some()
            && is_at_rate(row)
            && row.config.clustered == Some(true)
            && config(row, "tier") == "quorum"
            && config_number(row, "sessions") == Some(1)
    };
    if let Some(run) = runs.newest("canonical", 2, is_latency) {
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_latency(row)) {
            let Some(latency) = row.latency_ns else { continue };
            let name = format!("ours, {} CPU", config(row, "cpu"));
            curves.push((percentiles(name, latency), CurveMark::Line));
            let bare = row.extra.get("bare").and_then(|bare| serde_json::from_value(bare["latency_ns"].clone()).ok());
            if let Some(bare) = bare {
                let name = format!("floor in the same run, {} CPU", config(row, "cpu"));
                curves.push((percentiles(name, bare), CurveMark::Line));
            }
        }
        for row in rumi::LATENCIES.iter().filter(|row| row.access == "direct") {
            let points = [(50.0, row.p50_us), (99.0, row.p99_us), (99.9, row.p99_9_us)];
            let points = points.map(|(percent, us)| (nines(percent), us)).into();
            let name = format!("published, {} CPU, another wire", row.cpu);
            curves.push((Curve { name, points }, CurveMark::Published));
        }
        pictures.add(
            run,
            &HtmlChart {
                title: "Latency of a primary and its backup at 10,000/s, direct access".to_owned(),
                x_label: "percentile",
                y_label: "µs",
                x: AxisScale::Linear,
                y: AxisScale::Logarithmic,
                x_ticks: percentile_ticks(&[50.0, 90.0, 99.0, 99.9]),
                curves,
            },
        );
    }
    timelines(runs, &mut pictures);
    sessions(runs, &mut pictures);
    pictures
}

/// Event sourcing and direct access, SBE, at the published rate.
fn is_at_rate(row: &Row) -> bool {
    config(row, "program") == "es"
        && config(row, "encoding") == "sbe.serial"
        && config(row, "access") == "direct"
        && row.config.rate_per_s == Some(rumi::LATENCY_RATE_PER_S)
}

fn timelines<'a>(runs: &'a StoredRuns, pictures: &mut Pictures<'a>) {
    let timelines = |run: &'a StoredRun| run.report.extra.get("timelines").and_then(Value::as_array);
    let has_timelines =
        |run: &&StoredRun| run.report.extra.get("timelines").is_some_and(|all| all[0]["events"].is_array());
    let Some(run) = runs.all().iter().find(has_timelines) else { return };
    let full = timelines(run).into_iter().flatten().find(|timeline| timeline["members"] == "full");
    let Some(events) = full.and_then(|timeline| timeline["events"].as_array()) else { return };
    let titles = [
        ("leader killed", "kill -9 of the leader of three members at 0 ms"),
        ("lead transferred", "The lead is transferred at 0 ms"),
    ];
    for (event, title) in titles {
        let happenings = events.iter().find(|found| found["event"] == event);
        let happenings = happenings.and_then(|event| event["happenings"].as_array());
        let curves = happenings.into_iter().flatten().enumerate().map(|(number, happening)| {
            let name = format!("repetition {}", number + 1);
            (Curve { name, points: waits(happening) }, CurveMark::Dots)
        });
        let chart = HtmlChart {
            title: format!("{title}: longest wait for a reply within 10 ms"),
            x_label: "ms since the event",
            y_label: "ms",
            x: AxisScale::Linear,
            y: AxisScale::Logarithmic,
            x_ticks: Vec::new(),
            curves: curves.collect(),
        };
        pictures.add(run, &chart);
    }
}

fn waits(happening: &Value) -> Vec<(f64, f64)> {
    let numbers = |key: &str| {
        let text = happening[key].as_str().unwrap_or_default();
        text.split(' ').map_while(|number| number.parse::<f64>().ok()).collect::<Vec<_>>()
    };
    let points = numbers("at_ms").into_iter().zip(numbers("latency_max_us"));
    points.filter(|(at_ms, _)| (-200.0..=400.0).contains(at_ms)).map(|(at_ms, us)| (at_ms, us / 1e3)).collect()
}

fn sessions<'a>(runs: &'a StoredRuns, pictures: &mut Pictures<'a>) {
    for (clustered, title) in [(false, "one node"), (true, "a primary and its backup")] {
        let is_of = |row: &Row| row.config.clustered == Some(clustered) && row.latency_ns.is_some() && is_at_rate(row);
        let has_growth = |run: &&StoredRun| {
            let counts = run.sound_rows().filter(|row| is_of(row)).filter_map(|row| config_number(row, "sessions"));
            run.report.benchmark == "canonical" && counts.collect::<std::collections::BTreeSet<_>>().len() > 1
        };
        let Some(run) = runs.all().iter().find(has_growth) else { continue };
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_of(row)) {
            let (Some(sessions), Some(latency)) = (config_number(row, "sessions"), row.latency_ns) else { continue };
            for (name, ns) in [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99)] {
                let name = format!("{name}, {} CPU, {}", config(row, "cpu"), config(row, "tier"));
                add_point(&mut curves, name, (sessions as f64, ns as f64 / 1e3));
            }
        }
        let chart = HtmlChart {
            title: format!("Growth with sessions: {title} at 10,000/s"),
            x_label: "sessions",
            y_label: "µs",
            x: AxisScale::Logarithmic,
            y: AxisScale::Logarithmic,
            x_ticks: Vec::new(),
            curves: lines(curves),
        };
        pictures.add(run, &chart);
    }
}

fn lines(curves: Vec<Curve>) -> Vec<(Curve, CurveMark)> {
    let curves = curves.into_iter().filter(|curve| curve.points.len() > 1);
    curves
        .map(|mut curve| {
            curve.points.sort_by(|one, other| one.0.total_cmp(&other.0));
            (curve, CurveMark::Line)
        })
        .collect()
}

pub(super) fn coralsequencer(runs: &StoredRuns) -> Pictures<'_> {
    let mut pictures = Pictures::default();
    let is_slices = |row: &Row| row.config.payload_bytes == Some(1024) && row.extra.contains_key("slices");
    if let Some(run) = runs.newest("sequencer", 1, is_slices) {
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_slices(row)) {
            let slices = row.extra.get("slices").and_then(Value::as_array).into_iter().flatten();
            let point = |slice: &Value| Some((nines(slice["percent"].as_f64()?), slice["greatest_ns"].as_f64()? / 1e3));
            curves.push((
                Curve { name: format!("ours, {}", transport(row)), points: slices.filter_map(point).collect() },
                CurveMark::Line,
            ));
        }
        let published = coralsequencer::latency_of(1024).and_then(|latency| latency.rest);
        if let Some(slices) = published {
            let points = coralsequencer::PERCENTS.into_iter().zip(slices.greatest_ns);
            let points = points.map(|(percent, ns)| (nines(percent), ns as f64 / 1e3)).collect();
            curves.push((Curve { name: "published, UDP".to_owned(), points }, CurveMark::Published));
        }
        pictures.add(
            run,
            &HtmlChart {
                title: "Round trip of 1,024 B: greatest of the fastest part of all".to_owned(),
                x_label: "fastest part of all messages",
                y_label: "µs",
                x: AxisScale::Linear,
                y: AxisScale::Logarithmic,
                x_ticks: percentile_ticks(&coralsequencer::PERCENTS),
                curves,
            },
        );
    }
    let is_rate = |row: &Row| config(row, "mode") == "throughput" && row.throughput_per_s.is_some();
    if let Some(run) = runs.newest("sequencer", 2, is_rate) {
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_rate(row)) {
            let batching = match config(row, "batch_node").as_str() {
                "true" => ", batched",
                "false" => ", one per packet",
                _ => "",
            };
            let (Some(bytes), Some(rate)) = (row.config.payload_bytes, row.throughput_per_s) else { continue };
            add_point(&mut curves, format!("ours, {}{batching}", transport(row)), (bytes as f64, rate));
        }
        let mut curves: Vec<_> = lines(curves);
        for batch in [true, false] {
            let rates = coralsequencer::RATES.iter().filter(|rate| rate.batch == batch);
            let points = rates.map(|rate| (rate.payload_bytes as f64, rate.sequencer_per_s as f64)).collect();
            let name = if batch { "published, batched" } else { "published, one per packet" };
            curves.push((Curve { name: name.to_owned(), points }, CurveMark::Published));
        }
        pictures.add(
            run,
            &by_size("Three nodes push: messages a second through the sequencer", "messages a second", curves),
        );
    }
    pictures
}

fn transport(row: &Row) -> String {
    match config_number(row, "mtu_bytes") {
        Some(mtu) => format!("{}, MTU {mtu}", config(row, "transport")),
        None => config(row, "transport"),
    }
}

fn by_size(title: &str, y_label: &'static str, curves: Vec<(Curve, CurveMark)>) -> HtmlChart {
    let sizes = [1_u32, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];
    let name = |bytes: u32| match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    };
    HtmlChart {
        title: title.to_owned(),
        x_label: "bytes of a message",
        y_label,
        x: AxisScale::Logarithmic,
        y: AxisScale::Logarithmic,
        x_ticks: sizes.into_iter().map(|bytes| (f64::from(bytes), name(bytes))).collect(),
        curves,
    }
}

pub(super) fn endurox(runs: &StoredRuns) -> Pictures<'_> {
    let mut pictures = Pictures::default();
    let is_one_caller = |row: &Row| config_number(row, "connected") == Some(1) && row.throughput_per_s.is_some();
    let is_call = |row: &Row| is_one_caller(row) && config_number(row, "in_flight") == Some(1);
    let is_one_way = |row: &Row| is_one_caller(row) && config(row, "mode") == "one_way";
    let size_curves = |run: &StoredRun, is_of: &dyn Fn(&Row) -> bool| {
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_of(row) && config(row, "waiting") == "blocking") {
            if let (Some(bytes), Some(rate)) = (row.config.payload_bytes, row.throughput_per_s) {
                add_point(&mut curves, system(row), (bytes as f64, rate));
            }
        }
        for row in run.sound_rows().filter(|row| is_of(row) && config(row, "system") == "gapless") {
            if let (Some(bytes), Some(rate), "spinning") =
                (row.config.payload_bytes, row.throughput_per_s, config(row, "waiting").as_str())
            {
                add_point(&mut curves, "Gapless, spinning".to_owned(), (bytes as f64, rate));
            }
        }
        lines(curves)
    };
    if let Some(run) = runs.newest_curve("rpc curve", is_call) {
        let mut curves = size_curves(run, &is_call);
        for (name, points) in
            [("published, Enduro/X", &endurox::CURVE[..]), ("published, RabbitMQ", &endurox::RABBITMQ_CURVE[..])]
        {
            let points = points.iter().map(|point| (point.payload_bytes as f64, point.calls_per_s as f64)).collect();
            curves.push((Curve { name: name.to_owned(), points }, CurveMark::Published));
        }
        pictures.add(run, &by_size("One call after the other, asleep between calls", "calls a second", curves));
        if let Some(run) = runs.newest_curve("rpc curve", is_one_way) {
            let curves = size_curves(run, &is_one_way);
            pictures.add(run, &by_size("One way, asleep when there is nothing", "messages a second", curves));
        }
    }
    let is_crowd = |row: &Row| config_number(row, "connected").is_some_and(|callers| callers > 1);
    if let Some(run) = runs.newest("rpc curve", 2, is_crowd) {
        let of_size = |row: &&Row| {
            row.config.payload_bytes == Some(256)
                && config_number(row, "in_flight") == Some(1)
                && config(row, "waiting") == "blocking"
        };
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(of_size) {
            if let (Some(callers), Some(rate)) = (config_number(row, "connected"), row.throughput_per_s) {
                add_point(&mut curves, system(row), (callers as f64, rate));
            }
        }
        let chart = HtmlChart {
            title: "Growth with connected callers: calls of 256 B, one after the other".to_owned(),
            x_label: "callers connected",
            y_label: "calls a second",
            x: AxisScale::Logarithmic,
            y: AxisScale::Logarithmic,
            x_ticks: [1, 4, 16, 64, 256].map(|callers| (f64::from(callers), callers.to_string())).into(),
            curves: lines(curves),
        };
        pictures.add(run, &chart);
    }
    pictures
}

fn system(row: &Row) -> String {
    match (config(row, "system").as_str(), config(row, "acknowledgement").as_str()) {
        ("gapless", _) => "Gapless, asleep".to_owned(),
        ("rabbitmq", "automatic") => "RabbitMQ, automatic".to_owned(),
        ("rabbitmq", _) => "RabbitMQ, explicit".to_owned(),
        ("nats", _) => "NATS".to_owned(),
        (other, _) => other.to_owned(),
    }
}

pub(super) fn mercury(runs: &StoredRuns) -> Pictures<'_> {
    let mut pictures = Pictures::default();
    let is_curve =
        |row: &Row| row.config.payload_bytes.is_some_and(u64::is_power_of_two) && !config(row, "ends").is_empty();
    if let Some(run) = runs.newest_curve("rpc payloads", is_curve) {
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_curve(row)) {
            let bytes_per_s = row.extra.get("bytes_per_s").and_then(Value::as_f64);
            let (Some(bytes), Some(bytes_per_s)) = (row.config.payload_bytes, bytes_per_s) else { continue };
            let name = format!("{}, {}", config(row, "ends"), config(row, "mode").replace('_', " "));
            add_point(&mut curves, name, (bytes as f64, bytes_per_s));
        }
        let floor = run.report.floor.iter().filter(|row| row.payload_bytes.is_power_of_two());
        for row in floor {
            if let Some(bytes_per_s) = row.bytes_per_s {
                add_point(&mut curves, "floor: one cold copy".to_owned(), (row.payload_bytes as f64, bytes_per_s));
            }
        }
        pictures.add(run, &by_size("Bytes a second in all directions against size", "bytes a second", lines(curves)));
    }
    if let Some(run) = runs.newest_curve("network", is_curve) {
        let mut curves = Vec::new();
        for row in run.sound_rows().filter(|row| is_curve(row)) {
            let bytes_per_s = row.extra.get("bytes_per_s").and_then(Value::as_f64);
            let (Some(bytes), Some(bytes_per_s)) = (row.config.payload_bytes, bytes_per_s) else { continue };
            let way = config(row, "mode").replace('_', " ");
            add_point(&mut curves, format!("calls, {way}"), (bytes as f64, bytes_per_s));
            if let Some(ratio) = row.floor_ratio {
                add_point(&mut curves, format!("bare clients, {way}"), (bytes as f64, bytes_per_s * ratio));
            }
        }
        let title = "Bytes a second in all directions over Kafka against size";
        pictures.add(run, &by_size(title, "bytes a second", lines(curves)));
    }
    let is_probe = |row: &Row| row.latency_ns.is_some();
    if let Some(run) = runs.newest("rpc scenarios", 2, is_probe) {
        let curves = run
            .sound_rows()
            .filter_map(|row| Some((percentiles(row.config.name.clone()?, row.latency_ns?), CurveMark::Line)));
        let chart = HtmlChart {
            title: "A lone call of another route during a flood".to_owned(),
            x_label: "percentile",
            y_label: "µs",
            x: AxisScale::Linear,
            y: AxisScale::Logarithmic,
            x_ticks: percentile_ticks(&[50.0, 90.0, 99.0, 99.9]),
            curves: curves.collect(),
        };
        pictures.add(run, &chart);
    }
    pictures
}

pub(super) fn axon(runs: &StoredRuns) -> Pictures<'_> {
    let mut pictures = Pictures::default();
    let is_rate = |row: &Row| config(row, "mode") == "throughput" && config_number(row, "aggregates").is_some();
    let Some(run) = runs.newest("commands", 4, is_rate) else { return pictures };
    let name = |row: &Row| match row.config.name.as_deref() {
        Some(name) => name.replacen('a', "A", 1),
        None => format!("Gapless, {}, {}", config(row, "drive"), config(row, "tier")),
    };
    let (mut sizes, mut aggregates) = (Vec::new(), Vec::new());
    for row in
        run.sound_rows().filter(|row| is_rate(row) && config(row, "identifiers") == "position" && has_our_load(row))
    {
        let (Some(rate), Some(count)) = (row.throughput_per_s, config_number(row, "aggregates")) else { continue };
        let bytes = row.config.payload_bytes.unwrap_or(0);
        if config(row, "encoding") == "serde" {
            continue;
        }
        if count == 1 {
            add_point(&mut sizes, name(row), (bytes as f64, rate));
        }
        if bytes == 0 {
            add_point(&mut aggregates, name(row), (count as f64, rate));
        }
    }
    let sizes = HtmlChart {
        title: "Commands a second against the text in command and event".to_owned(),
        x_label: "bytes of the text, next to an amount of 8 bytes",
        y_label: "commands a second",
        x: AxisScale::Linear,
        y: AxisScale::Linear,
        x_ticks: Vec::new(),
        curves: lines(sizes),
    };
    pictures.add(run, &sizes);
    let scale = runs.newest("commands", 1, |row| config(row, "mode") == "scale");
    for row in scale.into_iter().flat_map(StoredRun::sound_rows) {
        let is_filling = config(row, "mode") == "scale" && config(row, "what").starts_with("commands");
        let point = row.throughput_per_s.zip(config_number(row, "aggregates")).filter(|_| is_filling);
        if let Some((rate, count)) = point {
            add_point(&mut aggregates, name(row), (count as f64, rate));
        }
    }
    let aggregates = HtmlChart {
        title: "Growth with aggregates, identifiers by position".to_owned(),
        x_label: "aggregates",
        y_label: "commands a second",
        x: AxisScale::Logarithmic,
        y: AxisScale::Logarithmic,
        x_ticks: Vec::new(),
        curves: lines(aggregates),
    };
    pictures.add(run, &aggregates);
    pictures.runs.extend(scale);
    pictures
}
