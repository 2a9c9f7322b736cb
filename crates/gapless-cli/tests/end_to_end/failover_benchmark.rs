#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{self, LongRun, processes_of, rows};
use crate::program::names;
use gapless_agent::CountersReader;
use gapless_testkit::wait::until_some;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const EVENTS: [&str; 6] = [
    "leader killed",
    "killed leader restarted",
    "lead transferred",
    "follower killed",
    "killed follower restarted",
    "snapshot on the leader",
];

#[test]
fn every_event_is_measured() {
    let words = [
        "--quick",
        "--log-frames",
        "3000",
        "--rate",
        "400",
        "--behind-frames",
        "2000",
        "--live-rate",
        "500",
        "--plot",
        "out.svg",
    ];
    let (report, table) = bench_process::report("failover", &words, &["out.json", "out.svg"]);
    let of = |row: &Value, key: &str| row["config"][key].as_str().unwrap().to_owned();
    let found: Vec<_> = rows(&report).iter().map(|row| ["members", "event", "phase"].map(|key| of(row, key))).collect();
    let (catch_ups, events): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|[_, event, _]| event == "follower catches up");
    let phases = ["before", "during", "after"];
    let expected = ["full", "witness"].into_iter().flat_map(|members| {
        EVENTS.into_iter().flat_map(move |event| phases.map(|phase| [members, event, phase].map(str::to_owned)))
    });
    assert_eq!(events, expected.collect::<Vec<_>>());
    let cases = ["idle", "live", "saturated"];
    let expected = ["full", "witness"]
        .into_iter()
        .flat_map(|members| cases.map(|case| [members, "follower catches up", case].map(str::to_owned)));
    assert_eq!(catch_ups, expected.collect::<Vec<_>>());
    for row in rows(&report) {
        assert_eq!((&row["lost"], &row["duplicated"], &row["verified"]), (&0.into(), &0.into(), &true.into()), "{row}");
        if of(row, "event") == "follower catches up" {
            is_caught_up(row, &of(row, "phase"));
            continue;
        }
        assert_eq!((&row["config"]["log_frames"], &row["config"]["tier"]), (&3000.into(), &"quorum".into()));
        assert!(row["latency_ns"]["count"].as_u64().unwrap() > 0, "{row}");
        if of(row, "phase") == "during" {
            let [first] = &row["first_new_reply_ns"].as_array().unwrap()[..] else { panic!("once: {row}") };
            let [all] = &row["first_new_reply_of_every_client_ns"].as_array().unwrap()[..] else { panic!("{row}") };
            let (first, all) = (first.as_u64().unwrap(), all.as_u64().unwrap());
            assert!(0 < first && first <= all, "{row}");
            let silence = row["longest_silence_ns"][0].as_u64().unwrap();
            assert!(silence > 0);
            let target_ns = match of(row, "event").as_str() {
                "leader killed" => 100_000_000.into(),
                "lead transferred" => 10_000_000.into(),
                _ => Value::Null,
            };
            assert_eq!(row["target_ns"], target_ns);
            let measured = if of(row, "event") == "lead transferred" { silence } else { all };
            let is_met = target_ns.as_u64().map(|target_ns| measured < target_ns);
            assert_eq!(row["target_met"].as_bool(), is_met);
        }
    }
    assert!(table.contains("A follower catches up") && table.contains("saturated"), "{table}");
    assert!(
        EVENTS.into_iter().all(|event| table.contains(event)) && table.contains("primary + backup + witness"),
        "{table}"
    );
}

fn is_caught_up(row: &Value, case: &str) {
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("no {key}: {row}"));
    assert_eq!(row["config"]["behind_frames"], 2000);
    // The follower may have received some before the first look.
    assert!(number("gap_begin_frames") < 1_000_000.0 && number("elapsed_ns") > 0.0, "{row}");
    let is_saturated = case == "saturated";
    if !is_saturated {
        assert_eq!(number("gap_end_frames"), 0.0, "{row}");
    }
    assert!(case == "idle" || number("commits_before_per_s") > 0.0, "{row}");
    assert_eq!((row.get("commits_kept").is_some(), row.get("target_per_s").is_some()), (is_saturated, !is_saturated));
    assert!(row["target_met"].is_boolean());
}

/// More frames than those that begin a stream and open sessions.
fn log_grows(directory: &Path) -> bool {
    let counters = |member: u32| {
        let place = names(directory).into_iter().find(|name| name.starts_with(".gapless-failover-"))?;
        let path = directory.join(place).join(format!("member-{member}/counters"));
        let counters = CountersReader::open(path).ok()?.read().ok()?;
        counters.into_iter().find(|(label, _)| label == "sequencer.last_sequence").map(|(_, value)| value)
    };
    (1..=3).filter_map(counters).any(|last_sequence| last_sequence > 1_000)
}

#[test]
fn interrupted_run_leaves_nothing() {
    // Ctrl-C reaches the members, too: clients do not wait for them.
    for reaches_members in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let run = LongRun::start(directory.path(), &["failover", "--log-frames", "100000000", "--json", "out.json"]);
        let place = format!("/.gapless-failover-{}-", run.pid().as_raw_nonzero());
        let members = || processes_of(&["failover-member", &place]);
        until_some("three members", || (members().len() == 3).then_some(()));
        until_some("a log that grows", || log_grows(directory.path()).then_some(()));
        let begin = Instant::now();
        kill_process(run.pid(), Signal::INT).unwrap();
        if reaches_members {
            members().into_iter().for_each(|member| kill_process(member, Signal::INT).unwrap_or_default());
        }
        let error = run.end().error(130);
        assert!(error.contains("interrupted"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(members(), []);
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    }
}
