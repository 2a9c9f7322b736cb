//! [`KeptFeeds`]: the feed sessions that a relay knows, in a small text file beside its journal. The journal itself tells
//! of those that begin in it; retention, or a start in the middle of the stream, may have left it without the frame that
//! says which one its oldest frames belong to.

use crate::StreamError;
use crate::feeds::{Feed, Feeds};
use gapless_wire::feed_session::FeedSession;
use std::path::PathBuf;

/// The file: a line for each feed session, oldest first, of its first sequence, its last one or `-`, and its name.
pub(crate) struct KeptFeeds {
    path: PathBuf,
}

impl KeptFeeds {
    pub const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The feed session that the frame before `first_sequence` belongs to and those before it, as they stood there: what
    /// comes from there on, the journal tells.
    pub fn before(&self, first_sequence: u64) -> Feeds {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Feeds::default(),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the feed sessions of before cannot be read");
                return Feeds::default();
            }
        };
        let Some(feeds) = text.lines().map(parse).collect::<Option<Vec<_>>>() else {
            // Frames older than the journal's first mark are served to nobody then, which is better than to the wrong
            // name.
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

    /// Puts `feeds` into the file, in the place of what was there.
    pub fn write(&self, feeds: &Feeds) -> Result<(), StreamError> {
        let line = |feed: &Feed| {
            let last = feed.last_sequence.map_or_else(|| "-".to_owned(), |last| last.to_string());
            format!("{} {last} {}\n", feed.first_sequence, feed.name)
        };
        let text: String = feeds.all().iter().map(line).collect();
        let beside = self.path.with_extension("new");
        let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &self.path));
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
    fn what_begins_before_the_journal_comes_back_as_it_stood_there() {
        let directory = tempfile::tempdir().unwrap();
        let kept = KeptFeeds::at(directory.path().join("feeds"));
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
    fn a_damaged_file_is_as_good_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("feeds");
        for text in ["1 - ", "1 -", "x - MONDAY", "1 2 MONDAY MORNING", "1 x MONDAY", "\u{0}\u{0}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(KeptFeeds::at(path.clone()).before(100), Feeds::default(), "{text:?}");
        }
    }
}
