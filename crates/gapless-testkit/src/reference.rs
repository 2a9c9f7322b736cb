//! Generated pages in `docs/reference`: a test makes each from the code and compares it with the committed page.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Environment variable that lets the tests write the pages.
pub const WRITE: &str = "GAPLESS_WRITE_REFERENCE";

static PAGES: Mutex<()> = Mutex::new(());

/// Returns the path of a page.
#[must_use]
pub fn path(page: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up").to_path_buf();
    root.join("docs/reference").join(page)
}

/// Returns whether the tests write the pages instead of comparing them.
#[must_use]
pub fn is_written() -> bool {
    std::env::var_os(WRITE).is_some()
}

/// Returns the first lines of a page: heading, source and the command that writes it.
#[must_use]
pub fn head(title: &str, source: &str, test: &str) -> String {
    format!("# {title}\n\nGenerated from {source} by `{WRITE}=1 cargo test {test}`. Do not edit.\n")
}

/// Compares `text` with the committed page, or writes it.
///
/// # Panics
/// If they differ, with the first line that does, or if the page cannot be read or written.
pub fn check(page: &str, text: &str) {
    update(page, |_| text.to_owned());
}

/// Compares the page with the result of `change` on it, or writes that. Tests of one process take turns.
///
/// # Panics
/// As [`check`].
pub fn update(page: &str, change: impl FnOnce(&str) -> String) {
    let _turn = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path(page);
    let committed = match std::fs::read_to_string(&path) {
        Err(_) if is_written() => String::new(),
        read => read.unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    };
    let text = change(&committed);
    if is_written() {
        std::fs::write(&path, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    if let Some(difference) = first_difference(&committed, &text) {
        panic!(
            "docs/reference/{page} does not match the code, {difference}\nThe page's first lines have the command that writes it."
        );
    }
}

fn first_difference(committed: &str, generated: &str) -> Option<String> {
    let (mut ours, mut theirs) = (committed.lines(), generated.lines());
    (1..).find_map(|line| match (ours.next(), theirs.next()) {
        (None, None) => Some(None),
        (Some(one), Some(other)) if one == other => None,
        (one, other) => {
            let [one, other] = [one, other].map(|text| text.unwrap_or("(end)"));
            Some(Some(format!("line {line}:\n- {one}\n+ {other}")))
        }
    })?
}

/// Appends a row of a table. A bar in a cell is escaped, a line break becomes a blank.
pub fn row<const COLUMNS: usize>(page: &mut String, cells: [&str; COLUMNS]) {
    let cells = cells.map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"));
    writeln!(page, "| {} |", cells.join(" | ")).expect("a text takes it");
}

/// Appends a heading with the head of a table below.
pub fn table<const COLUMNS: usize>(page: &mut String, heading: &str, columns: [&str; COLUMNS]) {
    write!(page, "\n## {heading}\n\n").expect("a text takes it");
    row(page, columns);
    writeln!(page, "|{}", "---|".repeat(COLUMNS)).expect("a text takes it");
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn first_differing_line_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").as_deref(), Some("line 2:\n- b\n+ c"));
        assert_eq!(first_difference("a\n", "a\nc\n").as_deref(), Some("line 2:\n- (end)\n+ c"));
    }
}
