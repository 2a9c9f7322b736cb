//! The frame: the one form in which a message exists in memory, on disk and on the wire.
//!
//! | module | what lives there |
//! |---|---|
//! | [`message_parts`] | [`MessageParts`]: a message that is longer than a frame, cut into fragments |
//! | [`writer`] | [`FrameWriter`], which builds a frame in place |
//! | [`chain`] | the chained hash over a stream's frames |
//! | [`frame`] | [`Frame`], a checked view of received bytes; [`FrameHeader`], the fields as values |
//! | [`control`] | payloads of the frames that the engine itself understands |
//! | [`mark`] | [`mark::Mark`]: the sequencer's own notes in the stream |
//! | [`mold`] | MoldUDP64: packets of messages over UDP, and requests for lost ones |
//! | [`upstream`] | the protocol between nodes and the sequencer's command port |
//! | [`mtu`] | [`mtu::Mtu`]: the longest packet of a stream's networks |
//! | [`soup`] | SoupBinTCP 3.00: messages over TCP, and logins |
//! | [`feed_session`] | [`FeedSession`], the name under which other networks know a stream |
//! | [`fields`] | reader and writer of little-endian fields |
//! | [`checksum`] | CRC-32C |
//! | [`fnv`] | FNV-1a |
//! | [`split_mix`] | SplitMix64 |
//! | [`descriptor`] | the layout: offsets, limits, kinds and flags |
//! | [`prefetch`] | prefetching of memory |
//! | [`words`] | copying memory that another process may be writing |
//!
//! No I/O, no allocation. Everything here is safe on any bytes: invalid ones are a [`FrameError`] with the expected
//! value, the found value and the position.

#![deny(unsafe_code)]

pub mod chain;
pub mod checksum;
pub mod control;
pub mod descriptor;
pub mod feed_session;
pub mod fields;
pub mod fnv;
pub mod frame;
pub mod mark;
pub mod message_parts;
pub mod mold;
pub mod mtu;
pub mod prefetch;
pub mod soup;
pub mod split_mix;
pub mod upstream;
pub mod words;
pub mod writer;

pub use descriptor::{Encoding, Fragment, HEADER_LENGTH, Kind, MESSAGE_ALIGNMENT, aligned_length};
pub use feed_session::FeedSession;
pub use frame::{Frame, FrameError, FrameHeader};
pub use message_parts::MessageParts;
pub use writer::{FrameWriter, stamp};
