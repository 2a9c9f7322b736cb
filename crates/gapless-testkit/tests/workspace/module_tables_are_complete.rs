//! The head of a crate lists every module from the top layer down. Folders with a table list all modules, too, in any
//! order.

use std::collections::BTreeMap;

use super::module_tree::TREES;
use super::workspace;

const TABLE: &str = "//! | module |";

#[test]
fn every_module_is_in_its_table() {
    let mut missing = Vec::new();
    let mut tables = 0;
    for (_, folder) in workspace::crates() {
        for file in workspace::sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).expect("a source file can be read");
            let declared = text.lines().filter_map(declared_module).filter(|name| *name != "tests").collect::<Vec<_>>();
            let is_root = file.ends_with("src/lib.rs");
            if !text.contains(TABLE) && (!is_root || declared.len() < 2) {
                continue;
            }
            tables += 1;
            let rows = rows(&text);
            for module in declared {
                if !rows.contains_key(module) {
                    missing.push(format!("{}: {module}", file.display()));
                }
            }
        }
    }
    assert!(tables > 30, "only {tables} tables were found");
    assert!(missing.is_empty(), "{} modules are not in the table above them:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn crate_tables_go_top_down() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, folder) in workspace::crates() {
        let root = folder.join("src/lib.rs");
        let Ok(text) = std::fs::read_to_string(&root) else { continue };
        let rows = rows(&text);
        for naming in TREES[&name].namings() {
            let (Some(from), Some(to)) = (naming.from.first(), naming.to.first()) else { continue };
            let (Some(above), Some(below)) = (rows.get(from.as_str()), rows.get(to.as_str())) else { continue };
            compared += 1;
            if above > below {
                wrong.push(format!("{name}: `{from}` names `{to}`, which stands above it ({})", naming.place));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(compared > 500, "only {compared} names were compared");
    assert!(wrong.is_empty(), "{} rows are below a module that they use:\n{}", wrong.len(), wrong.join("\n"));
}

/// Maps modules to row numbers; a row may name several.
fn rows(text: &str) -> BTreeMap<&str, usize> {
    let head = text.lines().take_while(|line| line.starts_with("//!"));
    let mut rows = BTreeMap::new();
    for (number, line) in head.enumerate() {
        let Some(first) = line.strip_prefix("//! | ").and_then(|row| row.split('|').next()) else { continue };
        for name in first.split('`').skip(1).step_by(2) {
            rows.entry(name.trim_start_matches("mod@")).or_insert(number);
        }
    }
    rows
}

/// `None` for a module without a file of its own.
fn declared_module(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    let at = line.find("mod ")?;
    let before = line[..at].trim_end();
    let is_declared = before.is_empty() || before == "pub" || (before.starts_with("pub(") && before.ends_with(')'));
    is_declared.then(|| line[at + 4..].trim())
}
