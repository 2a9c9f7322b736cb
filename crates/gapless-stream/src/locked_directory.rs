//! `LockedDirectory`: a stream's directory, locked against other processes.

use crate::StreamError;
use crate::directory_record::DirectoryRecord;
use gapless_agent::private_folder;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::DirectoryLock;
use gapless_journal::descriptor::HISTORY_NAME;
use gapless_journal::inspect::holds_journal;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Directory of a stream, locked by its file `lock`.
#[derive(Debug)]
pub struct LockedDirectory {
    layout: StreamLayout,
    lock: DirectoryLock,
    owner: Option<DirectoryOwner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryOwner {
    Stream,
    Service,
    Bus,
    Relay,
    Member,
    /// Instance of a service on an event stream of others.
    Node,
}

impl DirectoryOwner {
    const fn kind(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Service => "service",
            Self::Bus => "bus",
            Self::Relay => "relay",
            Self::Member => "member",
            Self::Node => "node",
        }
    }
}

const TYPES_NAME: &str = "types.json";

impl LockedDirectory {
    /// Locks a directory, perhaps new, before anything in it is read or written.
    ///
    /// # Errors
    /// The directory cannot be created, another process has locked it, or as for [`check_kinds`].
    pub fn lock(layout: StreamLayout) -> Result<Self, StreamError> {
        check_kinds(&layout)?;
        private_folder::create(layout.root())
            .map_err(|source| StreamError::System { action: format!("making {}", layout.root().display()), source })?;
        let lock = DirectoryLock::take(layout.root())?;
        Ok(Self { layout, lock, owner: None })
    }

    /// Refuses a directory of another owner, recognised by its files, and one of a newer program. Changes nothing.
    ///
    /// # Errors
    /// [`StreamError::State`], with the file.
    pub fn check_owner(&mut self, owner: DirectoryOwner) -> Result<(), StreamError> {
        self.check_files(owner)?;
        self.check_record(owner)?;
        self.owner = Some(owner);
        Ok(())
    }

    /// Records the owner, after the contents were opened successfully.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn note_owner(&self) -> Result<(), StreamError> {
        self.owner.map_or(Ok(()), |owner| DirectoryRecord::of(owner.kind()).write(&self.layout))
    }

    fn check_record(&self, owner: DirectoryOwner) -> Result<(), StreamError> {
        let record = DirectoryRecord::read(&self.layout)?;
        let refusal = record.and_then(|record| record.refusal(&[owner.kind()]));
        let path = DirectoryRecord::path(&self.layout);
        refusal.map_or(Ok(()), |reason| Err(StreamError::State { path, reason }))
    }

    fn check_files(&self, owner: DirectoryOwner) -> Result<(), StreamError> {
        let refuse = |path: PathBuf, reason: &str| Err(StreamError::State { path, reason: reason.to_owned() });
        let of_member = ["instance", "voting", "ballot"].map(|name| self.layout.root().join(name));
        if let Some(path) = of_member.into_iter().find(|path| path.exists() && owner != DirectoryOwner::Member) {
            return refuse(
                path,
                "the directory is that of a member of a cluster, which counts on what is here: start the member (`gapless \
                 cluster start`, or the program of its service)",
            );
        }
        if owner != DirectoryOwner::Relay && self.layout.origin().exists() {
            return refuse(
                self.layout.origin(),
                "the directory is a relay's, and its stream goes on elsewhere: start the relay (`gapless stream archive`). To \
                 make a stream of what it has kept, copy its folder `journal` into a directory of its own",
            );
        }
        if let (DirectoryOwner::Relay, Some(path)) = (owner, self.sequencer_path()) {
            return refuse(
                path,
                "the directory is not a relay's: what gives its order has written here. Start that, and give the relay a directory of its own",
            );
        }
        match owner {
            DirectoryOwner::Stream => self.service_path().map_or(Ok(()), |path| {
                refuse(
                    path,
                    "the directory is a service's, and behind a sequencer's frames its service would not start again: start \
                     the program of the service, and give the stream a directory of its own",
                )
            }),
            DirectoryOwner::Service if self.layout.root().join(TYPES_NAME).exists() => refuse(
                self.layout.root().join(TYPES_NAME),
                "the directory is that of a command bus: start its program, and give the service a directory of its own",
            ),
            DirectoryOwner::Service | DirectoryOwner::Bus if self.layout.state().exists() && !self.layout.outputs().exists() => refuse(
                self.layout.state(),
                "this is a stream's directory: start its sequencer (`gapless stream sequencer`), and give the service a \
                 directory of its own",
            ),
            DirectoryOwner::Node => self.stream_path().map_or(Ok(()), |path| {
                refuse(
                    path,
                    "the directory has a stream of its own: start its program, and give the instance of a service on a stream of \
                     others a directory of its own",
                )
            }),
            DirectoryOwner::Service | DirectoryOwner::Bus | DirectoryOwner::Relay | DirectoryOwner::Member => Ok(()),
        }
    }

    fn sequencer_path(&self) -> Option<PathBuf> {
        let layout = &self.layout;
        [layout.state(), layout.outputs(), layout.snapshots()]
            .into_iter()
            .find(|path| path.exists() && !layout.origin().exists())
    }

    fn stream_path(&self) -> Option<PathBuf> {
        let layout = &self.layout;
        [layout.journal(), layout.state(), layout.outputs()].into_iter().find(|path| path.exists())
    }

    /// Snapshots and dead letters alone are no proof: they may belong to a service on a sequencer's stream, or without
    /// a stream yet.
    fn service_path(&self) -> Option<PathBuf> {
        let layout = &self.layout;
        let is_hosts = layout.journal().exists() && !layout.state().exists();
        let beside = [layout.snapshots(), layout.dead_letters()].into_iter().filter(|_| is_hosts);
        std::iter::once(layout.outputs()).chain(beside).find(|path| path.exists())
    }

    /// Refuses a directory without a journal but with a folder or file written only next to one. If the journal's file
    /// `history` is left, opening it gives a better error.
    ///
    /// # Errors
    /// [`StreamError::State`], with the path found.
    pub fn check_journal_exists(&self) -> Result<(), StreamError> {
        let (layout, journal) = (&self.layout, self.layout.journal());
        if holds_journal(&journal) || journal.join(HISTORY_NAME).exists() {
            return Ok(());
        }
        let Some(path) = [layout.state(), layout.outputs()].into_iter().find(|path| path.exists()) else {
            return Ok(());
        };
        let reason = "it was written beside a journal, and there is no segment of one: put the folder `journal` back from a \
                      copy of this directory, or choose another directory, for a stream of its own";
        Err(StreamError::State { path, reason: reason.to_owned() })
    }

    /// Refuses a journal for a stream in memory: commands that read it would show the old stream.
    ///
    /// # Errors
    /// [`StreamError::State`], with the journal.
    pub fn check_no_journal(&self) -> Result<(), StreamError> {
        let path = self.layout.journal();
        if !holds_journal(&path) {
            return Ok(());
        }
        let reason = "it is that of a stream which is kept on disk, and tier memory would neither continue nor write it: start with \
                      the tier of before, or choose another directory";
        Err(StreamError::State { path, reason: reason.to_owned() })
    }

    #[must_use]
    pub const fn layout(&self) -> &StreamLayout {
        &self.layout
    }

    pub(crate) fn split(self) -> (StreamLayout, DirectoryLock) {
        (self.layout, self.lock)
    }
}

/// Refuses foreign files, and those on which opening would block or write (pipes, devices, dangling links). Links to
/// folders are followed; links to files are refused where a file is opened. Opens nothing.
///
/// # Errors
/// [`StreamError::State`], with the path; also if a folder cannot be listed.
pub fn check_kinds(layout: &StreamLayout) -> Result<(), StreamError> {
    for folder in [layout.root().to_owned(), layout.journal(), layout.state(), layout.snapshots()] {
        let failed = |source| StreamError::System { action: format!("listing {}", folder.display()), source };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let refuse = |reason: &str| Err(StreamError::State { path: entry.path(), reason: reason.to_owned() });
            let kind = match kind.is_symlink().then(|| std::fs::metadata(entry.path())) {
                None => kind,
                Some(Ok(target)) => target.file_type(),
                Some(Err(error)) => return refuse(&format!("a link that cannot be followed ({error})")),
            };
            if !(kind.is_file() || kind.is_dir() || kind.is_socket()) {
                return refuse("neither a file nor a folder; remove it, and put back what was there");
            }
        }
    }
    Ok(())
}
