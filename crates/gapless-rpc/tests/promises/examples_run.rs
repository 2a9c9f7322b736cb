use gapless_rpc::domain::DOMAIN_VARIABLE;
use gapless_testkit::process::Process;
use std::path::Path;
use std::process::{Command, Stdio};

/// Until all processes of the example have ended, because they share its output.
fn output_of(example: &str) -> Vec<String> {
    let runtime_directory = tempfile::tempdir().unwrap();
    output_in(runtime_directory.path(), example, None)
}

fn output_in(runtime_directory: &Path, example: &str, domain: Option<&Path>) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let examples = program.parent().unwrap().parent().unwrap().join("examples");
    let mut command = Command::new(examples.join(example));
    command.env("XDG_RUNTIME_DIR", runtime_directory).env_remove(DOMAIN_VARIABLE).stdin(Stdio::null());
    command.envs(domain.map(|domain| (DOMAIN_VARIABLE, domain)));
    let mut process = Process::start(&mut command);
    let lines = process.rest();
    assert!(process.wait_end("the example").success(), "{lines:?}");
    lines
}

#[test]
fn calculator_adds_and_refuses() {
    assert_eq!(output_of("calculator"), ["2 + 40 = 42", "7 / 0: nothing can be divided by zero"]);
}

#[test]
fn gateway_joins_timely_replies() {
    let said = ["9 of 10 shops answered in time; too late: [7]", "shop 1 is the cheapest: 106"];
    assert_eq!(output_of("gateway"), said);
}

#[test]
fn examples_join_the_supervised_domain() {
    for example in ["calculator", "gateway"] {
        let folder = tempfile::tempdir().unwrap();
        let domain = folder.path().join("domain");
        assert_eq!(output_in(folder.path(), example, Some(&domain)).len(), 2);
        assert!(domain.is_dir() && !folder.path().join("gapless").exists(), "{example} opens another domain");
    }
    let guide = include_str!("../../../../docs/guides/calling.md");
    assert!(guide.contains("Domain::open_from_environment(") && !guide.contains("Domain::open("));
}
