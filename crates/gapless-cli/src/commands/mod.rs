//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod schema;

/// What a subcommand ends with.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;
