//! `StreamLayout`: paths in the directory of a stream, or of a node with a stream of its own.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamLayout {
    root: PathBuf,
}

impl StreamLayout {
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Sequencer's state files.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("sequencer")
    }

    /// Snapshots of a node's service.
    #[must_use]
    pub fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }

    /// Socket for clients of a node's service.
    #[must_use]
    pub fn node_socket(&self) -> PathBuf {
        self.root.join("node.socket")
    }

    /// Socket for nodes of this machine.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root.join("stream.socket")
    }

    /// Names the upstream of a relay's directory.
    #[must_use]
    pub fn origin(&self) -> PathBuf {
        self.root.join("origin")
    }

    /// Feed sessions known to a relay.
    #[must_use]
    pub fn feeds(&self) -> PathBuf {
        self.root.join("feeds")
    }

    /// Recorded output position; exists if a service has run on this stream.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.root.join("outputs")
    }

    /// Commands of a node's service that no handler accepted.
    #[must_use]
    pub fn dead_letters(&self) -> PathBuf {
        self.root.join("dead-letters.jsonl")
    }

    /// Skipped sequences recorded in the stream, read at a start.
    #[must_use]
    pub fn skips(&self) -> PathBuf {
        self.root.join("skips")
    }

    #[must_use]
    pub fn counters(&self) -> PathBuf {
        self.root.join("counters")
    }
}
