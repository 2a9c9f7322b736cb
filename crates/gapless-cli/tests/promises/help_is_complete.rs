#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{self, run};

#[test]
fn every_subcommand_has_an_example() {
    let directory = tempfile::tempdir().unwrap();
    for words in [
        "bench",
        "bench canonical",
        "bench serialization",
        "bench log",
        "bench link",
        "bench messaging",
        "bench persistence",
        "bench storage",
        "bench sequencer",
        "bench time",
        "bench rpc curve",
        "bench rpc payloads",
        "bench rpc scenarios",
        "bench rpc faults",
        "bridge kafka",
        "bridge status",
        "broadcast",
        "call",
        "down",
        "events",
        "logs",
        "ps",
        "reload",
        "restart",
        "scale",
        "start",
        "stop",
        "up",
        "journal verify",
        "journal dump",
        "journal tail",
        "journal info",
        "routes",
        "routes suspend",
        "routes resume",
        "routes drain",
        "schema generate",
        "schema check",
        "serve",
        "stream sequencer",
        "stream node",
        "stream tail",
        "stream publish",
        "stream replay",
        "stream dispatch",
        "stream bridge",
        "stream archive",
        "stream status",
        "stream control halt",
        "stream control resume",
        "stream control roll-over",
        "stream control end",
        "top",
    ] {
        let line: Vec<&str> = words.split(' ').chain(["--help"]).collect();
        let text = run(directory.path(), &line).good();
        assert!(text.contains("Usage: gapless"), "{text}");
        let example = text.split("Example").nth(1).unwrap_or_default();
        assert!(example.contains(&format!("gapless {words} ")), "an example of {words}: {text}");
    }
}

#[test]
fn main_help_names_the_subcommands() {
    let directory = tempfile::tempdir().unwrap();
    for (words, expected) in [
        (
            &["--help"][..],
            &[
                "bench",
                "bridge",
                "broadcast",
                "call",
                "down",
                "journal",
                "ps",
                "routes",
                "schema",
                "serve",
                "top",
                "up",
            ][..],
        ),
        (
            &["bench", "--help"],
            &["canonical", "serialization", "log", "link", "messaging", "persistence", "sequencer", "time"],
        ),
        (&["journal", "--help"], &["verify", "dump", "tail", "info"]),
        (&["schema", "--help"], &["generate", "check"]),
        (&["stream", "--help"], &["sequencer", "node", "tail", "publish", "replay", "archive", "status", "control"]),
        (&["stream", "control", "--help"], &["halt", "resume", "roll-over", "end"]),
    ] {
        let text = run(directory.path(), words).good();
        assert!(expected.iter().all(|name| text.contains(name)), "{text}");
        for hidden in ["child", "canonical-client", "sequencer-process", "link-partner", "serve-guard", "supervise "] {
            assert!(!text.contains(hidden), "a benchmark's own process is nobody's command: {text}");
        }
    }
    assert!(run(directory.path(), &["--version"]).good().starts_with("gapless "));
}

#[test]
fn wrong_options_exit_with_2() {
    let directory = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("journal dump . --form 3", "--form"),
        ("journal dump . --from x", "--from"),
        ("journal dump . --from 9 --to 3", "--from 9 lies behind --to 3"),
        ("journal dump", "<DIRECTORY>"),
        ("journal tail -n -3 .", "-3"),
        ("journal mend .", "mend"),
        ("bench time --count 0", "--count"),
        ("bench time --count many", "many"),
        ("bench speed", "speed"),
        ("bench --only speed", "possible values: service, sequencer, calls, events, commands, kills"),
        ("bench --quick --json /nowhere/out.json", "/nowhere"),
        ("bench --quick canonical", "cannot be used with"),
        ("bench canonical --cpu most", "possible values: min, default, max"),
        ("bench canonical -l xml", "xml"),
        ("bench canonical -c 0", "whole number from 1"),
        ("bench canonical -r fast", "whole number from 1"),
        ("bench canonical -t -1", "seconds"),
        ("bench canonical -j 1", "in brackets"),
        ("bench canonical -j [5000]", "kernel's limit"),
        ("bench canonical -e -w 0", "whole number from 1"),
        ("bench canonical -e -i 0", "GiB"),
        ("bench canonical -u -n 0", "whole number from 1"),
        ("bench canonical -O x.xlsx -C five", "ROW-COL"),
        ("bench canonical -C 5-3", "--output-file"),
        ("bench canonical -e --tier memory", "contradicts --tier memory"),
        ("bench canonical -c 10 --all", "--all"),
        ("bench canonical -a --hlog x.hlog", "--no-latency-writes"),
        ("stream tail --count 0", "--count"),
        ("surprise", "surprise"),
    ] {
        let line: Vec<&str> = words.split(' ').collect();
        let text = run(directory.path(), &line).error(2);
        assert!(text.contains(expected), "{words}: {text}");
    }
    assert!(program::names(directory.path()).is_empty(), "nothing was begun");
}

#[test]
fn all_named_schemas_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let schemas = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../gapless-schema/schemas");
    for name in ["car.xml", "truck.xml"] {
        std::fs::copy(schemas.join(name), directory.path().join(name)).unwrap();
    }
    std::fs::write(directory.path().join("bad.xml"), "<no schema").unwrap();
    let ended = run(directory.path(), &["schema", "check", "bad.xml", "car.xml", "gone.xml"]);
    assert!(ended.stdout.starts_with("car.xml: "), "{ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(ended.code == Some(1) && lines.len() == 2, "{ended:?}");
    assert!(lines[0].contains("bad.xml") && lines[1].contains("gone.xml"), "{lines:?}");
    assert_eq!(run(directory.path(), &["schema", "check", "car.xml", "car.xml"]).good().lines().count(), 2);
}

#[test]
fn cluster_options_need_a_cluster() {
    let directory = tempfile::tempdir().unwrap();
    for words in ["-I 127.0.0.1", "-W", "-V [0]", "--tier quorum", "--tier quorum-sync"] {
        let line: Vec<&str> = ["bench", "canonical"].into_iter().chain(words.split(' ')).collect();
        let text = run(directory.path(), &line).error(2);
        assert!(text.contains("needs --enable-clustering"), "{words}: {text}");
    }
}

#[test]
fn call_examples_work() {
    std::thread::scope(|scope| {
        for command in ["call", "broadcast", "routes", "serve", "top"] {
            scope.spawn(move || examples_work(command));
        }
    });
}

fn examples_work(command: &str) {
    let directory = tempfile::tempdir().unwrap();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_gapless")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let has_jq = std::env::split_paths(&path).any(|folder| folder.join("jq").is_file());
    let text = run(directory.path(), &[command, "--help"]).good();
    let examples = text.split("Examples:\n").nth(1).unwrap().lines().map_while(|line| line.strip_prefix("  "));
    let mut script = "set -e\ntrap 'kill $all; wait' EXIT\ngapless serve some -- cat & all=$!\n".to_owned();
    script += "gapless call some 1 --bytes --wait 60\n";
    for line in examples.filter(|line| has_jq || !line.contains("jq")) {
        // Drops the explanation after an example; the others of `top` need nodes.
        let line = line.split("   ").next().unwrap();
        if command == "top" && !line.contains("--domain") {
            continue;
        }
        let is_endless = line.contains("--watch")
            || line.starts_with("gapless serve") && !line.contains('&')
            || line.starts_with("gapless top") && !line.contains("--once");
        script += &if is_endless {
            format!("timeout -s INT 1 {line} || [ $? = 124 ]\n")
        } else {
            let line = line.replace("sleep 1", "until gapless routes | grep -q who; do sleep 0.1; done");
            let line = line.replace(" &", " & all=\"$all $!\";").replace("--wait 2", "--wait 60");
            format!("{}\n", line.trim_end_matches(';'))
        };
    }
    let mut shell = std::process::Command::new("timeout");
    shell.args(["300", "sh", "-c", &script]).current_dir(directory.path()).env("PATH", &path);
    shell.env("XDG_RUNTIME_DIR", directory.path()).env_remove("GAPLESS_DOMAIN").stdin(std::process::Stdio::null());
    let ended = shell.output().unwrap();
    assert!(ended.status.success(), "{command}: {script}\n{ended:?}");
}
