//! The `gapless` program: one file for each subcommand under [`commands`], no logic of its own.
//!
//! Errors are printed in one line and end the program with 1; wrong options end it with 2.

#![forbid(unsafe_code)]

mod commands;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Puts messages in one total order, never loses one, and runs services on them.
#[derive(Parser)]
#[command(name = "gapless", version, propagate_version = false, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure this machine with the canonical benchmark, or its parts one by one
    Bench(commands::bench::Arguments),
    /// Generate Rust and protobuf from SBE schemas, or check them
    Schema(commands::schema::Arguments),
}

fn main() -> ExitCode {
    // Warnings of the engine go to stderr; standard output belongs to results.
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing_subscriber::filter::LevelFilter::WARN).init();
    let done = match Arguments::parse().command {
        Command::Bench(arguments) => commands::bench::run(&arguments),
        Command::Schema(arguments) => commands::schema::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gapless: {error}");
            ExitCode::FAILURE
        }
    }
}
