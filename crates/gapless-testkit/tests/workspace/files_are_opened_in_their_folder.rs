//! Paths are opened, renamed and removed with `gapless_agent::checked_file` or a `Folder`, so that a link, a pipe or an
//! endless file of another user does no harm. Exceptions are listed with their reasons.

use std::collections::BTreeSet;
use std::path::Path;

use super::rust_tokens::{self, Token, TokenKind};
use super::workspace;

/// Crates whose processes may have more rights than the owner of a folder.
const CRATES: [&str; 10] = [
    "gapless-cli",
    "gapless-client",
    "gapless-cluster",
    "gapless-cqrs",
    "gapless-engine",
    "gapless-journal",
    "gapless-rpc",
    "gapless-stream",
    "gapless-supervisor",
    "gapless-transport",
];

const REASONS: [(&str, &str); 14] = [
    (
        "gapless-cli/src/commands/request.rs",
        "an argument of the command line: `@FILE`, which may be a pipe; with a limit",
    ),
    ("gapless-cli/src/commands/stream/input.rs", "an argument of the command line, which may be a pipe; read by lines"),
    (
        "gapless-cli/src/commands/stream/text_file.rs",
        "an argument of the command line, which may be a link of its user",
    ),
    ("gapless-engine/src/output_record/program.rs", "the program's own executable: `/proc/self/exe`"),
    ("gapless-journal/src/unlinked.rs", "a file that never has a name: `O_TMPFILE`"),
    (
        "gapless-rpc/src/registry/instance_files.rs",
        "by the descriptor of the domain's directory, without following links",
    ),
    ("gapless-rpc/src/registry/directory.rs", "the domain's directory itself, which is checked by its descriptor"),
    ("gapless-supervisor/src/control_groups.rs", "control groups: files of the kernel"),
    ("gapless-supervisor/src/driver/changed_files.rs", "`/proc/PID/fdinfo`"),
    ("gapless-supervisor/src/process_facts.rs", "`/proc`, and control groups: files of the kernel"),
    ("gapless-supervisor/src/launch/dispositions.rs", "`/proc/self/status`"),
    (
        "gapless-supervisor/src/launch/input.rs",
        "the input of an instance, which may be a device; opened as the instance's user",
    ),
    (
        "gapless-supervisor/src/launch/notify_socket.rs",
        "a folder of the state directory, which its user alone may write",
    ),
    (
        "gapless-supervisor/src/state_directory",
        "`/proc`; folders of the state directory, which its user alone may write",
    ),
];

const OPENS: [(&str, &[&str]); 4] = [
    ("File", &["open", "create", "create_new", "options"]),
    ("OpenOptions", &["new"]),
    (
        "fs",
        &[
            "read",
            "read_to_string",
            "write",
            "copy",
            "open",
            "openat",
            "openat2",
            "remove_file",
            "remove_dir",
            "remove_dir_all",
            "rename",
        ],
    ),
    ("libc", &["open", "open64", "openat", "fopen", "creat"]),
];

/// Files that only the kernel makes.
const OF_THE_KERNEL: [&str; 3] = ["\"/proc/", "\"/sys/", "\"/dev/"];

#[test]
fn files_are_opened_in_their_folder() {
    let folder = workspace::root().join("crates");
    let (mut wrong, mut used, mut looked_at) = (Vec::new(), BTreeSet::new(), 0);
    for file in CRATES.iter().flat_map(|name| workspace::sources(&folder.join(name).join("src"))) {
        let name = file.strip_prefix(&folder).expect("the file is in the workspace").to_string_lossy().into_owned();
        if is_of_tests(Path::new(&name)) {
            continue;
        }
        looked_at += 1;
        let text = std::fs::read_to_string(&file).expect("a source file can be read");
        let opens = opens_in(&text);
        match REASONS.iter().find(|(of, _)| name.starts_with(of)) {
            Some((of, _)) if !opens.is_empty() => drop(used.insert(of)),
            _ => wrong.extend(opens.iter().map(|(line, open)| format!("{name}:{line}: {open}"))),
        }
    }
    assert!(looked_at > 150, "only {looked_at} files were read");
    let advice = "use gapless_agent::checked_file or folder::Folder";
    assert!(wrong.is_empty(), "{} direct opens; {advice}:\n{}", wrong.len(), wrong.join("\n"));
    let idle = REASONS.iter().filter(|(of, _)| !used.contains(of)).map(|(of, _)| *of).collect::<Vec<_>>();
    assert!(idle.is_empty(), "these open no file, and need no reason: {}", idle.join(", "));
}

/// Declared for tests alone.
pub fn is_of_tests(file: &Path) -> bool {
    let is_of_tests = |name: &str| name == "tests" || name.ends_with("_tests") || name == "documented_commands";
    file.with_extension("").iter().filter_map(|part| part.to_str()).any(is_of_tests)
}

/// Lines and names, without tests.
fn opens_in(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for item in rust_tokens::items(&rust_tokens::tokens(text)).1 {
        if !item.attributes.iter().any(|attribute| is_of_test(attribute)) {
            find(item.body, &mut found);
        }
    }
    found
}

pub fn is_of_test(attribute: &[Token<'_>]) -> bool {
    let mut words = Vec::new();
    rust_tokens::words(attribute, &mut words);
    words == ["cfg", "test"]
}

fn find(tokens: &[Token<'_>], found: &mut Vec<(usize, String)>) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenKind::Group(_, inside) = &token.kind {
            find(inside, found);
        }
        let Some((of, names)) = OPENS.iter().find(|(of, _)| token.is_word(of)) else { continue };
        let [Some(first), Some(second), Some(named)] = [1, 2, 3].map(|behind| tokens.get(at + behind)) else {
            continue;
        };
        if !first.is_mark(':') || !second.is_mark(':') {
            continue;
        }
        // `use std::fs::{read, write}` counts, too.
        let mut words = named.word().into_iter().collect::<Vec<_>>();
        rust_tokens::words(named.group('{').unwrap_or_default(), &mut words);
        let opens = words.into_iter().filter(|word| names.contains(word));
        let is_of_kernel = tokens.get(at + 4).and_then(|next| next.group('(')).is_some_and(begins_in_the_kernel);
        found.extend(opens.filter(|_| !is_of_kernel).map(|word| (token.line, format!("{of}::{word}"))));
    }
}

fn begins_in_the_kernel(arguments: &[Token<'_>]) -> bool {
    arguments.iter().find_map(first_text).is_some_and(|text| OF_THE_KERNEL.iter().any(|path| text.starts_with(path)))
}

fn first_text<'a>(token: &Token<'a>) -> Option<&'a str> {
    match &token.kind {
        TokenKind::Literal(text) => Some(text),
        TokenKind::Group(_, inside) => inside.iter().find_map(first_text),
        _ => None,
    }
}

#[test]
fn direct_opens_are_found() {
    let found = |text: &str| opens_in(text).into_iter().map(|(_, open)| open).collect::<Vec<_>>();
    assert_eq!(found("fn a() { std::fs::read(&path)?; }"), ["fs::read"]);
    assert_eq!(found("impl A { fn a() { if b { let f = File::options().read(true); } } }"), ["File::options"]);
    assert_eq!(found("use std::fs::{self, read_to_string, read_dir};"), ["fs::read_to_string"]);
    assert_eq!(found("fn a() { std::fs::remove_dir_all(b); fs::rename(c, d) }"), ["fs::remove_dir_all", "fs::rename"]);
    assert_eq!(found("use rustix::fs::open;"), ["fs::open"]);
    assert_eq!(found("fn a() { OpenOptions::new().append(true) }"), ["OpenOptions::new"]);
    for none in [
        "fn a() { std::fs::read(format!(\"/proc/{pid}/stat\")); fs::read_dir(a); HistoryFile::open(a); file.read() }",
        "#[cfg(test)] mod tests { fn a() { std::fs::write(a, b) } }",
    ] {
        assert_eq!(found(none), [""; 0], "{none}");
    }
}
