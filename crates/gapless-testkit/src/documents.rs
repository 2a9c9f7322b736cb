//! Code and links of documents with their lines, for the house tests. Knows fenced blocks, backticks, links and
//! headings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPiece {
    /// Line, from 1.
    pub line: usize,
    /// Text as written; a line break is a blank.
    pub text: String,
}

#[derive(Debug, Default)]
pub struct Document {
    /// Code between backticks in the running text.
    pub code: Vec<DocumentPiece>,
    /// Fenced shell blocks, without comments.
    pub commands: Vec<DocumentPiece>,
    pub blocks: String,
    pub links: Vec<DocumentPiece>,
    pub anchors: BTreeSet<String>,
}

/// Finds documents in `root`, in `docs`, in `benchmarks` and of the fuzzer.
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
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut document = Self::default();
        // Language of the current block.
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
                    document.commands.push(DocumentPiece { line: number + 1, text });
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
                    self.code.push(DocumentPiece { line, text: code.split_whitespace().collect::<Vec<_>>().join(" ") });
                    line += code.matches('\n').count();
                    rest = &behind[end + 1..];
                }
                _ => {
                    if let Some(target) = behind.strip_prefix('(').and_then(|target| target.split(')').next()) {
                        self.links.push(DocumentPiece { line, text: target.to_owned() });
                    }
                }
            }
        }
    }
}

/// Follows the site that renders these documents.
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
    fn pieces_are_found_with_their_lines() {
        let text = "# A `b`\n\nsee [it](x.md#y) and `one\ntwo`.\n\n```sh\ngapless top # now\n# no\n```\n```rust\n`no`\n```\n`end`";
        let document = Document::parse(text);
        let piece = |line, text: &str| DocumentPiece { line, text: text.to_owned() };
        assert_eq!(document.code, [piece(1, "b"), piece(3, "one two"), piece(13, "end")]);
        assert_eq!(document.commands, [piece(7, "gapless top")]);
        assert_eq!(document.links, [piece(3, "x.md#y")]);
        assert!(document.anchors.contains("a-b"), "{:?}", document.anchors);
    }
}
