//! The service's timers: a fold over the stream. The sequencer has the clock and appends a frame when a timer is due. It
//! knows numbers only, so a timer with a message gets the next one of a count from the highest down.

use crate::outputs::{Outputs, TimerChange};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Message of a timer: key of its name, then contract and encoded value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerMessage {
    pub schema: u32,
    pub payload: Arc<[u8]>,
}

/// A timer that is no longer set, because it is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DueTimer {
    Numbered(u64),
    Message(TimerMessage),
}

impl DueTimer {
    pub fn schema(&self) -> Option<u32> {
        match self {
            Self::Numbered(_) => None,
            Self::Message(message) => Some(message.schema),
        }
    }
}

/// Request to the sequencer. Deadlines are in ns since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerRequest {
    Set { timer: u64, deadline_ns: u64 },
    Cancel { timer: u64, deadline_ns: u64 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerTable {
    deadlines: BTreeMap<u64, u64>,
    messages: BTreeMap<u64, TimerMessage>,
    /// The inverse of `messages`.
    numbers: BTreeMap<TimerMessage, u64>,
    /// Numbers that were tried for messages.
    numbered: u64,
}

impl TimerTable {
    /// Applies a handler's changes in their order.
    pub(crate) fn apply(&mut self, outputs: &Outputs, mut request: impl FnMut(TimerRequest)) {
        for change in &outputs.timers {
            match change {
                TimerChange::Set { timer, deadline_ns } => self.set(*timer, *deadline_ns, &mut request),
                TimerChange::Cancel { timer } => self.cancel(*timer, &mut request),
                TimerChange::SetMessage { message, deadline_ns } => {
                    let payload = outputs.payload(message).into();
                    self.set_message(TimerMessage { schema: message.schema, payload }, *deadline_ns, &mut request);
                }
                TimerChange::CancelMessage { message } => {
                    let payload = outputs.payload(message).into();
                    self.cancel_message(&TimerMessage { schema: message.schema, payload }, &mut request);
                }
            }
        }
    }

    pub fn set(&mut self, timer: u64, deadline_ns: u64, request: &mut impl FnMut(TimerRequest)) {
        if let Some(message) = self.messages.remove(&timer) {
            self.renumber(timer, message, request);
        }
        self.set_deadline(timer, deadline_ns, request);
    }

    fn cancel(&mut self, timer: u64, request: &mut impl FnMut(TimerRequest)) {
        if !self.messages.contains_key(&timer) {
            self.cancel_deadline(timer, request);
        }
    }

    fn set_message(&mut self, message: TimerMessage, deadline_ns: u64, request: &mut impl FnMut(TimerRequest)) {
        let timer = match self.numbers.get(&message) {
            Some(timer) => *timer,
            None => self.number(message),
        };
        self.set_deadline(timer, deadline_ns, request);
    }

    fn cancel_message(&mut self, message: &TimerMessage, request: &mut impl FnMut(TimerRequest)) {
        if let Some(timer) = self.numbers.remove(message) {
            self.messages.remove(&timer);
            self.cancel_deadline(timer, request);
        }
    }

    /// Gives `message` a number that no other timer has.
    fn number(&mut self, message: TimerMessage) -> u64 {
        let timer = loop {
            let timer = u64::MAX.wrapping_sub(self.numbered);
            self.numbered = self.numbered.wrapping_add(1);
            if !self.deadlines.contains_key(&timer) {
                break timer;
            }
        };
        self.messages.insert(timer, message.clone());
        self.numbers.insert(message, timer);
        timer
    }

    /// Frees a number that the application wants.
    #[cold]
    fn renumber(&mut self, timer: u64, message: TimerMessage, request: &mut impl FnMut(TimerRequest)) {
        let deadline_ns = self.deadlines.get(&timer).copied().unwrap_or_default();
        self.numbers.remove(&message);
        let other = self.number(message);
        self.set_deadline(other, deadline_ns, request);
    }

    fn set_deadline(&mut self, timer: u64, deadline_ns: u64, request: &mut impl FnMut(TimerRequest)) {
        let before = self.deadlines.insert(timer, deadline_ns);
        request(TimerRequest::Set { timer, deadline_ns });
        if let Some(deadline_ns) = before.filter(|before| *before != deadline_ns) {
            request(TimerRequest::Cancel { timer, deadline_ns });
        }
    }

    fn cancel_deadline(&mut self, timer: u64, request: &mut impl FnMut(TimerRequest)) {
        if let Some(deadline_ns) = self.deadlines.remove(&timer) {
            request(TimerRequest::Cancel { timer, deadline_ns });
        }
    }

    #[must_use]
    pub fn is_set(&self, timer: u64, deadline_ns: u64) -> bool {
        self.deadlines.get(&timer) == Some(&deadline_ns)
    }

    /// `None` if the timer was replaced or cancelled meanwhile.
    pub fn take(&mut self, timer: u64, deadline_ns: u64) -> Option<DueTimer> {
        if !self.is_set(timer, deadline_ns) {
            return None;
        }
        self.deadlines.remove(&timer);
        let Some(message) = self.messages.remove(&timer) else { return Some(DueTimer::Numbered(timer)) };
        self.numbers.remove(&message);
        Some(DueTimer::Message(message))
    }

    /// (number, deadline in ns since the epoch), with and without a message.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.deadlines.iter().map(|(timer, deadline_ns)| (*timer, *deadline_ns))
    }

    /// Messages by number.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = (u64, &TimerMessage)> {
        self.messages.iter().map(|(timer, message)| (*timer, message))
    }

    /// Numbers that were tried for messages: the state of the count.
    #[must_use]
    pub const fn numbered(&self) -> u64 {
        self.numbered
    }

    /// Continues the count of a snapshot.
    pub const fn restore_numbered(&mut self, numbered: u64) {
        self.numbered = numbered;
    }

    /// Adds a timer of a snapshot.
    pub fn restore(&mut self, timer: u64, deadline_ns: u64) {
        self.deadlines.insert(timer, deadline_ns);
    }

    /// Adds the message to a timer of a snapshot; false if that timer is not set, or either has another already.
    pub fn restore_message(&mut self, timer: u64, message: TimerMessage) -> bool {
        self.deadlines.contains_key(&timer)
            && self.messages.insert(timer, message.clone()).is_none()
            && self.numbers.insert(message, timer).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TimerRequest::{Cancel, Set};

    fn message(payload: &[u8]) -> TimerMessage {
        TimerMessage { schema: 7, payload: payload.into() }
    }

    fn requests(change: impl FnOnce(&mut dyn FnMut(TimerRequest))) -> Vec<TimerRequest> {
        let mut requests = Vec::new();
        change(&mut |request| requests.push(request));
        requests
    }

    #[test]
    fn equal_message_moves_its_timer() {
        let mut table = TimerTable::default();
        let set = requests(|request| table.set_message(message(b"a"), 5, &mut |it| request(it)));
        let [Set { timer, deadline_ns: 5 }] = set[..] else { panic!("{set:?}") };
        let moved = requests(|request| table.set_message(message(b"a"), 9, &mut |it| request(it)));
        assert_eq!(moved, [Set { timer, deadline_ns: 9 }, Cancel { timer, deadline_ns: 5 }]);
        assert_eq!(table.take(timer, 5), None, "it was moved");
        assert_eq!(table.take(timer, 9), Some(DueTimer::Message(message(b"a"))));
        assert_eq!(table, TimerTable { numbered: 1, ..TimerTable::default() });
    }

    #[test]
    fn numbers_in_use_are_left_out() {
        let mut table = TimerTable::default();
        table.set(u64::MAX, 1, &mut |_| {});
        table.set_message(message(b"a"), 2, &mut |_| {});
        table.set_message(message(b"b"), 3, &mut |_| {});
        assert_eq!(table.take(u64::MAX, 1), Some(DueTimer::Numbered(u64::MAX)));
        assert_eq!(table.take(u64::MAX - 1, 2), Some(DueTimer::Message(message(b"a"))));
        table.set_message(message(b"a"), 4, &mut |_| {});
        assert_eq!(table.take(u64::MAX - 2, 3), Some(DueTimer::Message(message(b"b"))));
        assert_eq!(table.take(u64::MAX - 3, 4), Some(DueTimer::Message(message(b"a"))), "no number is used again");
    }

    #[test]
    fn number_displaces_a_message() {
        let mut table = TimerTable::default();
        table.set_message(message(b"a"), 5, &mut |_| {});
        let timer = u64::MAX;
        let cancelled = requests(|request| table.cancel(timer, &mut |it| request(it)));
        assert!(cancelled.is_empty(), "the application did not set this number: {cancelled:?}");
        let set = requests(|request| table.set(timer, 8, &mut |it| request(it)));
        let expected =
            [Set { timer: timer - 1, deadline_ns: 5 }, Set { timer, deadline_ns: 8 }, Cancel { timer, deadline_ns: 5 }];
        assert_eq!(set, expected);
        assert_eq!(table.take(timer, 8), Some(DueTimer::Numbered(timer)));
        table.cancel_message(&message(b"a"), &mut |_| {});
        assert_eq!(table, TimerTable { numbered: 2, ..TimerTable::default() });
    }

    #[test]
    fn damaged_messages_are_not_restored() {
        let mut table = TimerTable::default();
        table.restore(1, 10);
        table.restore(2, 10);
        assert!(!table.restore_message(3, message(b"a")), "no such timer");
        assert!(table.restore_message(1, message(b"a")));
        assert!(!table.restore_message(1, message(b"b")), "it has one");
        let mut table = TimerTable::default();
        table.restore(1, 10);
        table.restore(2, 10);
        assert!(table.restore_message(1, message(b"a")));
        assert!(!table.restore_message(2, message(b"a")), "another timer has it");
    }
}
