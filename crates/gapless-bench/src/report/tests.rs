//! The page: escaping, missing and damaged runs, and the committed one.

use super::*;
use serde_json::{Value, json};

const ENVIRONMENT: &str = r#"{"cpu":"a CPU","cores":2,"kernel":"6","memory_bytes":1073741824}"#;

fn folder(files: &[(&str, &Value)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value.to_string()).unwrap();
    }
    folder
}

fn report(benchmark: &str, rows: &Value) -> Value {
    let environment: Value = serde_json::from_str(ENVIRONMENT).unwrap();
    json!({ "benchmark": benchmark, "environment": environment, "rows": rows })
}

fn page_of(folder: &tempfile::TempDir) -> String {
    page(&StoredRuns::read(&[folder.path().to_owned()]).unwrap())
}

fn call(system: &str, rate: f64, acknowledgement: Value) -> Value {
    let config = json!({ "mode": "call", "payload_bytes": 1, "connected": 1, "in_flight": 1, "system": system,
        "waiting": "blocking", "acknowledgement": acknowledgement });
    json!({ "config": config, "throughput_per_s": rate, "verified": true })
}

fn check_nesting(page: &str) {
    let void = ["meta", "br", "path", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag has an end");
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !void.contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn hostile_strings_are_escaped() {
    let hostile = "<script>alert('x')</script>\" onload=\"x&y\u{0}\n";
    let mut run = report("rpc curve", &json!([call("gapless", 1e6, Value::Null)]));
    run["command_line"] = json!(hostile);
    run["commit"] = json!(hostile);
    run["environment"]["cpu"] = json!(hostile);
    for key in ["tier", "name", "transport"] {
        run["rows"][0]["config"][key] = json!(hostile);
    }
    run["rows"][0]["floor_name"] = json!(hostile);
    run["rows"][0]["floor_ratio"] = json!(2.0);
    run["timelines"] = json!([{ "members": "full", "events": [{ "event": hostile, "happenings": hostile }] }]);
    let page = page_of(&folder(&[("<img src=x>/a&b.json", &run)]));
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("onload=\"") && !page.contains('\0'));
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot; onload=&quot;x&amp;y\u{fffd}"));
    check_nesting(&page);
}

#[test]
fn wins_losses_and_gaps_are_worded() {
    let rows = json!([call("gapless", 20_000.0, Value::Null), call("rabbitmq", 30_000.0, json!("automatic"))]);
    let page = page_of(&folder(&[("2026-11-29/curve.json", &report("rpc curve", &rows))]));
    let row = page.lines().find(|line| line.contains("call, 1 B<")).unwrap();
    for expected in ["about 40,000/s", "20,000/s", ">behind<", "0.50 ×", "30,000/s", "behind 0.67 ×", ">yes<"] {
        assert!(row.contains(expected), "{expected} is missing in {row}");
    }
    assert!(page.contains("call, 1 B, explicit acknowledgement") && page.contains("6.67 ×"), "RabbitMQ had 3,000");
    let nobody = page.lines().find(|line| line.contains("persistent queue")).unwrap();
    assert!(nobody.contains(">not measured<") && nobody.contains("1,791/s"), "{nobody}");
    assert!(page.contains("commit not recorded") && page.contains("2026-11-29"));
    check_nesting(&page);
}

#[test]
fn summary_has_ten_lines() {
    let rows = json!([call("gapless", 20_000.0, Value::Null), call("nats", 30_000.0, Value::Null)]);
    for rows in [json!([]), rows] {
        let page = page_of(&folder(&[("curve.json", &report("rpc curve", &rows))]));
        let summary = page.split("<ol class=\"summary\">").nth(1).unwrap().split("</ol>").next().unwrap();
        assert_eq!(summary.matches("<li>").count(), 10);
        assert_eq!(summary.contains("1 behind</span> at call, 1 B, asleep 0.67 ×"), rows != json!([]), "{summary}");
    }
}

#[test]
fn cpu_time_of_each_process_is_shown() {
    let with_cpu = |mut row: Value, cpu: Value| {
        row["cpu_ns_per_call"] = cpu;
        row
    };
    let ours = with_cpu(call("gapless", 20_000.0, Value::Null), json!({ "client": 9_600, "server": 9_500 }));
    let cpu = json!({ "client": 30_000, "server": 40_000, "broker": 210_000 });
    let explicit = with_cpu(call("rabbitmq", 3_000.0, json!("explicit")), cpu);
    let rows = json!([ours, explicit, call("rabbitmq", 4_000.0, json!("automatic"))]);
    let page = page_of(&folder(&[("curve.json", &report("rpc curve", &rows))]));
    let row = page.lines().find(|line| line.contains("9.60 + 9.50")).unwrap();
    assert!(row.contains("30.0 + 40.0 + 210") && row.contains("4,000"), "{row}");
}

#[test]
fn missed_and_failed_rows_are_no_result() {
    let mut row = json!({ "config": { "program": "es", "mode": "latency", "access": "direct", "encoding": "sbe.serial",
        "tier": "quorum", "clustered": true, "transport": "tcp", "cpu": "max", "rate_per_s": 10000, "sessions": 1 },
        "latency_ns": { "min": 1, "mean": 2.0, "p50": 3, "p90": 4, "p99": 5, "p99_9": 6, "p99_99": 7, "max": 8, "count": 9 } });
    for (key, words) in [("rate_reached", "missed its rate"), ("verified", "check failed")] {
        row[key] = json!(false);
        let page = page_of(&folder(&[("canonical.json", &report("canonical", &json!([row])))]));
        assert!(page.contains(&format!("<td class=\"v missed\">{words}</td>")), "{words}");
        assert!(!page.contains("<td class=\"v ahead\">ahead, another wire"));
    }
}

#[test]
fn newest_run_answers() {
    let run = |rate: f64| report("rpc curve", &json!([call("gapless", rate, Value::Null)]));
    let (old, new, undated) = (run(111.0), run(222.0), run(333.0));
    let folder =
        folder(&[("2026-11-28/curve.json", &old), ("2026-11-29/curve.json", &new), ("z/curve.json", &undated)]);
    let page = page_of(&folder);
    assert!(page.contains("222/s") && !page.contains("111/s") && !page.contains("333/s"));
    let named = StoredRuns::read(&[folder.path().join("2026-11-28/curve.json")]).unwrap();
    assert!(super::page(&named).contains("111/s"));
}

#[test]
fn damaged_files_are_named() {
    let folder = folder(&[("good.json", &report("log", &json!([])))]);
    let refused = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let error = StoredRuns::read(&[folder.path().to_owned()]).err().expect("an error").to_string();
        std::fs::remove_file(path).unwrap();
        assert!(error.contains(name) && error.lines().count() == 1, "{error}");
        error
    };
    assert!(refused("empty.json", b"").contains("no report of a benchmark"));
    refused("cut.json", br#"{"benchmark":"log","environment":{"cpu":"#);
    refused("list.json", b"[]");
    refused("other.json", br#"{"name":"package"}"#);
    refused("bytes.json", b"\xff\xfe{}");
    refused("types.json", br#"{"benchmark":"log","environment":{},"rows":[{"config":{"payload_bytes":"many"}}]}"#);
    let missing = StoredRuns::read(&[folder.path().join("missing")]).err().unwrap().to_string();
    assert!(missing.contains("missing"), "{missing}");
    let empty = tempfile::tempdir().unwrap();
    let error = StoredRuns::read(&[empty.path().to_owned()]).err().unwrap();
    assert!(error.is_about_options() && error.to_string().contains("no JSON of a benchmark"));
}

#[test]
fn unknown_benchmark_is_a_warning() {
    let (unknown, known) = (report("weather\u{1b}[1m", &json!([])), report("log", &json!([])));
    let runs = StoredRuns::read(&[folder(&[("a.json", &unknown), ("b.json", &known)]).path().to_owned()]).unwrap();
    assert_eq!(runs.all().len(), 1);
    assert!(runs.warnings()[0].contains("a.json") && runs.warnings()[0].contains("weather\\u{1b}[1m"));
}

#[test]
fn rows_without_figures_are_passed_over() {
    let rows = json!([{ "config": {} }, { "config": { "mode": "call", "system": "gapless" } },
        { "config": { "mode": "throughput", "aggregates": 1, "identifiers": "position" }, "throughput_per_s": 0.0 },
        { "config": { "mode": "latency", "payload_bytes": 1024 }, "slices": [{}, 7], "roles": "none", "bare": 3 }]);
    let files: Vec<_> = [
        "rpc curve",
        "network",
        "rpc payloads",
        "rpc scenarios",
        "rpc faults",
        "commands",
        "sequencer",
        "failover",
        "canonical",
        "supervisor",
        "serialization",
    ]
    .iter()
    .map(|name| (format!("{name}.json"), report(name, &rows)))
    .collect();
    let files: Vec<_> = files.iter().map(|(name, value)| (name.as_str(), value)).collect();
    check_nesting(&page_of(&folder(&files)));
}

#[test]
fn output_is_a_file() {
    let folder = folder(&[("log.json", &report("log", &json!([])))]);
    let output = folder.path().join("page.html");
    let arguments = ReportArguments { from: vec![folder.path().to_owned()], output: output.clone() };
    let (text, warnings) = run(&arguments).unwrap();
    assert!(text.contains("page.html") && text.contains("1 runs") && warnings.is_empty());
    check_nesting(&std::fs::read_to_string(output).unwrap());
    let read = folder.path().join("log.json");
    let over_a_run = ReportArguments { output: read.clone(), ..arguments.clone() };
    assert!(run(&over_a_run).unwrap_err().to_string().contains("one of the files that are read"));
    assert!(std::fs::read_to_string(read).unwrap().contains("benchmark"));
    let link = folder.path().join("link.html");
    std::fs::hard_link(folder.path().join("log.json"), &link).unwrap();
    let over_a_link = ReportArguments { output: link, ..arguments.clone() };
    assert!(run(&over_a_link).unwrap_err().to_string().contains("one of the files that are read"));
    let as_json = ReportArguments { output: folder.path().join("page.json"), ..arguments.clone() };
    assert!(run(&as_json).unwrap_err().to_string().contains("would read it as JSON"));
    let nowhere = ReportArguments { output: folder.path().join("gone/page.html"), ..arguments };
    assert!(run(&nowhere).unwrap_err().to_string().contains("gone/page.html"));
}

#[test]
fn only_files_are_read() {
    let folder = folder(&[("log.json", &report("log", &json!([])))]);
    let refused = |name: &str| {
        let error = StoredRuns::read(&[folder.path().to_owned()]).err().unwrap().to_string();
        assert!(error.contains(name) && error.contains("it is no file"), "{error}");
        std::fs::remove_file(folder.path().join(name)).unwrap();
    };
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.json")).unwrap();
    refused("zero.json");
    assert!(std::process::Command::new("mkfifo").arg(folder.path().join("pipe.json")).status().unwrap().success());
    refused("pipe.json");
    let endless = StoredRuns::read(&["/dev/zero".into()]).err().unwrap().to_string();
    assert!(endless.contains("/dev/zero") && endless.contains("longer than 64 MiB"), "{endless}");
}

#[test]
fn nearest_dated_folder_is_used() {
    let value = report("log", &json!([]));
    let names = ["2026-11-29/a.json", "2026-11-28/tcp/b.json", "9999-99-99/c.json"];
    let folder = folder(&names.map(|name| (name, &value)));
    let linked = folder.path().join("latest");
    std::os::unix::fs::symlink(folder.path().join("2026-11-29"), &linked).unwrap();
    let date = |path: &str| StoredRuns::read(&[folder.path().join(path)]).unwrap().all()[0].date.clone();
    for (path, expected) in [
        ("latest", Some("2026-11-29")),
        ("latest/a.json", Some("2026-11-29")),
        ("2026-11-28/tcp", Some("2026-11-28")),
        ("9999-99-99", None),
    ] {
        assert_eq!(date(path).as_deref(), expected, "{path}");
    }
}

fn line_of<'a>(page: &'a str, words: &str) -> &'a str {
    page.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is missing"))
}

fn row_of<'a>(page: &'a str, words: &str) -> &'a str {
    let mut rows = page.lines().filter(|line| line.starts_with("<tr>"));
    rows.find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is missing"))
}

#[test]
fn failed_row_has_no_other_result() {
    let mut ours = json!({ "config": { "mode": "one_way", "payload_bytes": 1, "connected": 1, "system": "gapless",
        "waiting": "blocking" }, "throughput_per_s": 9e6, "verified": true });
    let mut peer = ours.clone();
    peer["config"]["system"] = json!("rabbitmq");
    peer["config"]["acknowledgement"] = json!("explicit");
    peer["throughput_per_s"] = json!(1e6);
    let page = |ours: &Value| page_of(&folder(&[("c.json", &report("rpc curve", &json!([ours, peer])))]));
    assert!(row_of(&page(&ours), "one way, small messages").contains(">9.0 ×<"));
    ours["verified"] = json!(false);
    let page = page(&ours);
    let row = row_of(&page, "one way, small messages");
    assert!(row.contains("check failed") && !row.contains("ahead"), "{row}");
}

#[test]
fn outage_without_an_end_is_shown() {
    let row = json!({ "config": { "event": "leader killed", "members": "full" }, "verified": true, "lost": 0, "duplicated": 0,
        "first_new_reply_ns": [1_000_000, 1_000_000], "longest_silence_ns": [2_000_000, 3_000_000],
        "first_new_reply_of_every_client_ns": [4_000_000, 6_000_000] });
    let mut never = row.clone();
    never["config"]["members"] = json!("witness");
    never["first_new_reply_of_every_client_ns"] = json!([4_000_000, null, 5_000_000]);
    never.as_object_mut().unwrap().remove("lost");
    let page = page_of(&folder(&[("f.json", &report("failover", &json!([row, never])))]));
    let (whole, cut) = (row_of(&page, "three members<"), row_of(&page, "primary, backup, witness<"));
    assert!(whole.contains(">5.00 ms<") && whole.contains(">6.00 ms<") && whole.contains(">3.00 ms<"), "{whole}");
    assert!(whole.contains(">0, 0<") && !whole.contains("1.00 ms"), "{whole}");
    assert!(cut.contains(">3<") && cut.contains(">5.00 ms<") && cut.contains(">never<"), "{cut}");
    assert!(cut.contains(">–, 0<"), "{cut}");
}

#[test]
fn each_run_has_its_letter() {
    let run = |commit: &str, row: Value| {
        let mut run = report("rpc curve", &json!([row]));
        run["commit"] = json!(commit);
        run
    };
    let ours = call("gapless", 111.0, Value::Null);
    let mut larger = ours.clone();
    larger["config"]["payload_bytes"] = json!(4096);
    let (one, other) = (run("first", ours), run("second", larger));
    let folder = folder(&[("a/2026-11-29/c.json", &one), ("b/2026-11-29/c.json", &other)]);
    let twice = [folder.path().to_owned(), folder.path().join("a/../a/2026-11-29/c.json")];
    let runs = StoredRuns::read(&twice).unwrap();
    assert_eq!(runs.all().len(), 2, "a file is read once");
    let page = page(&runs);
    for commit in ["commit first", "commit second"] {
        assert_eq!(page.matches(commit).count(), 2, "{commit}: in its section and in the list");
    }
}

#[test]
fn short_or_interrupted_run_is_marked() {
    let run = |rate: f64, note: &str| {
        let mut run = report("rpc curve", &json!([call("gapless", rate, Value::Null)]));
        run["notes"] = json!([note]);
        run
    };
    let (whole, short) = (run(111.0, "interrupted: 1 of 2 rows"), run(222.0, "a short run: it shows no figure"));
    let page = page_of(&folder(&[("2026-11-28/c.json", &whole), ("2026-11-29/c.json", &short)]));
    assert!(row_of(&page, "call, 1 B<").contains("111/s"), "the older run is whole");
    let list = page.split("Every run that was read").last().unwrap();
    assert!(list.contains(">interrupted<") && list.contains(">short<"), "{list}");
    assert!(page.contains("<span class=\"v missed\">interrupted</span>"));
}

#[test]
fn summary_counts_add_up() {
    let mut missed = call("gapless", 5.0, Value::Null);
    missed["config"]["rate_per_s"] = json!(1000);
    missed["rate_reached"] = json!(false);
    let (mut failed, mut unchecked) = (call("nats", 5.0, Value::Null), call("nats", 6.0, Value::Null));
    failed["verified"] = json!(false);
    unchecked.as_object_mut().unwrap().remove("verified");
    let rows = json!([call("gapless", 5.0, Value::Null), missed, failed, unchecked, unchecked]);
    let page = page_of(&folder(&[("c.json", &report("rpc curve", &rows))]));
    let counts = line_of(&page, "rows in 1 files");
    for words in ["5 rows", "1 verified, 2 without a check", "1 failed a check", "1 missed their rate"] {
        assert!(counts.contains(words), "{words}: {counts}");
    }
}

#[test]
fn direct_access_is_divided_by_indirect() {
    let row = |access: &str, encoding: &str, rate: f64| {
        json!({ "config": { "program": "es", "mode": "throughput", "access": access, "encoding": encoding, "tier": "quorum",
            "clustered": true, "transport": "tcp", "cpu": "min" }, "throughput_per_s": rate, "verified": true })
    };
    let rows = json!([row("direct", "sbe.serial", 900.0), row("indirect", "sbe.random", 200.0)]);
    let page = page_of(&folder(&[("c.json", &report("canonical", &rows))]));
    let claim = row_of(&page, "throughput of direct access by that of indirect access");
    assert!(claim.contains(">4.5 ×<") && claim.contains(">1.50 ×<") && claim.contains("min CPU"), "{claim}");
    let alone = page_of(&folder(&[("c.json", &report("canonical", &json!([rows[0]])))]));
    assert!(row_of(&alone, "throughput of direct access by that").contains("not measured"));
}

#[test]
fn remarks_are_not_counted() {
    let row = json!({ "config": { "name": "parallel 1→50", "callers": 1, "in_flight": 64 },
        "throughput_per_s": 99_999.0, "verified": true });
    let page = page_of(&folder(&[("p.json", &report("rpc scenarios", &json!([row])))]));
    let many = row_of(&page, "one by one 1→50");
    assert!(many.contains("not compared: 64 in flight") && many.contains("99,999/s") && !many.contains("ahead"));
    let first = line_of(&page, "published figures, 0 comparisons");
    assert!(first.contains(&format!("{} figures not measured", gapless_measure::published::facts().len())), "{first}");
}

#[test]
fn rates_of_the_sequencer_have_a_floor() {
    let row = json!({ "config": { "mode": "throughput", "transport": "multicast", "payload_bytes": 64, "nodes": 3,
        "batch_node": true, "batch_sequencer": true }, "throughput_per_s": 1e6, "verified": true });
    let mut run = report("sequencer", &json!([row]));
    let floor =
        |bytes_per_s: f64| json!({ "name": "sequential_write", "payload_bytes": 1048576, "bytes_per_s": bytes_per_s });
    run["floor"] = json!([floor(128e6), floor(512e6), floor(256e6)]);
    let page = page_of(&folder(&[("s.json", &run)]));
    let row = row_of(&page, "64 B, batched, messages through the sequencer");
    assert!(row.contains("2,000,000/s<br><small>sequential write") && row.contains(">2.00<"), "{row}");
}

#[test]
fn call_rate_has_no_median_floor() {
    let mut row = call("gapless", 47_000.0, Value::Null);
    row["latency_ns"] = json!({ "min": 1, "mean": 2.0, "p50": 20_000, "p90": 4, "p99": 5, "p99_9": 6, "p99_99": 7, "max": 8, "count": 9 });
    row["floor_ratio"] = json!(0.63);
    row["floor_name"] = json!("futex_round_trip");
    let mut run = report("rpc curve", &json!([row]));
    run["floor"] = json!([{ "name": "futex_round_trip", "payload_bytes": 0, "p50_ns": 33_000 }]);
    let page = page_of(&folder(&[("c.json", &run)]));
    let row = row_of(&page, "call, 1 B<");
    assert!(row.contains("class=\"n\"><small>futex round trip</small><") && row.contains(">0.63<"), "{row}");
}

#[test]
fn cpu_is_compared_with_peers() {
    let with_cpu = |system: &str, rate: f64, ns: f64, acknowledgement: Value| {
        let mut row = call(system, rate, acknowledgement);
        row["cpu_ns_per_call"] = json!({ "client": ns });
        row
    };
    let rows = json!([
        with_cpu("gapless", 50_000.0, 20_000.0, Value::Null),
        with_cpu("rabbitmq", 4_000.0, 225_000.0, json!("explicit")),
        with_cpu("nats", 8_000.0, 150_000.0, Value::Null),
    ]);
    let page = page_of(&folder(&[("c.json", &report("rpc curve", &rows))]));
    assert!(line_of(&page, "Next to RabbitMQ").contains("1 of 1 behind"), "100 % next to 90 %");
    assert!(line_of(&page, "Next to NATS").contains("0 of 1 behind"), "100 % next to 120 %");
    assert!(row_of(&page, "CPU time of all processes").contains("<small>20.0 µs of CPU a call</small>"));
}

fn over_kafka(system: Value, mode: &str, bytes: u64, rate: f64) -> Value {
    let config = json!({ "mode": mode, "payload_bytes": bytes, "ends": "Kafka", "system": system });
    json!({ "config": config, "throughput_per_s": rate, "throughput_min_per_s": rate - 1.0, "throughput_max_per_s": rate + 1.0,
        "floor_ratio": 3.0, "floor_name": "bare_producer_consumer", "verified": true })
}

#[test]
fn calls_over_kafka_have_their_peer() {
    let mut ours = over_kafka(json!("gapless"), "one_way", 72, 21_000.0);
    ours["target_met"] = json!(false);
    ours["cpu_ns_per_message"] = json!({ "driver": 2_000.0, "service": 22_000.0 });
    ours["bridges_cpu_ns"] = json!(35_000.0);
    let lone = |system: &str, p50: u64| {
        json!({ "config": { "mode": "lone_call", "payload_bytes": 256, "ends": "Kafka", "system": system }, "verified": true,
            "latency_ns": { "min": 1, "mean": 2.0, "p50": p50, "p90": 4, "p99": 5_000_000, "p99_9": 6, "p99_99": 7, "max": 8, "count": 9 } })
    };
    let rows = json!([
        ours,
        over_kafka(json!("java"), "one_way", 72, 7_000.0),
        over_kafka(Value::Null, "two_way", 69, 900.0),
        over_kafka(json!("gapless"), "one_way", 65_536, 5.0),
        lone("gapless", 1_000_000),
        lone("java", 2_000_000)
    ]);
    let mut run = report("network", &rows);
    run["floor"] = json!([{ "name": "bare_producer_consumer", "payload_bytes": 72, "rate_per_s": 63_000.0 }]);
    let page = page_of(&folder(&[("n.json", &run)]));
    let published = row_of(&page, "one way, 72 B, through Kafka");
    assert!(
        published.contains("26.5 ×") && published.contains("7,000/s") && published.contains("ahead 3.00 ×"),
        "{published}"
    );
    let (_, table) = page.split_once("Calls over one broker of Kafka").unwrap();
    let row = row_of(table, ">one way, 72 B<");
    for words in
        [">21,000<", ">20,999 – 21,001<", ">2, 22, 35<", ">63,000<", ">3.00<", ">missed<", ">7,000<", "ahead, 3.00 ×"]
    {
        assert!(row.contains(words), "{words} is missing in {row}");
    }
    let alone = row_of(table, ">two way, 69 B<");
    assert!(alone.contains(">900<") && alone.contains(">not measured<"), "a run without a peer: {alone}");
    let lone = row_of(table, ">lone call, 256 B<");
    assert!(lone.contains(">1.00 ms<") && lone.contains(">5.00 ms<") && lone.contains("ahead, 2.00 ×"), "{lone}");
    assert!(!table.split("</table>").next().unwrap().contains("65,536"), "sizes of the picture");
    check_nesting(&page);
}

#[test]
fn extreme_figures_end_in_a_page() {
    let files: Vec<(String, Value)> = [json!(1.5e308), json!(-1.5e308), json!(1e-308), json!(0.0), Value::Null]
        .into_iter()
        .flat_map(|extreme| {
            let latency = |ns: u64| json!({ "min": 0, "mean": extreme.as_f64().unwrap_or(0.0), "p50": ns, "p90": 0, "p99": ns,
                "p99_9": ns, "p99_99": ns, "max": ns, "count": ns });
            let row = |config: Value, ns: u64| json!({ "config": config, "throughput_per_s": extreme, "throughput_min_per_s": extreme,
                "throughput_max_per_s": extreme, "bytes_per_s": extreme, "floor_ratio": extreme, "floor_name": "sequential_write",
                "cpu_ns_per_call": { "client": extreme }, "cpu_ns_per_message": { "driver": 1e300, "service": -1e300 }, "latency_ns": latency(ns),
                "slices": [{ "percent": extreme, "average_ns": extreme, "greatest_ns": extreme }, { "percent": 99.0, "greatest_ns": extreme }],
                "first_new_reply_of_every_client_ns": [extreme], "longest_silence_ns": extreme, "target_ns": extreme });
            let call = |bytes: u64| json!({ "mode": "call", "payload_bytes": bytes, "connected": bytes, "in_flight": 1, "system": "gapless",
                "waiting": "blocking" });
            let pushed = |bytes: u64| json!({ "mode": "throughput", "payload_bytes": bytes, "transport": "udp", "nodes": 3 });
            let command = |bytes: u64| json!({ "mode": "throughput", "payload_bytes": bytes, "aggregates": bytes, "identifiers": "position" });
            let over_kafka = |bytes: u64| json!({ "mode": "one_way", "payload_bytes": bytes, "ends": "Kafka" });
            let event = |bytes: u64| json!({ "event": "leader killed", "members": "full", "kills": bytes });
            let of = |config: &dyn Fn(u64) -> Value| {
                let rows = [1, 72, 1024, 2048, u64::MAX].map(|bytes| row(config(bytes), if bytes > 72 { u64::MAX } else { 0 }));
                json!(rows)
            };
            let kinds: [(&str, &dyn Fn(u64) -> Value); 8] = [
                ("rpc curve", &call),
                ("sequencer", &pushed),
                ("commands", &command),
                ("network", &over_kafka),
                ("rpc payloads", &over_kafka),
                ("failover", &event),
                ("rpc faults", &event),
                ("supervisor", &event),
            ];
            kinds.map(|(name, config)| (format!("{name} {extreme}.json"), report(name, &of(config))))
        })
        .collect();
    let files: Vec<_> = files.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let page = page_of(&folder(&files));
    check_nesting(&page);
    for svg in page.split("<svg").skip(1).filter_map(|svg| svg.split("</svg>").next()) {
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn comparisons_have_their_word() {
    assert_eq!([1.5, 1.0, 0.5, f64::NAN].map(|by| html::word(by).1), ["ahead", "level", "behind", "not compared"]);
}

/// With `GAPLESS_DRAW=1` in the environment it is written instead.
#[test]
fn committed_page_is_made_of_its_runs() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/gapless-bench");
    let benchmarks = workspace.join("benchmarks");
    let runs = StoredRuns::read(std::slice::from_ref(&benchmarks)).expect("the committed runs");
    assert_eq!(runs.warnings(), [""; 0]);
    let (made, committed) = (page(&runs), benchmarks.join("report.html"));
    check_nesting(&made);
    assert!(!made.contains("<script") && !made.contains("http"), "the page needs no network");
    if std::env::var_os("GAPLESS_DRAW").is_some() {
        std::fs::write(&committed, &made).expect("a place for the page");
    }
    let same = made == std::fs::read_to_string(&committed).unwrap_or_default();
    assert!(same, "benchmarks/report.html is not what its runs give; GAPLESS_DRAW=1 rewrites it");
}
