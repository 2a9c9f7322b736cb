//! Sequences of the stream continue for its whole life; in MoldUDP64 and SoupBinTCP each feed session counts from 1.

use gapless_wire::feed_session::FeedSession;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A name for a range of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    pub name: FeedSession,
    /// Sequence of frame number 1.
    pub first_sequence: u64,
    /// Last sequence; `None` until the feed session has ended.
    pub last_sequence: Option<u64>,
}

impl Feed {
    #[must_use]
    pub fn holds(&self, sequence: u64) -> bool {
        sequence >= self.first_sequence && self.last_sequence.is_none_or(|last| sequence <= last)
    }

    /// Number from 1.
    ///
    /// # Panics
    /// If the frame is before the feed.
    #[inline]
    #[must_use]
    pub const fn number_of(&self, sequence: u64) -> u64 {
        assert!(sequence >= self.first_sequence, "the frame lies before the feed");
        sequence - self.first_sequence + 1
    }

    /// `None` for 0 and numbers beyond any stream.
    #[inline]
    #[must_use]
    pub const fn sequence_of(&self, number: u64) -> Option<u64> {
        match number.checked_sub(1) {
            Some(offset) => self.first_sequence.checked_add(offset),
            None => None,
        }
    }
}

/// Kept feed sessions, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feeds {
    feeds: Vec<Feed>,
}

impl Feeds {
    /// Feed sessions of a snapshot, oldest first.
    #[must_use]
    pub const fn restored(feeds: Vec<Feed>) -> Self {
        Self { feeds }
    }

    /// Begins with the frame `sequence`; an open feed session ends before it.
    pub fn begin(&mut self, name: FeedSession, sequence: u64) {
        if let Some(open) = self.feeds.last_mut().filter(|feed| feed.last_sequence.is_none()) {
            open.last_sequence = Some(sequence - 1);
        }
        self.feeds.push(Feed { name, first_sequence: sequence, last_sequence: None });
    }

    /// Ends with the frame `sequence`.
    pub fn end(&mut self, sequence: u64) {
        if let Some(open) = self.feeds.last_mut().filter(|feed| feed.last_sequence.is_none()) {
            open.last_sequence = Some(sequence);
        }
    }

    #[must_use]
    pub fn current(&self) -> Option<&Feed> {
        self.feeds.last().filter(|feed| feed.last_sequence.is_none())
    }

    /// Newest feed session, open or not.
    #[must_use]
    pub fn newest(&self) -> Option<&Feed> {
        self.feeds.last()
    }

    #[must_use]
    pub fn all(&self) -> &[Feed] {
        &self.feeds
    }

    #[must_use]
    pub fn find_by_name(&self, name: FeedSession) -> Option<&Feed> {
        self.feeds.iter().rev().find(|feed| feed.name == name)
    }

    #[must_use]
    pub fn find_by_sequence(&self, sequence: u64) -> Option<&Feed> {
        self.feeds.iter().rev().find(|feed| feed.holds(sequence))
    }

    /// Forgets sessions that end before `first_sequence`, except the newest.
    pub fn forget_before(&mut self, first_sequence: u64) {
        while self.feeds.len() > 1 && self.feeds[0].last_sequence.is_some_and(|last| last < first_sequence) {
            self.feeds.remove(0);
        }
    }
}

#[derive(Clone, Default)]
pub struct SharedFeeds {
    feeds: Arc<Mutex<Feeds>>,
}

impl SharedFeeds {
    #[must_use]
    pub fn new(feeds: Feeds) -> Self {
        Self { feeds: Arc::new(Mutex::new(feeds)) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Feeds> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FeedSession {
        FeedSession::new(text).unwrap()
    }

    #[test]
    fn each_feed_counts_from_one() {
        let mut feeds = Feeds::default();
        assert_eq!(feeds.current(), None);
        feeds.begin(name("MONDAY"), 1);
        feeds.end(10);
        assert_eq!(feeds.current(), None, "it has ended");
        assert_eq!(feeds.newest().unwrap().name, name("MONDAY"));
        feeds.begin(name("TUESDAY"), 11);
        let tuesday = *feeds.current().unwrap();
        assert_eq!((tuesday.number_of(11), tuesday.sequence_of(1), tuesday.sequence_of(0)), (1, Some(11), None));
        assert_eq!(tuesday.sequence_of(u64::MAX), None, "no stream is that long");
        assert_eq!(feeds.find_by_sequence(10).unwrap().name, name("MONDAY"));
        assert_eq!(feeds.find_by_sequence(11).unwrap().name, name("TUESDAY"));
        assert_eq!(feeds.find_by_sequence(0), None);
        assert_eq!(feeds.find_by_name(name("MONDAY")).unwrap().last_sequence, Some(10));
    }

    #[test]
    fn newest_feed_is_never_forgotten() {
        let mut feeds = Feeds::default();
        feeds.begin(name("A"), 1);
        feeds.begin(name("B"), 5);
        assert_eq!(
            feeds.find_by_name(name("A")).unwrap().last_sequence,
            Some(4),
            "a feed that begins ends the one before"
        );
        feeds.end(9);
        feeds.forget_before(5);
        assert_eq!(feeds.all().len(), 1);
        feeds.forget_before(100);
        assert_eq!(feeds.newest().unwrap().name, name("B"));
    }
}
