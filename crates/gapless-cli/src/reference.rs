//! Generates `docs/reference/commands.md` from the program's commands.

use clap::{Arg, Command, CommandFactory as _};
use gapless_testkit::reference;
use std::fmt::Write as _;

#[test]
fn commands_match_reference() {
    let mut program = crate::Arguments::command();
    program.build();
    let mut page = reference::head(
        "Commands",
        "the options of the program",
        "-p gapless-cli --bin gapless commands_match_reference",
    );
    page += "\n`gapless COMMAND --help` adds examples. Exit code 2 is an error in the command line.\n";
    append(&mut page, &program, "gapless");
    reference::check("commands.md", &page);
}

/// Appends a command and those below it.
fn append(page: &mut String, command: &Command, name: &str) {
    let subcommands = || command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let arguments: Vec<&Arg> = command.get_arguments().filter(|argument| is_shown(argument)).collect();
    write!(
        page,
        "\n## {name}\n\n{}.\n",
        command.get_about().expect("a command has a text").to_string().trim_end_matches('.')
    )
    .expect("a text takes it");
    if !arguments.is_empty() {
        page.push('\n');
        reference::row(page, ["argument", "default", "meaning"]);
        page.push_str("|---|---|---|\n");
        for argument in arguments {
            let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            let is_flag = !argument.get_action().takes_values();
            let default = if is_flag { String::new() } else { defaults.join(" ") };
            reference::row(page, [&format!("`{}`", shown(argument)), &default, &meaning(argument)]);
        }
    }
    if let Some(codes) = command.get_after_help().and_then(|text| exit_codes(&text.to_string())) {
        write!(page, "\n{codes}\n").expect("a text takes it");
    }
    // Benchmarks last.
    let is_bench = |subcommand: &&Command| subcommand.get_name() == "bench";
    for subcommand in subcommands().filter(|one| !is_bench(one)).chain(subcommands().filter(is_bench)) {
        append(page, subcommand, &format!("{name} {}", subcommand.get_name()));
    }
}

/// Returns the sentences about exit codes in the help of a command.
fn exit_codes(help: &str) -> Option<String> {
    let start = help.find("Exit codes:")?;
    let paragraph = help[start..].split("\n\n").next()?;
    Some(paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
}

/// Returns the argument as a command line has it: `-f, --follow`, `--limit <N>`, `[ROUTE]...`.
fn shown(argument: &Arg) -> String {
    let text = argument.to_string();
    match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(_)) => format!("-{short}, {text}"),
        _ => text,
    }
}

/// Returns its help with the possible values.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let values = argument.get_possible_values();
    if values.is_empty() || !argument.get_action().takes_values() {
        return help;
    }
    let names: Vec<_> =
        values.iter().filter(|value| !value.is_hide_set()).map(|value| format!("`{}`", value.get_name())).collect();
    format!("{help}: {}", names.join(", "))
}
