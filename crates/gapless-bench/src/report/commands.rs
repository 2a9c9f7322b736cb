//! Commands that repeat a single row: that of the run, narrowed to the row by its configuration.

use super::answers::AnsweringRow;
use super::html::escape;
use super::runs::{StoredRun, config};
use gapless_measure::Row;
use std::fmt::Write as _;

const OUTPUT: [&str; 3] = ["--json", "--plot", "--hlog"];

#[derive(Default)]
pub(super) struct RowCommands(Vec<(String, Vec<String>)>);

impl RowCommands {
    /// Skips rows whose command is that of the run.
    pub(super) fn add(&mut self, what: &str, line: &AnsweringRow<'_>) {
        let Some(command) = command(line.run, line.row) else { return };
        let place = self.0.iter().position(|(known, _)| *known == command).unwrap_or_else(|| {
            self.0.push((command, Vec::new()));
            self.0.len() - 1
        });
        let rows = &mut self.0[place].1;
        if rows.last().is_none_or(|last| last != what) {
            rows.push(what.to_owned());
        }
    }

    pub(super) fn html(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut html = "<details class=\"commands\">\n<summary>Command of each row</summary>\n<ul>\n".to_owned();
        for (command, rows) in &self.0 {
            let _ = writeln!(html, "<li><code>{}</code><br>{}</li>", escape(command), escape(&rows.join("; ")));
        }
        html + "</ul>\n</details>\n"
    }
}

/// `None` if its run has no narrower one.
fn command(run: &StoredRun, row: &Row) -> Option<String> {
    let whole = run.report.command_line.as_deref()?;
    let options = options(run, row)?;
    let mut words = without(whole, &options);
    for (option, value) in options {
        if !value.is_empty() {
            words.extend([option.to_owned(), value]);
        }
    }
    let narrowed = words.join(" ");
    (narrowed != without(whole, &[]).join(" ")).then_some(narrowed)
}

/// An empty value leaves an option out.
fn options(run: &StoredRun, row: &Row) -> Option<Vec<(&'static str, String)>> {
    let of = |option: &'static str, key: &str| (option, config(row, key));
    match run.report.benchmark.as_str() {
        "canonical" => Some(vec![of("--mode", "mode"), of("--cpu", "cpu")]),
        "sequencer" => Some(vec![
            of("--only", "mode"),
            of("--transport", "transport"),
            of("--payload", "payload_bytes"),
            of("--mtu", "mtu_bytes"),
        ]),
        "rpc curve" => Some(vec![of("--sizes", "payload_bytes"), of("--waiting", "waiting")]),
        "commands" if run.report.rows.iter().any(|row| !config(row, "setup").is_empty()) => {
            let bus = if config(row, "drive") == "direct" { "simple" } else { "disruptor" };
            Some(vec![("--only", "ladder".to_owned()), ("--buses", bus.to_owned()), of("--identifiers", "identifiers")])
        }
        _ => None,
    }
}

fn without(command: &str, options: &[(&'static str, String)]) -> Vec<String> {
    let is_left_out = |word: &str| OUTPUT.contains(&word) || options.iter().any(|(option, _)| *option == word);
    let mut words = command.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if is_left_out(word) {
            words.next();
        } else {
            kept.push(word.to_owned());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::{Report, RowConfig};
    use serde_json::json;
    use std::path::Path;

    fn command_of(benchmark: &str, line: &str, row: serde_json::Value) -> Option<String> {
        let config: RowConfig = serde_json::from_value(row).unwrap();
        let row = Row { config, ..Row::default() };
        let (benchmark, command_line) = (benchmark.to_owned(), Some(line.to_owned()));
        let report = Report { benchmark, command_line, rows: vec![row.clone()], ..Report::default() };
        command(&StoredRun::new(Path::new("a.json"), report), &row)
    }

    #[test]
    fn commands_are_narrowed_to_a_row() {
        let row = json!({ "mode": "throughput", "transport": "multicast", "payload_bytes": 1400, "mtu_bytes": 9000 });
        let whole = "gapless bench sequencer --payload 64,1400 --json sequencer.json";
        let narrowed =
            "gapless bench sequencer --only throughput --transport multicast --payload 1400 --mtu 9000".to_owned();
        assert_eq!(command_of("sequencer", whole, row.clone()), Some(narrowed.clone()));
        assert_eq!(command_of("sequencer", &narrowed, row.clone()), None, "it is that of its run");
        assert_eq!(command_of("rpc payloads", whole, row), None);
        let row = json!({ "drive": "direct", "identifiers": "random", "setup": "ours" });
        let ladder = command_of("commands", "gapless bench commands --turns 5", row);
        let expected = "gapless bench commands --turns 5 --only ladder --buses simple --identifiers random";
        assert_eq!(ladder.as_deref(), Some(expected));
    }
}
