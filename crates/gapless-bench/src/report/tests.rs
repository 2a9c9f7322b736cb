//! The page: escaping, missing and damaged runs, and the committed one.

use super::*;
use serde_json::{Value, json};

const ENVIRONMENT: &str = r#"{"cpu":"a CPU","cores":2,"kernel":"6","memory_bytes":1073741824}"#;

/// A folder of JSON files.
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
    page(&Runs::read(&[folder.path().to_owned()]).unwrap())
}

fn call(system: &str, rate: f64, acknowledgement: Value) -> Value {
    let config = json!({ "mode": "call", "payload_bytes": 1, "connected": 1, "in_flight": 1, "system": system,
        "waiting": "blocking", "acknowledgement": acknowledgement });
    json!({ "config": config, "throughput_per_s": rate, "verified": true })
}

/// Every element that is opened is closed, in order.
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
    assert!(nobody.contains("measured by nobody") && nobody.contains("1,791/s"), "{nobody}");
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
        assert_eq!(summary.contains("behind at call, 1 B, asleep 0.67 ×"), rows != json!([]), "{summary}");
    }
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
    let named = Runs::read(&[folder.path().join("2026-11-28/curve.json")]).unwrap();
    assert!(super::page(&named).contains("111/s"));
}

#[test]
fn damaged_files_are_named() {
    let folder = folder(&[("good.json", &report("log", &json!([])))]);
    let refused = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let error = Runs::read(&[folder.path().to_owned()]).err().expect("an error").to_string();
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
    let missing = Runs::read(&[folder.path().join("missing")]).err().unwrap().to_string();
    assert!(missing.contains("missing"), "{missing}");
    let empty = tempfile::tempdir().unwrap();
    let error = Runs::read(&[empty.path().to_owned()]).err().unwrap();
    assert!(error.is_about_options() && error.to_string().contains("no JSON of a benchmark"));
}

#[test]
fn unknown_benchmark_is_a_warning() {
    let (unknown, known) = (report("weather\u{1b}[1m", &json!([])), report("log", &json!([])));
    let runs = Runs::read(&[folder(&[("a.json", &unknown), ("b.json", &known)]).path().to_owned()]).unwrap();
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
    assert!(text.contains("page.html") && text.contains("from 1 files") && warnings.is_empty());
    check_nesting(&std::fs::read_to_string(output).unwrap());
    let nowhere = ReportArguments { output: folder.path().join("gone/page.html"), ..arguments };
    assert!(run(&nowhere).unwrap_err().to_string().contains("gone/page.html"));
}

/// The committed page is made again from the committed runs and compared. With `GAPLESS_DRAW=1` in the environment it is written
/// instead.
#[test]
fn committed_page_is_made_of_its_runs() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/gapless-bench");
    let benchmarks = workspace.join("benchmarks");
    let runs = Runs::read(std::slice::from_ref(&benchmarks)).expect("the committed runs");
    assert_eq!(runs.warnings(), [""; 0]);
    let (made, committed) = (page(&runs), benchmarks.join("report.html"));
    check_nesting(&made);
    assert!(!made.contains("<script") && !made.contains("http"), "the page needs no network");
    if std::env::var_os("GAPLESS_DRAW").is_some() {
        std::fs::write(&committed, &made).expect("a place for the page");
    }
    let same = made == std::fs::read_to_string(&committed).unwrap_or_default();
    assert!(same, "benchmarks/report.html is not what its runs give; GAPLESS_DRAW=1 writes it anew");
}
