//! Each crate imports only from layers below its own; the numbers are those of ARCHITECTURE.md.

use super::workspace;

const FLOORS: [(&str, u8); 29] = [
    ("gapless-cli", 13),
    ("gapless-bench", 12),
    ("gapless-load", 11),
    ("gapless-sim", 11),
    ("gapless", 10),
    ("gapless-fuzz", 10),
    ("gapless-host", 9),
    ("gapless-kafka", 9),
    ("gapless-cqrs", 8),
    ("gapless-measure", 8),
    ("gapless-supervisor", 8),
    ("gapless-engine", 7),
    ("gapless-cluster", 6),
    ("gapless-rpc", 6),
    ("gapless-stream", 5),
    ("gapless-client", 4),
    ("gapless-schema-tests", 4),
    ("gapless-bus-checker", 3),
    ("gapless-message", 3),
    ("gapless-transport", 3),
    ("gapless-config", 2),
    ("gapless-journal", 2),
    ("gapless-log", 2),
    ("gapless-schema", 2),
    ("gapless-agent", 1),
    ("gapless-macros", 1),
    ("gapless-trace", 1),
    ("gapless-wire", 1),
    ("gapless-testkit", 0),
];

fn floor(name: &str) -> u8 {
    let found = FLOORS.iter().find(|(crate_name, _)| *crate_name == name);
    found.unwrap_or_else(|| panic!("{name} has no layer in this test")).1
}

fn dependencies(manifest: &str) -> Vec<(&str, &str)> {
    let mut kind = None;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            kind = section.ends_with("dependencies").then_some(section);
        } else if let Some(kind) = kind
            && line.starts_with("gapless")
        {
            let name = line.split(['.', ' ', '=']).next().expect("a line has a beginning");
            found.push((kind, name));
        }
    }
    found
}

#[test]
fn crates_import_only_lower_layers() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, folder) in workspace::crates() {
        let path = folder.join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (kind, other) in dependencies(&manifest) {
            count += 1;
            // A crate may name itself to turn a feature on for its tests.
            let is_own = kind == "dev-dependencies" && other == name;
            if !is_own && floor(other) >= floor(&name) {
                wrong.push(format!("{name}, on floor {}, imports {other}, on floor {}", floor(&name), floor(other)));
            }
            if other == "gapless-testkit" && kind != "dev-dependencies" {
                wrong.push(format!("{name} imports the tools of tests outside of its tests"));
            }
        }
    }
    assert!(count > 80, "only {count} imports were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn architecture_lists_the_same_layers() {
    let path = workspace::root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = text.lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("| ")?.split_once(" | `")?;
        let name = rest.split_once('`')?.0;
        Some((name, number.parse::<u8>().ok()?)).filter(|_| name.starts_with("gapless"))
    });
    let mut rows = rows.collect::<Vec<_>>();
    let mut expected = FLOORS.to_vec();
    rows.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rows, expected, "ARCHITECTURE.md and this test differ");
}
