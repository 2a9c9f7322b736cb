//! Addresses the member of a command, and sends it requests.

use clap::Args;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, StatusReport, ask, ask_within};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A member's file.
#[derive(Args)]
pub(super) struct MemberFile {
    /// File of the member, or its directory
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

#[derive(Debug)]
pub(super) struct NoMemberError(PathBuf);

impl std::fmt::Display for NoMemberError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: no member was ever there", self.0.display())
    }
}

impl Error for NoMemberError {}

/// Files of members.
#[derive(Args)]
pub(super) struct MemberFileList {
    /// Files or directories of members, including the leader
    #[arg(value_name = "FILE", required = true)]
    members: Vec<PathBuf>,
}

impl MemberFileList {
    pub fn all(&self) -> Vec<MemberFile> {
        self.members.iter().map(|path| MemberFile::at(path)).collect()
    }
}

impl MemberFile {
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn config(&self) -> Result<ClusterConfig, Box<dyn Error>> {
        if self.path.is_dir() {
            let path = self.path.display();
            return Err(
                format!("{path} is a directory; the member's file is expected, such as orders/member-1.toml").into()
            );
        }
        Ok(ClusterConfig::load(&self.path)?)
    }

    pub fn directory(&self) -> Result<PathBuf, Box<dyn Error>> {
        if self.path.is_dir() {
            return Ok(self.path.clone());
        }
        let config = self.config()?;
        Ok(config.stream().directory().map(Path::to_path_buf).unwrap_or_default())
    }

    pub fn ask(&self, request: &AdminRequest) -> Result<AdminAnswer, Box<dyn Error>> {
        Ok(ask(&self.place_of_member()?, request)?)
    }

    pub fn ask_within(&self, request: &AdminRequest, timeout: Duration) -> Result<AdminAnswer, Box<dyn Error>> {
        Ok(ask_within(&self.place_of_member()?, request, timeout)?)
    }

    fn place_of_member(&self) -> Result<PathBuf, Box<dyn Error>> {
        let directory = self.directory()?;
        if !directory.is_dir() {
            return Err(NoMemberError(directory).into());
        }
        Ok(directory)
    }

    pub fn status(&self) -> Result<StatusReport, Box<dyn Error>> {
        match self.ask(&AdminRequest::Status)? {
            AdminAnswer::Status(report) => Ok(*report),
            AdminAnswer::Refused(reason) => Err(reason.into()),
            AdminAnswer::Begun | AdminAnswer::Snapshot { .. } => Err("the member answers something else".into()),
        }
    }
}
