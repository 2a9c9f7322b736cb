#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_testkit::ports::free_ports;
use std::process::Command;
use std::time::{Duration, Instant};

/// Other tests' use of the cores must not be measured.
const IS_ALONE: &str = "GAPLESS_TEST_IS_ALONE";

/// Hundredths of a second.
fn used() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = text.rsplit_once(") ").unwrap().1;
    let field = |at: usize| behind_name.split(' ').nth(at).unwrap().parse::<u64>().unwrap();
    field(11) + field(12)
}

#[test]
fn new_member_does_not_spin() {
    if std::env::var_os(IS_ALONE).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "new_member_sleeps::new_member_does_not_spin"]);
        let output = again.arg("--nocapture").env(IS_ALONE, "1").output().unwrap();
        let [said, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success() && said.contains("1 passed"), "{said}{failed}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut text = "[cluster]\nname = \"test\"\nmember = 1\n".to_owned();
    for (id, port) in (1..).zip(free_ports(3)) {
        text += &format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{port}\"]\n");
    }
    text += &format!("[stream]\ndirectory = {:?}\nwindow = \"8 MiB\"\n", directory.path().join("member"));
    text += "message_length_max = \"64 KiB\"\n[journal]\nsegment_length = \"2 MiB\"\n";
    let member = ClusterMember::start(&ClusterConfig::parse(&text, "test.toml").unwrap()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while member.status().is_none() {
        assert!(Instant::now() < deadline, "the member made no turn");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(member.status().unwrap().waits_for.len(), 2);
    let before = used();
    std::thread::sleep(Duration::from_secs(2));
    let used = used() - before;
    assert!(used < 100, "{used} hundredths of a second in two seconds");
    member.stop().unwrap();
}
