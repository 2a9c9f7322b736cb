//! `gapless schema`: generates Rust and protobuf from SBE schemas, or checks them.

use super::Outcome;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write NAME.rs and NAME.proto for a schema
    #[command(after_help = "Example:\n  gapless schema generate messages.xml --output src/generated")]
    Generate {
        /// The SBE schema
        schema: PathBuf,
        /// Folder to write to
        #[arg(long, short, default_value = ".")]
        output: PathBuf,
    },
    /// Say what is wrong with a schema, or what is in it
    #[command(after_help = "Example:\n  gapless schema check messages.xml")]
    Check {
        /// The SBE schema
        schema: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let text = match &arguments.action {
        Action::Generate { schema, output } => gapless_schema::generate::generate(schema, output)?,
        Action::Check { schema } => gapless_schema::generate::check(schema)?,
    };
    println!("{text}");
    Ok(())
}
