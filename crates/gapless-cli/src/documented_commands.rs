//! Checks that every command and option named by a document exists.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use gapless_testkit::documents::{self, Document, DocumentPiece};

const FOREIGN: &[&str] = &[
    "--cfg",
    "--example",
    "--features",
    "--internals",
    "--list",
    "--no-second-pass",
    "--offer",
    "--release",
    "--test",
    "--trace",
    "--workspace",
];

#[test]
fn documented_commands_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate lies in <root>/crates/");
    let mut program = crate::Arguments::command();
    program.build();
    let (mut wrong, mut looked_at) = (Vec::new(), 0);
    // Peer programs have options of their own.
    let is_of_peer = |path: &Path| path.starts_with(root.join("benchmarks/peers"));
    for path in documents::of_workspace(root).into_iter().filter(|path| !is_of_peer(path)) {
        let text = std::fs::read_to_string(&path).expect("a document can be read");
        let document = Document::parse(&text);
        let shown = path.strip_prefix(root).expect("it lies in the workspace").display();
        looked_at += document.code.len() + document.commands.len();
        let unknown_names = unknown_names(&program, &document);
        wrong.extend(
            unknown_names.into_iter().map(|(piece, what)| format!("{shown}:{}: {}: {what}", piece.line, piece.text)),
        );
    }
    assert!(looked_at > 1_000, "only {looked_at} pieces were looked at");
    assert!(wrong.is_empty(), "{} commands of documents are none:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn wrong_command_is_found() {
    let mut program = crate::Arguments::command();
    program.build();
    let text = "`gapless top --once`, `gapless topple`, `gapless journal verify --twice DIR`, `--no-such-option`\n\
                ```sh\ncargo run --release -- bench nothing\necho x | gapless stream publish --directory d && true\n\
                for m in 1 2; do gapless cluster begin m & done\n```\n";
    let document = Document::parse(text);
    let found = unknown_names(&program, &document);
    let found = found.into_iter().map(|(piece, what)| (piece.line, what)).collect::<Vec<_>>();
    let lines = found.iter().map(|(line, _)| *line).collect::<Vec<_>>();
    assert_eq!(lines, [1, 1, 1, 3, 5], "{found:?}");
}

fn unknown_names<'a>(program: &Command, document: &'a Document) -> Vec<(&'a DocumentPiece, String)> {
    let mut all = FOREIGN.iter().map(|option| (*option).to_owned()).collect();
    options_below(program, &mut all);
    let mut unknown_names = Vec::new();
    for piece in document.code.iter().chain(&document.commands) {
        let lone = piece.text.split([' ', '=', '[']).next().unwrap_or_default();
        if lone.starts_with("--") && lone.len() > 2 && !all.contains(lone) {
            unknown_names.push((piece, format!("no command has {lone}")));
        }
        // A quoted text is one value, not several words.
        let unquoted = piece.text.split('"').step_by(2).collect::<Vec<_>>().concat();
        for line in unquoted.split(['|', ';', '&']) {
            let mut words = line.split_whitespace().skip_while(|word| *word == "do" || word.contains('='));
            let is_ours = match words.next() {
                Some("gapless") => true,
                // A program of another package has options of its own.
                Some("cargo") => {
                    let is_other = line.contains("--example") || line.contains(" -p ") || !line.contains(" run ");
                    !is_other && words.any(|word| word == "--")
                }
                _ => false,
            };
            if is_ours && let Err(what) = check(program, words) {
                unknown_names.push((piece, what));
            }
        }
    }
    unknown_names
}

fn check<'a>(program: &Command, words: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut at = program;
    let mut options = BTreeSet::new();
    options_of(at, &mut options);
    for word in words.take_while(|word| *word != "--") {
        if word.starts_with('-') && word.len() > 1 {
            let option = word.split('=').next().unwrap_or(word);
            let is_number = option[1..].parse::<f64>().is_ok();
            if !is_number && !options.contains(option) {
                return Err(format!("{} has no {option}", at.get_name()));
            }
        } else if let Some(next) = at.find_subcommand(word) {
            at = next;
            if at.get_arguments().any(|argument| argument.is_hide_set() && argument.is_trailing_var_arg_set()) {
                return Ok(());
            }
            options_of(at, &mut options);
        } else if at.has_subcommands() {
            if word.starts_with(|c: char| c.is_ascii_lowercase()) {
                return Err(format!("{} has no subcommand {word}", at.get_name()));
            }
            return Ok(());
        }
    }
    Ok(())
}

fn options_of(command: &Command, into: &mut BTreeSet<String>) {
    into.extend(["--help", "-h", "--version", "-V"].map(str::to_owned));
    for argument in command.get_arguments() {
        into.extend(argument.get_long_and_visible_aliases().into_iter().flatten().map(|long| format!("--{long}")));
        into.extend(argument.get_all_aliases().into_iter().flatten().map(|long| format!("--{long}")));
        into.extend(argument.get_short_and_visible_aliases().into_iter().flatten().map(|short| format!("-{short}")));
    }
}

fn options_below(command: &Command, into: &mut BTreeSet<String>) {
    options_of(command, into);
    command.get_subcommands().for_each(|command| options_below(command, into));
}
