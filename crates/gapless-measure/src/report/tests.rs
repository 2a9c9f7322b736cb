//! The JSON form, key by key.

use serde_json::json;

use super::*;

fn latency() -> LatencyNs {
    LatencyNs { min: 1, mean: 2.5, p50: 900, p90: 4, p99: 5, p99_9: 6, p99_99: 7, max: 8, count: 9 }
}

fn full_row() -> Row {
    Row {
        config: RowConfig {
            program: Some("es".into()),
            mode: Some("latency".into()),
            access: Some("direct".into()),
            encoding: Some("sbe.serial".into()),
            tier: Some("journal".into()),
            cpu: Some("default".into()),
            clustered: Some(false),
            transport: Some("none".into()),
            payload_bytes: Some(180),
            rate_per_s: Some(10_000),
            count: Some(30_000),
            ..RowConfig::default()
        },
        latency_ns: Some(latency()),
        throughput_per_s: Some(10_000.0),
        sent: Some(20_000),
        elapsed_ns: Some(2_000_000_000),
        cpu_ns_per_message: Some(CpuPerMessage { driver: 100.0, service: 200.0 }),
        peak_memory_bytes: Some(1),
        floor_ratio: Some(1.5),
        rate_reached: Some(true),
        verified: Some(true),
        lost: Some(0),
        duplicated: Some(0),
        ..Row::default()
    }
}

#[test]
fn documented_keys_exist() {
    let report = Report {
        benchmark: "canonical".into(),
        commit: Some("abc".into()),
        floor: vec![FloorRow {
            name: "shm_ping_pong".into(),
            payload_bytes: 256,
            p50_ns: Some(580),
            p99_ns: Some(780),
            ..FloorRow::default()
        }],
        rows: vec![full_row()],
        ..Report::default()
    };
    let value: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(
        value,
        json!({
            "benchmark": "canonical", "commit": "abc",
            "environment": {"cpu": "", "cores": 0, "kernel": "", "memory_bytes": 0},
            "floor": [{"name": "shm_ping_pong", "payload_bytes": 256, "p50_ns": 580, "p99_ns": 780}],
            "rows": [{
                "config": {"program": "es", "mode": "latency", "access": "direct", "encoding": "sbe.serial",
                    "tier": "journal", "cpu": "default", "clustered": false, "transport": "none",
                    "payload_bytes": 180, "rate_per_s": 10_000, "count": 30_000},
                "latency_ns": {"min": 1, "mean": 2.5, "p50": 900, "p90": 4, "p99": 5, "p99_9": 6, "p99_99": 7,
                    "max": 8, "count": 9},
                "throughput_per_s": 10_000.0, "sent": 20_000, "elapsed_ns": 2_000_000_000_u64,
                "cpu_ns_per_message": {"driver": 100.0, "service": 200.0}, "peak_memory_bytes": 1,
                "floor_ratio": 1.5, "rate_reached": true, "verified": true, "lost": 0, "duplicated": 0}]
        })
    );
}

#[test]
fn what_was_not_measured_is_absent() {
    let text = serde_json::to_string(&Row::default()).unwrap();
    assert_eq!(text, r#"{"config":{}}"#);
}

#[test]
fn keys_of_a_newer_version_survive() {
    let text =
        r#"{"benchmark":"x","environment":{},"rows":[{"config":{"wait":"spin"},"affinity_warning":"CPU 9"}],"run":7}"#;
    let report = Report::from_json(text).unwrap();
    assert_eq!(report.extra["run"], 7);
    assert_eq!(report.rows[0].extra["affinity_warning"], "CPU 9");
    assert_eq!(report.rows[0].config.extra["wait"], "spin");
    let again = Report::from_json(&report.to_json().unwrap()).unwrap();
    assert_eq!(again, report);
}

#[test]
fn floor_ratio_grows_with_distance() {
    let latency_floor = FloorRow { name: "a".into(), p50_ns: Some(600), ..FloorRow::default() };
    let mut row = full_row();
    row.compare_with(&latency_floor);
    assert_eq!((row.floor_ratio, row.floor_name.as_deref()), (Some(1.5), Some("a")));

    let rate_floor = FloorRow { name: "b".into(), rate_per_s: Some(50e6), ..FloorRow::default() };
    let mut row = Row { throughput_per_s: Some(20e6), ..Row::default() };
    row.compare_with(&rate_floor);
    assert_eq!(row.floor_ratio, Some(2.5));

    let mut row = Row { throughput_per_s: Some(0.0), ..Row::default() };
    row.compare_with(&rate_floor);
    row.compare_with(&latency_floor);
    assert_eq!(row.floor_ratio, None);
}

#[test]
fn nearest_payload_floor_is_found() {
    let floor = |name: &str, payload_bytes| FloorRow { name: name.into(), payload_bytes, ..FloorRow::default() };
    let report = Report { floor: vec![floor("a", 64), floor("b", 200), floor("a", 1024)], ..Report::default() };
    assert_eq!(report.floor_row("a", 256).unwrap().payload_bytes, 64);
    assert_eq!(report.floor_row("c", 256), None);
}

#[test]
fn report_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.json");
    let report = Report::new("time");
    report.write_json(&path).unwrap();
    let read = Report::from_json(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(read, report);
    let missing = directory.path().join("no/out.json");
    assert!(report.write_json(&missing).unwrap_err().to_string().contains("no/out.json"));
}

#[test]
fn configuration_keys_have_values() {
    let config = RowConfig { rate_per_s: Some(5), clustered: Some(true), count: Some(7), ..full_row().config };
    let Value::Object(keys) = serde_json::to_value(&config).unwrap() else { panic!("an object") };
    assert!(keys.len() > 10, "{keys:?}");
    for (key, value) in keys {
        assert_eq!(config.value(&key), value, "{key}");
    }
    assert_eq!(config.value("unknown"), Value::Null);
}

#[test]
fn short_and_interrupted_runs_are_known() {
    let of = |note: &str| Report { notes: vec![note.to_owned()], ..Report::default() };
    assert!(of("interrupted: 6 of 21 rows").is_interrupted() && !of("a floor").is_interrupted());
    assert!(of("a short run: it shows that everything works").is_quick() && !of("a floor").is_quick());
    let with = |line: &str| Report { command_line: Some(line.to_owned()), ..Report::default() };
    assert!(with("gapless bench log --quick").is_quick() && !with("gapless bench log --json quick.json").is_quick());
}
