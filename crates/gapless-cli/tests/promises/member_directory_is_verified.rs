#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until_some;
use serde_json::Value;
use std::path::Path;

const MEMBER: &str = "orders/member-1";

fn stopped(here: &Path) {
    run(here, &["cluster", "new", "orders", "--members", "1"]).good();
    let mut member = Process::start(&mut gapless(here, &["cluster", "start", "orders/member-1.toml"]));
    let status = ["cluster", "status", "orders/member-1.toml"];
    until_some("it leads", || run(here, &status).stdout.contains("member 1 of orders: leader").then_some(()));
    std::fs::write(here.join("lines"), "one\n").unwrap();
    run(here, &["stream", "publish", "lines", "--directory", MEMBER]).good();
    member.interrupt();
    assert!(member.wait().success());
}

#[test]
fn faults_that_prevent_start_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    stopped(here);
    let verify = || run(here, &["journal", "verify", MEMBER]);
    assert!(verify().good().ends_with("\nwhole\n"));
    let small = ["instance", "instances", "incarnation", "voting", "ballot"];
    let path = |name: &str| here.join(MEMBER).join(name);
    for name in small {
        let whole = std::fs::read(path(name)).unwrap();
        for damage in ["removed", "damaged"] {
            match damage {
                "removed" => std::fs::remove_file(path(name)).unwrap(),
                _ => std::fs::write(path(name), vec![b'x'; whole.len()]).unwrap(),
            }
            let found = verify().error(1);
            assert!(found.contains(&format!("{MEMBER}/{name} is ")), "{name} {damage}: {found}");
            let text = run(here, &["journal", "verify", MEMBER, "--json"]).stdout;
            let report: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(report["verdict"], "damaged", "{name} {damage}");
            assert!(report["problems"][0].as_str().unwrap().contains(name), "{report}");
            let refused = run(here, &["cluster", "start", "orders/member-1.toml"]);
            assert_eq!(refused.code, Some(1), "{name} {damage}: {refused:?}");
            assert!(refused.stderr.contains(&format!("{MEMBER}/{name} is ")), "{name} {damage}: {refused:?}");
        }
        std::fs::write(path(name), whole).unwrap();
        assert!(verify().good().ends_with("\nwhole\n"), "{name} is back");
    }
    std::fs::write(path("checkpoint"), "x").unwrap();
    assert!(verify().error(1).contains(&format!("{MEMBER}/checkpoint is damaged")));
    std::fs::remove_file(path("checkpoint")).unwrap();
    // The directory is then still a member's, not a new one.
    for name in small {
        std::fs::remove_file(path(name)).unwrap();
    }
    assert!(verify().error(1).contains("instance is missing"));
    let refused = run(here, &["cluster", "start", "orders/member-1.toml"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("instance is missing"), "{refused:?}");
    assert!(!path("instance").exists(), "no file was created again");
}
