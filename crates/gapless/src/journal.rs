//! A stream's journal: its storage options, reading its frames, and replaying a copy of it under today's handlers.
//!
//! ```
//! use gapless::journal::JournalReader;
//! use gapless::prelude::*;
//!
//! let folder = std::env::temp_dir().join(format!("gapless-journal-{}", std::process::id()));
//! let mut options = EventStreamOptions::in_directory(&folder);
//! options.persistence.segment_length_bytes = 1 << 20;
//! let stream = EventStream::start(&options)?;
//! # let link = stream.local_link(SharedMemoryOptions::default())?;
//! # let mut node = StreamNode::new(link, StreamNodeOptions::default());
//! # node.wait_open(Duration::from_secs(5))?;
//! # node.publish(MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque }, b"hello")?;
//! # while node.in_flight() > 0 {
//! #     node.poll(16, |_| {})?;
//! # }
//! # drop(node);
//! stream.stop()?;
//!
//! let mut replay = JournalReader::open(folder.join("journal"))?.replay(1)?;
//! let mut count = 0;
//! while let Some(frame) = replay.next_frame()? {
//!     count += 1;
//!     assert_eq!(frame.sequence(), count);
//! }
//! assert!(count > 0);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`replay_copy`] gives the state of a service after any message: `docs/guides/replaying-a-journal.md`.

pub use gapless_engine::fold::{Fold, NoSink, Sink};
pub use gapless_engine::recovery::replay_copy;
pub use gapless_journal::{
    Flush, JournalError, JournalReader, RecoveryCheck, RecoveryReport, Replay, Retention, Zeroing,
};
pub use gapless_wire::Frame;
