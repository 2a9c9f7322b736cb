//! `gapless schema`: generates Rust and protobuf from SBE schemas, or checks them.

use super::Outcome;
use clap::{Args, Subcommand};
use gapless_schema::generate::Generator;
use std::path::{Path, PathBuf};

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
        /// Leave the protobuf form out: ids may be 0 and 19000 to 19999 then, which protobuf cannot number
        #[arg(long)]
        sbe_only: bool,
    },
    /// Say what is wrong with a schema, or what is in it
    #[command(after_help = "Example:\n  gapless schema check messages.xml")]
    Check {
        /// The SBE schema
        schema: PathBuf,
        /// Without a protobuf form, and its limits of ids
        #[arg(long)]
        sbe_only: bool,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let text = match &arguments.action {
        Action::Generate { schema, output, sbe_only } => generator(schema, *sbe_only).generate_into(output)?,
        Action::Check { schema, sbe_only } => {
            format!("{}: {}", schema.display(), generator(schema, *sbe_only).check()?)
        }
    };
    println!("{text}");
    Ok(())
}

fn generator(schema: &Path, sbe_only: bool) -> Generator {
    let generator = Generator::new().schema_file(schema);
    if sbe_only { generator.without_protobuf() } else { generator }
}
