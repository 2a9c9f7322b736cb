//! Options that are built only for the subcommand of the command line: building all takes longer than most commands
//! run.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ops::Deref;

/// Clap builds the options when it meets that subcommand, or prints its help. The attribute `defer` of `Subcommand`
/// does the same, but lets comments on structures of options replace the help of the subcommand.
pub(crate) struct Deferred<T>(T);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(build::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

/// The subcommand's own texts replace those of its arguments, as without delay.
fn build<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    let after_help = command.get_after_help().cloned();
    let mut command = T::augment_args(command);
    if let Some(about) = about {
        command = command.about(about).long_about(None);
    }
    if let Some(long_about) = long_about {
        command = command.long_about(long_about);
    }
    if let Some(after_help) = after_help {
        command = command.after_help(after_help);
    }
    command
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Parser, Subcommand};

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        action: Action,
    }

    #[derive(Subcommand)]
    enum Action {
        /// Adds a member
        #[command(after_help = "Example: add 3")]
        Add(Deferred<Member>),
        /// Removes a member
        Remove(Deferred<Member>),
    }

    /// One member.
    ///
    /// More about it.
    #[derive(Args)]
    #[command(after_help = "Members have numbers.")]
    struct Member {
        /// Number of the member
        number: u32,
    }

    fn help(of: &str) -> String {
        let Err(help) = Program::try_parse_from(["program", of, "--help"]) else { panic!("the help is no command") };
        help.to_string()
    }

    #[test]
    fn only_the_met_subcommand_is_built() {
        let command = Program::command();
        assert_eq!(command.get_subcommands().map(|command| command.get_arguments().count()).sum::<usize>(), 0);
        let Ok(program) = Program::try_parse_from(["program", "remove", "7"]) else { panic!("7 is a number") };
        let Action::Remove(member) = program.action else { panic!("another subcommand") };
        assert_eq!(member.number, 7);
    }

    #[test]
    fn help_is_the_subcommands() {
        let add = help("add");
        assert!(add.starts_with("Adds a member\n") && add.contains("<NUMBER>"), "{add}");
        assert!(add.contains("Example: add 3") && !add.contains("Members have numbers."), "{add}");
        let remove = help("remove");
        assert!(remove.starts_with("Removes a member\n") && remove.contains("Members have numbers."), "{remove}");
    }

    #[test]
    fn the_whole_is_built_on_request() {
        let mut command = Program::command();
        command.build();
        for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
            assert!(subcommand.get_arguments().any(|argument| argument.get_id() == "number"), "{subcommand}");
        }
    }
}
