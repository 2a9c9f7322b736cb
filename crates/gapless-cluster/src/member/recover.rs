//! [`ForcedRecovery`]: a member whose partners are lost for good becomes a cluster of one, in a new incarnation. Offline:
//! nothing here runs beside the member.
//!
//! The new incarnation is kept in the directory first: from then on a file of the old one is refused there, and after a
//! crash the recovery is begun again. Last, the journal says who the members are.

use super::aside::Aside;
use super::ballot;
use super::parcel::install::install;
use super::standing_files::{Instances, StandingFiles, check_not_removed, keep_incarnation};
use super::start;
use super::voting::Voting;
use crate::ClusterError;
use crate::config::ClusterConfig;
use crate::consensus::{MemberId, Place, Recovered};
use gapless_journal::{Environment, FilePoint};
use gapless_log::StreamIdentity;
use gapless_stream::event_stream::foundation::Foundation;
use gapless_stream::persistence::{OpenedJournal, Opening};
use gapless_stream::state_keeper;
use gapless_stream::stream_layout::StreamLayout;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;

/// A member's directory, locked, and what it holds.
pub struct ForcedRecovery {
    member: MemberId,
    files: StandingFiles,
    addresses: Vec<String>,
    stream_id: u128,
    layout: StreamLayout,
    opened: OpenedJournal,
    recovered: Recovered,
    aside: Aside,
    end: Place,
}

impl ForcedRecovery {
    /// Looks at what a member holds; nothing is changed yet but what a crash left half done in its journal.
    ///
    /// # Errors
    /// The member runs, its directory holds nothing of a cluster, was removed from one, or is damaged.
    pub fn open(config: &ClusterConfig) -> Result<Self, ClusterError> {
        let options = config.event_stream_options();
        let directory = options.directory.as_deref().unwrap_or_else(|| std::path::Path::new(""));
        let nothing = |path: &std::path::Path| ClusterError::Foreign {
            path: path.to_owned(),
            reason: "there is nothing of a member to recover".to_owned(),
        };
        if !directory.is_dir() {
            return Err(nothing(directory));
        }
        let layout = Foundation::make_directory(&options)?.expect("a replicated tier has a directory");
        check_not_removed(layout.root(), config.member)?;
        install(&layout)?;
        if !layout.journal().is_dir() {
            return Err(nothing(layout.root()));
        }
        let stream_id = start::stream_id(&config.name);
        // Opening the journal makes it one of this boot, and whoever asks may think better of it.
        let is_synced = options.tier.is_synced();
        let files = StandingFiles::open(layout.root(), None)?;
        Instances::read(&files)?;
        let found = ballot::Found::read(layout.root(), files.instance())?;
        Voting::begin(&files, &layout.journal(), Environment::default(), &found, is_synced, Vec::new())?;
        let points = state_keeper::points(&layout.state())?;
        let points = points.into_iter().map(|point| FilePoint { identity: None, ..point }).collect();
        let new_stream_id = Some(stream_id);
        let opening = Opening { new_stream_id, points, ..Opening::new(options.tier, FRAME_LENGTH_MAX) };
        let opened = options.persistence.open(&layout.journal(), opening)?;
        let aside = Aside::new(layout.root(), files.instance());
        let recovered = start::recover(&layout, &opened.journal, opened.identity.stream_id == stream_id, &aside)?;
        let Some(end) = recovered.end() else { return Err(nothing(layout.root())) };
        Ok(Self {
            member: start::member_id(config.member),
            files,
            addresses: config.own().addresses.clone(),
            stream_id,
            layout,
            opened,
            recovered,
            aside,
            end,
        })
    }

    /// The last frame that is kept: all that this member acknowledged. What others had beyond it is lost.
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.end.sequence
    }

    /// Up to which frame this member knows that a quorum had everything.
    #[must_use]
    pub fn committed_sequence(&self) -> u64 {
        self.recovered.committed_sequence()
    }

    /// The term of the last entry.
    #[must_use]
    pub const fn term(&self) -> u64 {
        self.end.term
    }

    /// Makes the member a cluster of one in this incarnation, which nobody else may ever have: a file with it and with
    /// this member alone is what it starts with from now on.
    ///
    /// # Errors
    /// The directory cannot be written. To be called again then, on a new [`ForcedRecovery`].
    ///
    /// # Panics
    /// If `incarnation` is 0.
    pub fn apply(mut self, incarnation: u64) -> Result<(), ClusterError> {
        assert_ne!(incarnation, 0, "incarnations are counted from 1");
        keep_incarnation(&self.files, incarnation)?;
        let identity = StreamIdentity { stream_id: self.stream_id, incarnation };
        state_keeper::adopt(&self.layout.state(), identity)?;
        let checkpoint = self.recovered.alone(self.member, &self.addresses).expect("there is a state");
        let journal = &mut self.opened.journal;
        journal.sync()?;
        self.aside.write(&checkpoint)?;
        journal.truncate_after(self.end.sequence)?;
        journal.append_checkpoint(&checkpoint)?;
        journal.sync()?;
        self.aside.remove()
    }
}
