//! `gapless schema`: generates Rust and protobuf from SBE schemas, or checks them.

use super::{CommandResult, print, to_stderr};
use clap::{Args, Subcommand};
use gapless_schema::generate::Generator;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: SchemaAction,
}

#[derive(Subcommand)]
enum SchemaAction {
    /// Write NAME.rs and NAME.proto for a schema
    #[command(after_help = "Example:\n  gapless schema generate messages.xml --output src/generated")]
    Generate {
        /// File of the SBE schema
        schema: PathBuf,
        /// Directory to write to
        #[arg(long, short, default_value = ".")]
        output: PathBuf,
        /// Omit the protobuf form; ids may then be 0 and 19000 to 19999, which protobuf forbids
        #[arg(long)]
        sbe_only: bool,
    },
    /// Check schemas: print their errors or their content
    #[command(after_help = "Examples:\n  gapless schema check messages.xml\n  gapless schema check schemas/*.xml")]
    Check {
        /// Files of the SBE schemas
        #[arg(required = true, value_name = "SCHEMA")]
        schemas: Vec<PathBuf>,
        /// Omit the checks of the protobuf form, such as its id limits
        #[arg(long)]
        sbe_only: bool,
    },
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    match &arguments.action {
        SchemaAction::Generate { schema, output, sbe_only } => {
            print(&format!("{}\n", generator(schema, *sbe_only).generate_into(output)?))
        }
        SchemaAction::Check { schemas, sbe_only } => check(schemas, *sbe_only),
    }
}

fn check(schemas: &[PathBuf], sbe_only: bool) -> CommandResult {
    let mut wrong = Vec::new();
    for schema in schemas {
        match generator(schema, sbe_only).check() {
            Ok(text) => print(&format!("{}: {text}\n", schema.display()))?,
            Err(error) => wrong.push(error.to_string()),
        }
    }
    let Some(last) = wrong.pop() else { return Ok(()) };
    wrong.iter().for_each(|error| to_stderr!("gapless: {error}"));
    Err(last.into())
}

fn generator(schema: &Path, sbe_only: bool) -> Generator {
    let generator = Generator::new().schema_file(schema);
    if sbe_only { generator.without_protobuf() } else { generator }
}
