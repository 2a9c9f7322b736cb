//! Damages to the files of a directory, and the page with their outcomes.

use gapless_journal::descriptor as d;
use gapless_testkit::random::{printed_seed, rounds};
use gapless_testkit::reference;
use gapless_testkit::wait::until;
use gapless_wire::checksum::crc32c;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

pub(crate) use gapless_testkit::wait::PATIENCE;

const PAGE: &str = "damages.md";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    Remove,
    Truncate,
    Exchange,
    OldCopy,
    Foreign,
    Flip,
}

pub(crate) const DAMAGES: [Damage; 6] =
    [Damage::Remove, Damage::Truncate, Damage::Exchange, Damage::OldCopy, Damage::Foreign, Damage::Flip];

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Remove => "removed",
            Self::Truncate => "cut short",
            Self::Exchange => "exchanged for its neighbour",
            Self::OldCopy => "an older copy of it",
            Self::Foreign => "another stream's",
            Self::Flip => "one bit changed",
        })
    }
}

pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let inner = files(&entry.path()).into_iter().map(|path| Path::new(&entry.file_name()).join(path));
            found.extend(inner);
        } else {
            found.push(PathBuf::from(entry.file_name()));
        }
    }
    found.sort();
    found
}

/// Like `cp -r`, perhaps of a running original: sockets become empty files, and a vanished file restarts the copy.
pub(crate) fn copy(from: &Path, to: &Path) {
    until("a copy", || {
        let _absent = std::fs::remove_dir_all(to);
        files(from).iter().all(|file| {
            std::fs::create_dir_all(to.join(file).parent().unwrap()).unwrap();
            let metadata = std::fs::symlink_metadata(from.join(file));
            let is_socket = metadata.is_ok_and(|metadata| metadata.file_type().is_socket());
            if is_socket {
                std::fs::write(to.join(file), []).is_ok()
            } else {
                std::fs::copy(from.join(file), to.join(file)).is_ok()
            }
        })
    });
}

pub(crate) fn put(from: &Path, path: &Path) -> bool {
    let is_there = from.exists();
    if is_there {
        std::fs::copy(from, path).unwrap();
    }
    is_there
}

pub(crate) fn put_other(from: &Path, path: &Path) -> bool {
    from.exists() && std::fs::read(from).unwrap() != std::fs::read(path).unwrap() && put(from, path)
}

pub(crate) fn truncate(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

pub(crate) fn flip(path: &Path, place: impl FnOnce(&File) -> u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let position = place(&file);
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).unwrap();
    file.write_all_at(&[byte[0] ^ 4], position).unwrap();
}

pub(crate) fn newest_history_slot(file: &File) -> u64 {
    newest_slot(file, 2048)
}

pub(crate) fn newest_slot(file: &File, second: u64) -> u64 {
    let generation = |at: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at + 8).unwrap();
        u64::from_le_bytes(bytes)
    };
    if generation(0) > generation(second) { 0 } else { second }
}

pub(crate) fn other_boot(journal: &Path) {
    for file in files(journal) {
        let Some(_) = d::parse_file_name(file.to_str().unwrap()) else { continue };
        let file = OpenOptions::new().read(true).write(true).open(journal.join(file)).unwrap();
        let mut slot = Vec::new();
        for word in [0xb007_u64, 0, 1] {
            slot.extend_from_slice(&word.to_le_bytes());
        }
        let check = 1_u64 << 32 | u64::from(crc32c(&slot));
        slot.extend_from_slice(&check.to_le_bytes());
        slot.resize(64, 0);
        file.write_all_at(&slot, d::BOOT_MARK_OFFSET as u64).unwrap();
    }
}

/// Returns the rows of the section with this heading.
fn rows_below(heading: &str, page: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).expect("the page has the heading");
    section.lines().filter(|line| is_row(line)).map(str::to_owned).collect()
}

fn is_row(line: &str) -> bool {
    line.starts_with("| ") && !line.starts_with("| file |")
}

/// Returns the page with these rows below the heading.
fn with_rows(heading: &str, page: &str, rows: &[&String]) -> String {
    let mut is_section = false;
    let mut lines: Vec<&str> = Vec::new();
    for line in page.lines() {
        if let Some(other) = line.strip_prefix("## ") {
            is_section = other.starts_with(heading);
        }
        if !(is_section && is_row(line)) {
            lines.push(line);
        }
        if is_section && line.starts_with("|---") {
            lines.extend(rows.iter().map(|row| row.as_str()));
        }
    }
    lines.join("\n") + "\n"
}

/// All of the damage matrix if `GAPLESS_FULL` is set, else every tenth case, from one selected by the seed.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    interval: u64,
    first: u64,
}

impl Share {
    pub(crate) fn seeded() -> Self {
        let interval = rounds(1, 10);
        Self { interval, first: printed_seed() % interval }
    }

    /// Includes each damage, because neighbours in the order have the same damage.
    pub(crate) fn cases<K: Copy>(self, kinds: &[K]) -> Vec<(K, Damage)> {
        let all = DAMAGES.into_iter().flat_map(|damage| kinds.iter().map(move |kind| (*kind, damage)));
        (0..).zip(all).filter(|(number, _)| number % self.interval == self.first).map(|(_, case)| case).collect()
    }
}

pub(crate) type Row = (String, Option<String>);

pub(crate) fn case_name(kind: impl fmt::Display, damage: impl fmt::Display) -> String {
    format!("| {kind} | {damage} |")
}

/// Checks that the page has all found rows under the heading, and no others of the tried cases. With `GAPLESS_FULL` and
/// [`reference::WRITE`] it writes them.
pub(crate) fn check_against_page(heading: &str, share: Share, tried: &[Row]) {
    let found: Vec<&String> = tried.iter().filter_map(|(_, line)| line.as_ref()).collect();
    println!("{heading}: {} cases tried, {} of them possible", tried.len(), found.len());
    assert!(!found.is_empty(), "none of {tried:?} can be done");
    if reference::is_written() {
        assert_eq!(share.interval, 1, "all rows are needed: set GAPLESS_FULL=1");
        return reference::update(PAGE, |page| with_rows(heading, page, &found));
    }
    let page = std::fs::read_to_string(reference::path(PAGE)).unwrap();
    let is_tried = |line: &String| share.interval == 1 || tried.iter().any(|(name, _)| line.starts_with(name));
    let expected: Vec<String> = rows_below(heading, &page).into_iter().filter(is_tried).collect();
    let differing: Vec<&String> = found.iter().copied().filter(|line| !expected.contains(line)).collect();
    let missing: Vec<&String> = expected.iter().filter(|line| !found.contains(line)).collect();
    assert!(
        differing.is_empty() && missing.is_empty(),
        "found but not in docs/reference/{PAGE}:\n{}\nin the page but not found:\n{}",
        differing.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n"),
        missing.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n"),
    );
}
