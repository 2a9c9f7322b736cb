//! [`StreamLayout`]: the paths in the directory of a stream, or of a node with a stream of its own.

use std::path::{Path, PathBuf};

/// The directory of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamLayout {
    root: PathBuf,
}

impl StreamLayout {
    /// The layout of a stream in `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The stream's directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The journal's segments.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// The directory of the sequencer's state files.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("sequencer")
    }

    /// The snapshots of a node's service.
    #[must_use]
    pub fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }

    /// Where the clients of a node's service connect.
    #[must_use]
    pub fn node_socket(&self) -> PathBuf {
        self.root.join("node.socket")
    }

    /// Where nodes of this machine connect.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.root.join("stream.socket")
    }

    /// The file that names the stream whose part a relay's directory holds.
    #[must_use]
    pub fn origin(&self) -> PathBuf {
        self.root.join("origin")
    }

    /// The feed sessions that a relay knows.
    #[must_use]
    pub fn feeds(&self) -> PathBuf {
        self.root.join("feeds")
    }

    /// The file of a service's output position on this stream, as far as it is recorded; there is one where a service
    /// has run.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.root.join("outputs")
    }

    /// The commands of a node's service that no handler took.
    #[must_use]
    pub fn dead_letters(&self) -> PathBuf {
        self.root.join("dead-letters.jsonl")
    }

    /// The sequences that the stream says are skipped, for starts.
    #[must_use]
    pub fn skips(&self) -> PathBuf {
        self.root.join("skips")
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> PathBuf {
        self.root.join("counters")
    }
}
