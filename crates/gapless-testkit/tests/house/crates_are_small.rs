//! No crate has more code than one engineer keeps in mind.

use super::module_tree::{ModuleTree, TREES};
use super::workspace;

/// Lines of code of a crate at most: tests, comments and empty lines are not counted.
const LINES_MAX: usize = 12_100;
/// The same of the benchmarks, which stand next to each other: a reader of one folder needs no other.
const BENCHMARKS: (&str, usize) = ("gapless-bench", 18_000);

#[test]
fn no_crate_has_more_lines_of_code_than_the_limit() {
    let mut counted = Vec::new();
    for (name, folder) in workspace::crates() {
        let mut lines = TREES[&name].lines_of_code();
        let (library, program) = (folder.join("src/lib.rs"), folder.join("src/main.rs"));
        if library.is_file() && program.is_file() {
            lines += ModuleTree::read(&program).lines_of_code();
        }
        counted.push((lines, name));
    }
    counted.sort();
    counted.iter().rev().for_each(|(lines, name)| println!("{lines:6} {name}"));
    let total: usize = counted.iter().map(|(lines, _)| lines).sum();
    assert!(total > 50_000, "only {total} lines were found");
    let limit = |name: &str| if name == BENCHMARKS.0 { BENCHMARKS.1 } else { LINES_MAX };
    let over: Vec<_> = counted.iter().filter(|(lines, name)| *lines > limit(name)).collect();
    assert!(over.is_empty(), "more lines of code than the limit: {over:?}");
}

#[test]
fn tests_comments_and_empty_lines_are_not_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    write("lib.rs", "//! Head.\n\nmod a;\n/// Of `B`.\nstruct B; // one\n#[cfg(test)]\nmod tests {\n  fn f() {}\n}\n");
    write("a.rs", "/* a\n comment */\nfn f() -> &'static str {\n    \"one\n     two\"\n}\n");
    assert_eq!(ModuleTree::read(&folder.path().join("lib.rs")).lines_of_code(), 2 + 4);
}
