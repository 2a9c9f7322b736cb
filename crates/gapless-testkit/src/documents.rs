//! Documents as the checks of the house read them: pieces of code and links, each with its line.
//!
//! It knows as much of Markdown as these documents use: fenced blocks, code between backticks, links, headings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A piece of a document and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Line of the document, from 1.
    pub line: usize,
    /// As it is written; a break of the line is a blank.
    pub text: String,
}

/// What a document names.
#[derive(Debug, Default)]
pub struct Document {
    /// What stands between backticks in the running text.
    pub code: Vec<Piece>,
    /// The lines of fenced blocks of a shell, without comments.
    pub commands: Vec<Piece>,
    /// All other fenced blocks.
    pub blocks: String,
    /// Where links lead to.
    pub links: Vec<Piece>,
    /// The anchors of its headings.
    pub anchors: BTreeSet<String>,
}

/// The documents of a workspace below `root`: those at its head, in `docs`, in `benchmarks` and of the fuzzer.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn of_workspace(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("docs"), root.join("benchmarks")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "fuzz/README.md"].map(|name| root.join(name)));
    found.sort();
    found
}

impl Document {
    /// Reads a document.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut document = Self::default();
        // The language of the fenced block that a line stands in.
        let mut fence: Option<&str> = None;
        let mut running = String::new();
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            if let Some(language) = trimmed.strip_prefix("```") {
                fence = if fence.is_some() { None } else { Some(language.trim()) };
                running.push('\n');
                continue;
            }
            match fence {
                Some("sh" | "bash" | "console") if !trimmed.is_empty() && !trimmed.starts_with('#') => {
                    let text = trimmed.split(" # ").next().unwrap_or(trimmed).trim().to_owned();
                    document.commands.push(Piece { line: number + 1, text });
                }
                Some(_) => {
                    document.blocks.push_str(line);
                    document.blocks.push('\n');
                }
                None => {
                    if let Some(heading) = line.strip_prefix('#') {
                        document.anchors.insert(anchor(heading.trim_start_matches('#')));
                    }
                    running.push_str(line);
                }
            }
            running.push('\n');
        }
        document.read_running_text(&running);
        document
    }

    fn read_running_text(&mut self, text: &str) {
        let mut line = 1;
        let mut rest = text;
        while let Some(at) = rest.find(['`', '\n', ']']) {
            let (mark, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
            rest = behind;
            match mark {
                b'\n' => line += 1,
                b'`' => {
                    let Some(end) = behind.find('`') else { break };
                    let code = &behind[..end];
                    self.code.push(Piece { line, text: code.split_whitespace().collect::<Vec<_>>().join(" ") });
                    line += code.matches('\n').count();
                    rest = &behind[end + 1..];
                }
                _ => {
                    if let Some(target) = behind.strip_prefix('(').and_then(|target| target.split(')').next()) {
                        self.links.push(Piece { line, text: target.to_owned() });
                    }
                }
            }
        }
    }
}

/// The anchor of a heading, as it is made where these documents are read.
#[must_use]
pub fn anchor(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_commands_links_and_headings_are_found_with_their_lines() {
        let text = "# A `b`\n\nsee [it](x.md#y) and `one\ntwo`.\n\n```sh\ngapless top # now\n# no\n```\n```rust\n`no`\n```\n`end`";
        let document = Document::parse(text);
        let piece = |line, text: &str| Piece { line, text: text.to_owned() };
        assert_eq!(document.code, [piece(1, "b"), piece(3, "one two"), piece(13, "end")]);
        assert_eq!(document.commands, [piece(7, "gapless top")]);
        assert_eq!(document.links, [piece(3, "x.md#y")]);
        assert!(document.anchors.contains("a-b"), "{:?}", document.anchors);
    }
}
