//! Which stream is meant: a file that configures it, or the directory of one over shared memory.

use crate::commands::Usage;
use clap::Args;
use gapless::stream::StreamConfig;
use std::path::PathBuf;

/// Names the file where `--config` does not.
const VARIABLE: &str = "GAPLESS_STREAM";

#[derive(Args)]
pub(super) struct Place {
    /// The stream's file [env: GAPLESS_STREAM]
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    config: Option<PathBuf>,
    /// The directory of a stream over shared memory at tier journal, instead of a file
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

impl Place {
    pub(super) fn config(&self) -> Result<StreamConfig, Box<dyn std::error::Error>> {
        if let Some(directory) = &self.directory {
            return Ok(StreamConfig::in_directory(directory));
        }
        let named = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        match self.config.clone().or_else(named) {
            Some(file) => Ok(StreamConfig::load(file)?),
            None => Err(Usage(format!("--config FILE or --directory DIRECTORY is expected, or {VARIABLE}")).into()),
        }
    }
}
