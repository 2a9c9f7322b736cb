//! `MemberDirectory`: locks the directory of a member, and checks that it belongs to this member of this cluster.

use crate::ClusterError;
use crate::config::{ClusterConfig, MemberKind};
use crate::consensus::MemberId;
use crate::member::member_environment::MemberEnvironment;
use crate::member::member_files::{Instances, MemberFiles, check_incarnation, check_not_removed};
use crate::member::snapshot_transfer::base_file;
use crate::member::snapshot_transfer::install::install;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalEnvironment, JournalError, JournalReader};
use gapless_log::StreamIdentity;
use gapless_stream::locked_directory::{DirectoryOwner, LockedDirectory};
use gapless_stream::options::EventStreamOptions;
use gapless_wire::fnv::fnv_128;
use std::path::Path;

pub(super) struct MemberDirectory {
    pub directory: LockedDirectory,
    pub layout: StreamLayout,
    pub files: MemberFiles,
    /// Instances of the other members' directories.
    pub instances: Instances,
    pub identity: StreamIdentity,
}

impl MemberDirectory {
    /// Locks the configured directory; installs a completed transfer.
    pub fn take(
        config: &ClusterConfig,
        options: &EventStreamOptions,
        has_service: bool,
        member_environment: &MemberEnvironment,
    ) -> Result<Self, ClusterError> {
        let stream_id = stream_id(&config.name);
        let root = options.directory.as_ref().expect("a replicated tier has a directory");
        let mut directory = LockedDirectory::lock(StreamLayout::new(root))?;
        let layout = directory.layout().clone();
        directory.check_owner(DirectoryOwner::Member)?;
        check_not_removed(layout.root(), config.member)?;
        let has_journal = check_journal_of(&layout.journal(), stream_id, &member_environment.journal)?;
        if !has_service && config.own().kind != MemberKind::Witness && layout.outputs().exists() {
            let reason = "a service has run on this member, and this program runs none: its clients would wait for ever. \
                          Start the program of the service, as on the other members";
            return Err(ClusterError::Foreign { path: layout.outputs(), reason: reason.to_owned() });
        }
        let files = MemberFiles::open(layout.root(), member_environment.instance, has_journal)?;
        check_incarnation(&files, config.incarnation)?;
        install(&layout)?;
        // Needed later; a damaged file is reported now.
        base_file(&files)?;
        let instances = Instances::read(&files)?;
        instances.check_member(config.member)?;
        let identity = StreamIdentity { stream_id, incarnation: config.incarnation };
        Ok(Self { directory, layout, files, instances, identity })
    }
}

/// Refuses another stream's journal; opening it reports everything else. Returns whether there is one.
fn check_journal_of(journal: &Path, stream_id: u128, environment: &JournalEnvironment) -> Result<bool, ClusterError> {
    match JournalReader::open_in(journal, environment.clone()) {
        Ok(found) if found.stream_id() != stream_id => Err(foreign_journal(journal)),
        Err(JournalError::NoJournal { .. }) => Ok(false),
        Err(_) => Ok(journal.exists()),
        Ok(_) => Ok(true),
    }
}

pub(super) fn foreign_journal(path: &Path) -> ClusterError {
    let reason = "it is the journal of another cluster, or of a stream without one".to_owned();
    ClusterError::Foreign { path: path.to_owned(), reason }
}

/// FNV-1a with 128 bits of the cluster's name.
pub(in crate::member) fn stream_id(name: &str) -> u128 {
    fnv_128(name.as_bytes())
}

pub(in crate::member) fn member_id(number: u64) -> MemberId {
    MemberId::new(number).expect("the configuration has checked it")
}
