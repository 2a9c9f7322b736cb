//! [`CopyCounters`]: what a copy of a route counts; one relaxed addition each.

use crate::remote::status::Status;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a copy of a route counts.
#[derive(Debug, Default)]
pub(crate) struct CopyCounters {
    in_flight: AtomicU64,
    begun: AtomicU64,
    /// By status.
    answered: [AtomicU64; 8],
    unheard: AtomicU64,
    handler_ns: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStatistics {
    /// Handlers that run.
    pub in_flight: u64,
    /// Handlers that have begun.
    pub begun: u64,
    /// Replies.
    pub replied: u64,
    /// Refusals.
    pub refused: u64,
    /// Handlers that panicked.
    pub panicked: u64,
    /// Requests whose time was over before their handler began.
    pub too_late: u64,
    /// Requests and replies that could not be read or written.
    pub bad_messages: u64,
    /// Requests that went on to other routes.
    pub forwarded: u64,
    /// Answers that nobody waited for any more.
    pub unheard: u64,
    /// Time in handlers, ns.
    pub handler_ns: u64,
}

impl CopyCounters {
    pub(crate) fn begin(&self) {
        // Relaxed, here and below: figures for people, which order nothing.
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, handler_ns: u64) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.handler_ns.fetch_add(handler_ns, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, status: Status, is_heard: bool) {
        self.answered[status as usize].fetch_add(1, Ordering::Relaxed);
        if !is_heard {
            self.unheard.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn statistics(&self) -> CopyStatistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let of = |status: Status| load(&self.answered[status as usize]);
        CopyStatistics {
            in_flight: load(&self.in_flight),
            begun: load(&self.begun),
            replied: of(Status::Reply),
            refused: of(Status::Refused),
            panicked: of(Status::Panicked),
            too_late: of(Status::TooLate),
            bad_messages: of(Status::BadRequest) + of(Status::BadReply),
            forwarded: of(Status::Forward),
            unheard: load(&self.unheard),
            handler_ns: load(&self.handler_ns),
        }
    }
}

impl CopyStatistics {
    /// As a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { in_flight, begun, replied, refused, panicked, .. } = self;
        let Self { too_late, bad_messages, forwarded, unheard, handler_ns, .. } = self;
        format!(
            "{{\"in_flight\":{in_flight},\"begun\":{begun},\"replied\":{replied},\"refused\":{refused},\"panicked\":{panicked},\
             \"too_late\":{too_late},\"bad_messages\":{bad_messages},\"forwarded\":{forwarded},\"unheard\":{unheard},\
             \"handler_ns\":{handler_ns}}}"
        )
    }
}
