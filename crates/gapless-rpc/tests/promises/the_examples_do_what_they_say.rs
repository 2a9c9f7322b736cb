//! The examples of processes: started with one command, they end by themselves with what they say, and leave no process.

use gapless_testkit::process::Process;
use std::process::{Command, Stdio};

/// What an example of that name prints until it and all its processes have ended, because they share its output.
fn output_of(example: &str) -> Vec<String> {
    let runtime_directory = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    // Beside the folder of the tests' programs.
    let examples = program.parent().unwrap().parent().unwrap().join("examples");
    let mut command = Command::new(examples.join(example));
    command.env("XDG_RUNTIME_DIR", runtime_directory.path()).stdin(Stdio::null());
    let mut process = Process::start(&mut command);
    let lines = process.rest();
    assert!(process.wait_end("the example").success(), "{lines:?}");
    lines
}

#[test]
fn a_calculator_adds_and_refuses() {
    assert_eq!(output_of("calculator"), ["2 + 40 = 42", "7 / 0: nothing can be divided by zero"]);
}

#[test]
fn a_gateway_joins_what_came_in_time() {
    let said = ["9 of 10 shops answered in time; too late: [7]", "shop 1 is the cheapest: 106"];
    assert_eq!(output_of("gateway"), said);
}
