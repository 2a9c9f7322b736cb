//! Locates a stream: by its configuration file, or by the directory of one over shared memory.

use crate::commands::UsageError;
use clap::Args;
use gapless_agent::regular_file::read_piped_text;
use gapless_client::StreamConfig;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::soup::Field;
use std::path::PathBuf;

const VARIABLE: &str = "GAPLESS_STREAM";

#[derive(Args)]
pub(super) struct StreamLocation {
    /// Configuration file of the stream [env: GAPLESS_STREAM]
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    config: Option<PathBuf>,
    /// Directory of a stream over shared memory at tier journal, instead of a file
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

impl StreamLocation {
    pub(super) fn config(&self) -> Result<StreamConfig, Box<dyn std::error::Error>> {
        config(self.config.as_ref(), self.directory.as_slice())
    }
}

/// Location of a node's stream; the node connects to the leader.
#[derive(Args)]
pub(super) struct NodeLocation {
    /// Configuration file of the stream [env: GAPLESS_STREAM]
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    config: Option<PathBuf>,
    /// Directory of a stream over shared memory at tier journal, instead of a file; repeatable for a cluster's local
    /// members
    #[arg(long, value_name = "DIRECTORY")]
    directory: Vec<PathBuf>,
    /// User name, for a stream with users; overrides `node.username` of the file
    #[arg(long, value_name = "NAME", requires = "password_file")]
    username: Option<String>,
    /// File with the user's password in its first line; overrides `node.password`
    #[arg(long, value_name = "FILE", requires = "username")]
    password_file: Option<PathBuf>,
}

impl NodeLocation {
    pub(super) fn config(&self) -> Result<StreamConfig, Box<dyn std::error::Error>> {
        let mut config = config(self.config.as_ref(), &self.directory)?;
        if let (Some(user), Some(file)) = (&self.username, &self.password_file) {
            let name = file.display();
            let text = read_piped_text(file).map_err(|error| format!("reading {name}: {error}"))?;
            let password = text.lines().next().ok_or_else(|| format!("the password in {name}: it is empty"))?;
            config.node.username =
                Field::new(user).map_err(|error| UsageError(format!("--username {user}: {error}")))?;
            // The error must not contain the password.
            config.node.password = Field::new(password).map_err(|error| format!("the password in {name}: {error}"))?;
        }
        Ok(config)
    }
}

fn config(file: Option<&PathBuf>, directories: &[PathBuf]) -> Result<StreamConfig, Box<dyn std::error::Error>> {
    if let Some((first, others)) = directories.split_first() {
        return Ok(StreamConfig::in_directory(first).or_in(others.iter().cloned()));
    }
    let named = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    match file.cloned().or_else(named) {
        Some(file) => {
            let config = StreamConfig::load(file)?;
            // Every command refuses an invalid file, even if it does not use the wrong part.
            EventStreamOptions::from_config(&config)?;
            Ok(config)
        }
        None => Err(UsageError(format!("--config FILE or --directory DIRECTORY is expected, or {VARIABLE}")).into()),
    }
}
