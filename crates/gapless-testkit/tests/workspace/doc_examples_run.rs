//! A crate with `doctest = false` has no examples.

use super::workspace;

#[test]
fn doc_examples_are_run() {
    let mut untested = 0;
    for (name, folder) in workspace::crates() {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        if !manifest.lines().any(|line| line == "doctest = false") {
            continue;
        }
        untested += 1;
        for file in workspace::sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).expect("a source file can be read");
            assert_eq!(examples(&text), 0, "{} has an example, but {name} does not test examples", file.display());
        }
    }
    assert!(untested > 5, "only {untested} crates have no examples");
}

/// Counts only code blocks that `cargo test` would run.
fn examples(text: &str) -> usize {
    let (mut count, mut is_inside) = (0, false);
    let comments = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
    });
    for fence in comments.filter_map(|line| line.trim_start().strip_prefix("```")) {
        let is_code = ["", "rust", "no_run", "should_panic", "compile_fail", "edition"]
            .iter()
            .any(|word| fence == *word || (!word.is_empty() && fence.starts_with(word)));
        count += usize::from(!is_inside && is_code);
        is_inside = !is_inside;
    }
    count
}

#[test]
fn examples_are_distinguished() {
    assert_eq!(examples("/// ```\n/// let a = 1;\n/// ```\n//! ```no_run\n//! ```\nfn a() {}"), 2);
    assert_eq!(examples("//! ```text\n//! a layout\n//! ```\n// ```\n/// words"), 0);
}
