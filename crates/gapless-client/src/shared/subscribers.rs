//! [`Subscribers`]: the streams of notices of a client, each with its own bounded queue.

use super::notice::{Notice, NoticesLost};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Most notices that one stream keeps. Further ones are discarded, and [`NoticesLost::Slow`] counts them.
pub const NOTICES_KEPT_MAX: usize = 65_536;
/// Most bytes of these notices.
pub const NOTICE_BYTES_KEPT_MAX: usize = 64 << 20;

pub(super) type Item = Result<Notice, NoticesLost>;

#[derive(Default)]
pub(super) struct Subscribers {
    all: Mutex<Registry>,
    count: AtomicUsize,
}

#[derive(Default)]
struct Registry {
    subscribers: Vec<Arc<Subscriber>>,
    is_ended: bool,
}

#[derive(Default)]
pub(super) struct Subscriber(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    items: VecDeque<Item>,
    /// Of the notices among them.
    bytes: usize,
    waker: Option<Waker>,
    is_ended: bool,
}

impl Subscribers {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self) -> Arc<Subscriber> {
        let subscriber = Arc::new(Subscriber::default());
        let mut registry = self.lock();
        subscriber.lock().is_ended = registry.is_ended;
        registry.subscribers.push(Arc::clone(&subscriber));
        self.count.fetch_add(1, Ordering::SeqCst);
        subscriber
    }

    pub fn remove(&self, subscriber: &Arc<Subscriber>) {
        let mut registry = self.lock();
        registry.subscribers.retain(|known| !Arc::ptr_eq(known, subscriber));
        self.count.store(registry.subscribers.len(), Ordering::SeqCst);
    }

    pub fn are_none(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Wake `wakers` with no lock held.
    pub fn deliver(&self, item: &Item, wakers: &mut Vec<Waker>) {
        for subscriber in &self.lock().subscribers {
            let mut kept = subscriber.lock();
            kept.keep(item);
            wakers.extend(kept.waker.take());
        }
    }

    pub fn end(&self, wakers: &mut Vec<Waker>) {
        let mut registry = self.lock();
        registry.is_ended = true;
        for subscriber in &registry.subscribers {
            let mut kept = subscriber.lock();
            kept.is_ended = true;
            wakers.extend(kept.waker.take());
        }
    }
}

impl Subscriber {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Option<Item> {
        self.lock().take()
    }

    /// Takes an item or the end, or registers the waker for it.
    pub fn take_or_register(&self, waker: &Waker) -> Poll<Option<Item>> {
        // Dropped after the lock: its drop may be the application's code.
        let mut _former = None;
        let mut kept = self.lock();
        let item = kept.take();
        if item.is_some() || kept.is_ended {
            return Poll::Ready(item);
        }
        if !kept.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            _former = kept.waker.replace(waker.clone());
        }
        Poll::Pending
    }
}

impl Kept {
    fn keep(&mut self, item: &Item) {
        let notice = match item {
            Ok(notice) => notice,
            Err(loss) => return self.lose(loss),
        };
        let bytes = self.bytes + notice.payload.len();
        if self.items.len() < NOTICES_KEPT_MAX && (self.bytes == 0 || bytes <= NOTICE_BYTES_KEPT_MAX) {
            self.bytes = bytes;
            self.items.push_back(item.clone());
        } else {
            self.lose(&NoticesLost::Slow { count: 1 });
        }
    }

    /// One item of each kind is enough for a gap, so that losses without end use no memory.
    fn lose(&mut self, loss: &NoticesLost) {
        for item in self.items.iter_mut().rev().map_while(|item| item.as_mut().err()) {
            match (item, loss) {
                (NoticesLost::Slow { count }, NoticesLost::Slow { count: more }) => return *count += more,
                (NoticesLost::Session, NoticesLost::Session) => return,
                _ => {}
            }
        }
        self.items.push_back(Err(loss.clone()));
    }

    fn take(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        if let Ok(notice) = &item {
            self.bytes -= notice.payload.len();
        }
        Some(item)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::polled::MessageType;
    use gapless_wire::Encoding;

    fn notice(number: u64, length: usize) -> Item {
        let message = MessageType { schema: 1, encoding: Encoding::Opaque };
        Ok(Notice { number, sequence: number, timestamp_ns: 0, message, payload: vec![0; length].into() })
    }

    fn deliver(subscribers: &Subscribers, item: &Item) {
        let mut wakers = Vec::new();
        subscribers.deliver(item, &mut wakers);
    }

    #[track_caller]
    fn assert_numbers(subscriber: &Subscriber, numbers: std::ops::RangeInclusive<u64>) {
        for number in numbers {
            assert_eq!(subscriber.take().unwrap().unwrap().number, number);
        }
    }

    #[test]
    fn gaps_stand_in_their_place() {
        const KEPT: u64 = NOTICES_KEPT_MAX as u64;
        let subscribers = Subscribers::default();
        let (slow, quick) = (subscribers.add(), subscribers.add());
        for number in 1..=KEPT + 5 {
            deliver(&subscribers, &notice(number, 8));
            assert_numbers(&quick, number..=number);
        }
        assert_numbers(&slow, 1..=10);
        deliver(&subscribers, &notice(KEPT + 6, 8));
        deliver(&subscribers, &Err(NoticesLost::Session));
        deliver(&subscribers, &Err(NoticesLost::Session));
        assert_numbers(&slow, 11..=KEPT);
        assert_eq!(slow.take(), Some(Err(NoticesLost::Slow { count: 5 })));
        assert_numbers(&slow, KEPT + 6..=KEPT + 6);
        assert_eq!(slow.take(), Some(Err(NoticesLost::Session)));
        assert_eq!(slow.take(), None);
        assert_eq!(slow.lock().bytes, 0);
    }

    #[test]
    fn losses_without_end_are_bounded() {
        let subscribers = Subscribers::default();
        let subscriber = subscribers.add();
        deliver(&subscribers, &notice(1, NOTICE_BYTES_KEPT_MAX));
        for number in 0..100 {
            deliver(&subscribers, &notice(number, 1));
            deliver(&subscribers, &Err(NoticesLost::Session));
        }
        assert_eq!(subscriber.lock().items.len(), 3);
        assert_numbers(&subscriber, 1..=1);
        assert_eq!(subscriber.take(), Some(Err(NoticesLost::Slow { count: 100 })));
        assert_eq!(subscriber.take(), Some(Err(NoticesLost::Session)));
    }

    #[test]
    fn bytes_are_bounded() {
        let subscribers = Subscribers::default();
        let subscriber = subscribers.add();
        deliver(&subscribers, &notice(1, NOTICE_BYTES_KEPT_MAX + 1));
        deliver(&subscribers, &notice(2, 1));
        assert_numbers(&subscriber, 1..=1);
        deliver(&subscribers, &notice(3, 1));
        assert_eq!(subscriber.take(), Some(Err(NoticesLost::Slow { count: 1 })));
        assert_numbers(&subscriber, 3..=3);
    }

    #[test]
    fn removed_and_ended_streams_get_nothing() {
        let subscribers = Subscribers::default();
        let (left, kept) = (subscribers.add(), subscribers.add());
        assert!(kept.take_or_register(Waker::noop()).is_pending());
        subscribers.remove(&left);
        let mut wakers = Vec::new();
        subscribers.deliver(&notice(1, 1), &mut wakers);
        subscribers.end(&mut wakers);
        assert_eq!(wakers.len(), 1);
        assert!(left.take().is_none());
        assert!(matches!(kept.take_or_register(Waker::noop()), Poll::Ready(Some(Ok(_)))));
        assert_eq!(kept.take_or_register(Waker::noop()), Poll::Ready(None));
        assert_eq!(subscribers.add().take_or_register(Waker::noop()), Poll::Ready(None));
        subscribers.remove(&kept);
        assert!(!subscribers.are_none(), "the third is there");
    }
}
