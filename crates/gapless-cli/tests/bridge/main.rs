//! `gapless bridge` as processes, without a broker.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

#[allow(dead_code, reason = "other programs of tests use the rest")]
#[path = "../program/mod.rs"]
mod program;

use gapless_testkit::process::Process;
use gapless_testkit::wait::until_some;
use program::{ProgramOutput, gapless, run};
use rustix::process::Signal;
use std::net::TcpListener;
use std::path::Path;

const STATUS: [&str; 4] = ["bridge", "status", "--directory", "domain"];

fn status(folder: &Path, more: &[&str]) -> ProgramOutput {
    run(folder, &[&STATUS, more].concat())
}

fn write_file(folder: &Path, more: &str) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let kafka = format!("[kafka]\nbrokers = [\"127.0.0.1:{port}\"]\nname = \"berlin\"\n");
    std::fs::write(folder.join("bridge.toml"), format!("{kafka}{more}[domain]\ndirectory = \"domain\"\n")).unwrap();
}

#[test]
fn status_shows_a_bridge() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let missing = status(folder, &[]).error(1);
    assert!(missing.contains("there is no such directory"), "{missing}");
    write_file(folder, "");
    let mut bridge = Process::start(&mut gapless(folder, &["bridge", "kafka", "bridge.toml"]));
    // A bridge that waits for its broker is unhealthy, but shown.
    let shown = until_some("the bridge answers", || {
        let ended = status(folder, &[]);
        (ended.code == Some(1) && !ended.stdout.is_empty()).then_some(ended)
    });
    let process_id = bridge.pid().as_raw_nonzero();
    let process = format!("process {process_id} on ");
    assert!(
        shown.stdout.starts_with("bridge berlin is starting: started ") && shown.stdout.contains(&process),
        "{shown:?}"
    );
    assert!(shown.stdout.contains(": not connected yet"), "{shown:?}");
    assert!(shown.error(1).contains("bridge berlin is starting"));
    let json: serde_json::Value = serde_json::from_str(&status(folder, &["berlin", "--json"]).stdout).unwrap();
    assert_eq!((&json[0]["name"], &json[0]["phase"]), (&"berlin".into(), &"starting".into()), "{json}");
    assert_eq!(json[0]["counters"]["late_replies"], 0, "{json}");
    let other = status(folder, &["paris"]).error(3);
    assert!(other.contains("no bridge paris runs"), "{other}");
    let routes = run(folder, &["routes", "--directory", "domain", "--json"]).good();
    assert_eq!(routes.trim(), "[]");

    bridge.stop();
    let stopped = status(folder, &["--timeout", "1"]).error(1);
    let silence = format!(": process {process_id} is there and does not answer");
    assert!(stopped.contains("no bridge answers") && stopped.contains(&silence), "{stopped}");
    bridge.signal(Signal::CONT);
    bridge.interrupt();
    assert!(bridge.wait_end("the bridge stops").success());
    let gone = status(folder, &[]).error(3);
    assert!(gone.contains("no bridge runs in the domain"), "{gone}");
}

#[test]
fn check_reads_referenced_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let check = || run(folder, &["bridge", "kafka", "bridge.toml", "--check"]);
    write_file(
        folder,
        "[kafka.properties]\n\"linger.ms\" = 5\n[kafka.secrets]\n\"sasl.password\" = { file = \"password\" }\n\
         \"sasl.username\" = { environment = \"GAPLESS_TEST_NO_SUCH_VARIABLE\" }\n",
    );
    let faults = check().error(2);
    let expected = [
        "bridge.toml: kafka.secrets.sasl.password: ",
        "password: No such file",
        "; kafka.secrets.sasl.username: the variable GAPLESS_TEST_NO_SUCH_VARIABLE: ",
    ];
    assert!(expected.iter().all(|words| faults.contains(words)), "{faults}");
    write_file(folder, "[kafka.secrets]\n\"sasl.password\" = { file = \"password\" }\n");
    std::fs::write(folder.join("password"), "s3cret\n").unwrap();
    std::fs::set_permissions(folder.join("password"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let open = check();
    assert!(open.stderr.contains("password: its mode is 0644: every user"), "{open:?}");
    assert_eq!(open.good(), "bridge.toml: nothing is wrong with it\n");
    write_file(folder, "[kafka.properties]\n\"linger.mss\" = 5\n");
    let unknown = check().error(2);
    assert!(unknown.contains("property linger.mss: No such configuration property"), "{unknown}");
}
