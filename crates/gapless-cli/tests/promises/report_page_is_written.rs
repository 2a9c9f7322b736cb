#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless};

const RUN: &str =
    r#"{"benchmark":"log","environment":{"cpu":"<b>a CPU</b>"},"rows":[],"command_line":"gapless bench log"}"#;

fn report(here: &std::path::Path, arguments: &[&str]) -> ProgramOutput {
    gapless(here, &[&["bench", "report"], arguments].concat()).output().unwrap().into()
}

#[test]
fn page_goes_to_a_file_or_stdout() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::create_dir(here.join("runs")).unwrap();
    std::fs::write(here.join("runs/log.json"), RUN).unwrap();
    std::fs::write(here.join("runs/new.json"), RUN.replace("\"log\"", "\"weather\"")).unwrap();
    let written = report(here, &["runs"]);
    assert!(written.stderr.contains("new.json") && written.stderr.contains("weather"), "{written:?}");
    assert!(written.good().contains("report.html"));
    let page = std::fs::read_to_string(here.join("report.html")).unwrap();
    assert!(page.contains("&lt;b&gt;a CPU&lt;/b&gt;") && !page.contains("<script"));
    let shown = report(here, &["runs/log.json", "runs/new.json", "--output", "-"]);
    assert_eq!(shown.good(), page);
}

#[test]
fn unusable_input_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("cut.json"), &RUN[..30]).unwrap();
    let told = report(here, &["."]).error(1);
    assert!(told.contains("cut.json") && told.contains("no report of a benchmark"), "{told}");
    assert!(!here.join("report.html").exists());
    assert!(report(here, &["gone"]).error(1).contains("gone"));
    std::fs::create_dir(here.join("empty")).unwrap();
    assert!(report(here, &["empty"]).error(2).contains("no JSON of a benchmark"));
    assert_eq!(report(here, &[]).code, Some(2));
    assert_eq!(report(here, &["cut.json", "--output", "gone/page.html"]).code, Some(2));
}

#[test]
fn lost_output_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("log.json"), RUN).unwrap();
    let shell = |output: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new("sh");
        let script = format!("exec \"$0\" bench \"$@\" {output}");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_gapless")]).args(arguments).current_dir(here);
        ProgramOutput::from(command.output().unwrap()).error(1)
    };
    let page = ["report", "log.json", "--output", "-"];
    for arguments in [&page[..], &["time", "--json", "-"], &["canonical"], &["--quick"]] {
        let said = shell(">&-", arguments);
        assert!(said.contains("standard output: it is closed") && said.lines().count() == 1, "{arguments:?}: {said}");
    }
    let full = shell(">/dev/full", &page);
    assert!(full.contains("write the page to stdout") && full.lines().count() == 1, "{full}");
}
