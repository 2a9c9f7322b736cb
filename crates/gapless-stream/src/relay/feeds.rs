//! [`KeptFeeds`]: the feed sessions known to a relay, in a small text file next to its journal. The journal contains
//! the beginnings of later feed sessions. Its first frames may belong to an earlier one, because of retention or a
//! start in the middle of the stream.
//!
//! ```text
//! sealed <CRC-32C over stream, incarnation and the lines below, as 8 hexadecimal digits>
//! a line for each feed session, oldest first: its first sequence, its last one or `-`, its name
//! ```
//!
//! It is written before the journal has the frame that begins a feed session. So a file that lacks a session of the
//! journal or the stream is an older copy, and is ignored like a damaged one.

use crate::StreamError;
use gapless_agent::checked_file;
use gapless_client::feed_sessions::{Feed, Feeds};
use gapless_log::StreamIdentity;
use gapless_wire::checksum::crc32c;
use gapless_wire::feed_session::FeedSession;
use std::path::PathBuf;

const SEAL: &str = "sealed ";
const LENGTH_MAX: u64 = 16 << 20;

pub(crate) struct KeptFeeds {
    path: PathBuf,
    identity: StreamIdentity,
}

impl KeptFeeds {
    /// File of a relay of this stream.
    pub const fn at(path: PathBuf, identity: StreamIdentity) -> Self {
        Self { path, identity }
    }

    fn seal(&self, lines: &str) -> String {
        let StreamIdentity { stream_id, incarnation } = self.identity;
        format!("{:08x}", crc32c(format!("{stream_id:032x} {incarnation:016x}\n{lines}").as_bytes()))
    }

    /// `None` if damaged, or of another stream.
    fn parse(&self, text: &str) -> Option<Vec<Feed>> {
        let lines = match text.strip_prefix(SEAL) {
            None => text,
            Some(sealed) => sealed.split_once('\n').filter(|(seal, lines)| *seal == self.seal(lines))?.1,
        };
        lines.lines().map(parse).collect()
    }

    /// The file lacks a later feed session, so it is an older copy.
    pub fn is_older(&self, feeds: &Feeds, first_sequence: u64) -> bool {
        let known = checked_file::read_to_string(&self.path, LENGTH_MAX)
            .ok()
            .and_then(|text| self.parse(&text))
            .unwrap_or_default();
        let is_known =
            |feed: &Feed| known.iter().any(|it| (it.name, it.first_sequence) == (feed.name, feed.first_sequence));
        feeds.all().iter().filter(|feed| feed.first_sequence >= first_sequence).any(|feed| !is_known(feed))
    }

    /// Feed sessions as of the frame before `first_sequence`; later ones are in the journal.
    pub fn before(&self, first_sequence: u64) -> Feeds {
        let text = match checked_file::read_to_string(&self.path, LENGTH_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Feeds::default(),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the feed sessions of before cannot be read");
                return Feeds::default();
            }
        };
        let Some(feeds) = self.parse(&text) else {
            // Frames before the journal's first mark are then served to no reader: better than under a wrong name.
            tracing::warn!(path = %self.path.display(), "the file of the feed sessions of before is damaged");
            return Feeds::default();
        };
        let begins_before = feeds.into_iter().filter(|feed| feed.first_sequence < first_sequence);
        let as_it_stood =
            |feed: Feed| Feed { last_sequence: feed.last_sequence.filter(|last| *last < first_sequence), ..feed };
        let mut feeds = Feeds::restored(begins_before.map(as_it_stood).collect());
        feeds.forget_before(first_sequence);
        feeds
    }

    pub fn write(&self, feeds: &Feeds) -> Result<(), StreamError> {
        let line = |feed: &Feed| {
            let last = feed.last_sequence.map_or_else(|| "-".to_owned(), |last| last.to_string());
            format!("{} {last} {}\n", feed.first_sequence, feed.name)
        };
        let lines: String = feeds.all().iter().map(line).collect();
        let text = format!("{SEAL}{}\n{lines}", self.seal(&lines));
        // Not synced: a file damaged by a power failure is ignored like an older copy.
        let written = checked_file::replace(&self.path, text.as_bytes(), 0o600);
        written.map_err(|source| StreamError::System { action: format!("writing {}", self.path.display()), source })
    }
}

fn parse(line: &str) -> Option<Feed> {
    let mut words = line.split(' ');
    let first_sequence = words.next()?.parse().ok()?;
    let last_sequence = match words.next()? {
        "-" => None,
        last => Some(last.parse().ok()?),
    };
    let name = FeedSession::new(words.next()?).ok()?;
    words.next().is_none().then_some(Feed { name, first_sequence, last_sequence })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 7, incarnation: 9 };

    fn feeds() -> Feeds {
        let mut feeds = Feeds::default();
        for (name, first, last) in [("MONDAY", 1, 10), ("TUESDAY", 11, 30), ("WEDNESDAY", 31, 31)] {
            feeds.begin(FeedSession::new(name).unwrap(), first);
            if last > first {
                feeds.end(last);
            }
        }
        feeds
    }

    #[test]
    fn earlier_sessions_are_restored() {
        let directory = tempfile::tempdir().unwrap();
        let kept = KeptFeeds::at(directory.path().join("feeds"), IDENTITY);
        assert_eq!(kept.before(100), Feeds::default(), "nothing was written yet");
        kept.write(&feeds()).unwrap();
        let names = |feeds: Feeds| -> Vec<_> {
            feeds.all().iter().map(|feed| (feed.name.to_string(), feed.last_sequence)).collect()
        };
        assert_eq!(names(kept.before(1)), []);
        assert_eq!(names(kept.before(5)), [("MONDAY".to_owned(), None)]);
        assert_eq!(names(kept.before(20)), [("TUESDAY".to_owned(), None)], "nothing of Monday is there");
        assert_eq!(names(kept.before(31)), [("TUESDAY".to_owned(), Some(30))]);
        assert_eq!(names(kept.before(40)), [("WEDNESDAY".to_owned(), None)]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn damaged_file_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("feeds");
        for text in ["1 - ", "1 -", "x - MONDAY", "1 2 MONDAY MORNING", "1 x MONDAY", "\u{0}\u{0}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(KeptFeeds::at(path.clone(), IDENTITY).before(100), Feeds::default(), "{text:?}");
        }
    }

    #[test]
    fn damaged_or_foreign_file_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("feeds");
        let kept = KeptFeeds::at(path.clone(), IDENTITY);
        kept.write(&feeds()).unwrap();
        let right = std::fs::read(&path).unwrap();
        assert_ne!(kept.before(100), Feeds::default());
        for at in 0..right.len() {
            let mut bytes = right.clone();
            bytes[at] ^= 1;
            for bytes in [&bytes[..], &right[..at]] {
                std::fs::write(&path, bytes).unwrap();
                assert_eq!(kept.before(100), Feeds::default(), "byte {at}");
            }
        }
        std::fs::write(&path, &right).unwrap();
        let other = StreamIdentity { incarnation: 10, ..IDENTITY };
        assert_eq!(KeptFeeds::at(path.clone(), other).before(100), Feeds::default());
        std::fs::write(&path, "1 10 MONDAY\n").unwrap();
        assert_eq!(kept.before(5).all().len(), 1);
    }

    #[test]
    fn file_behind_journal_is_older_copy() {
        let directory = tempfile::tempdir().unwrap();
        let kept = KeptFeeds::at(directory.path().join("feeds"), IDENTITY);
        kept.write(&feeds()).unwrap();
        assert!(!kept.is_older(&feeds(), 1));
        let mut more = feeds();
        more.begin(FeedSession::new("THURSDAY").unwrap(), 40);
        assert!(kept.is_older(&more, 32) && !kept.is_older(&more, 41));
    }
}
