//! Monotonic time for timeouts, and epoch time without jumps. The timeline is a chain of linear pieces. Every half
//! second the first reader that finds the piece expired renews it: the next one begins at its end, and slews towards
//! the wall clock by at most [`SLEW_PPM_MAX`]. Clones share the pieces.

mod source;
mod timeline;
mod tsc;
mod virtual_time;

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::agent::Now;
use crate::error::Error;
use crate::latch::Latch;
use source::ClockSource;
use timeline::{PIECE_WORDS, Renewal, TimelinePiece};

pub use timeline::SLEW_PPM_MAX;
pub use virtual_time::VirtualTime;

/// Counter that a clock reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClockKind {
    #[default]
    System,
    /// Kept in step with the system's monotonic clock.
    Tsc,
    Virtual,
}

/// A clock. Clones are cheap and agree on the time; each is for one thread (`Send`, not `Sync`) and never goes back.
///
/// ```
/// # mod gapless { pub mod threads { pub use gapless_agent::{Clock, VirtualTime}; } }
/// use gapless::threads::{Clock, VirtualTime};
/// let time = VirtualTime::new(1_000, 1_700_000_000_000_000_000);
/// let clock = Clock::virtual_time(&time);
/// time.advance(500);
/// assert_eq!(clock.now().monotonic_ns, 1_500);
/// assert_eq!(clock.now().epoch_ns, 1_700_000_000_000_000_500);
/// ```
#[derive(Debug)]
pub struct Clock {
    shared: Arc<SharedClock>,
    /// Greatest readings so far: a clone may get another reader's new piece, which began earlier and runs slower.
    last: Cell<Now>,
}

#[derive(Debug)]
struct SharedClock {
    source: ClockSource,
    piece: Latch<PIECE_WORDS>,
    renewal: Mutex<Renewal>,
}

impl Clock {
    /// The system's monotonic clock, anchored to the wall clock now.
    #[must_use]
    pub fn system() -> Self {
        Self::over(ClockSource::System)
    }

    /// Clock on the time stamp counter; calibrates for 10 ms.
    ///
    /// # Errors
    /// [`Error::TscUnusable`] with the reason if it cannot serve as a clock here.
    pub fn tsc() -> Result<Self, Error> {
        tsc::check().map_err(Error::TscUnusable)?;
        Ok(Self::over(ClockSource::Tsc))
    }

    #[must_use]
    pub fn virtual_time(time: &VirtualTime) -> Self {
        Self::over(ClockSource::Virtual(time.clone()))
    }

    /// Clock on the time stamp counter if usable, else the system clock and the reason.
    #[must_use]
    pub fn fastest() -> (Self, Option<String>) {
        match Self::tsc() {
            Ok(clock) => (clock, None),
            Err(error) => (Self::system(), Some(error.to_string())),
        }
    }

    fn over(source: ClockSource) -> Self {
        let (piece, renewal) = timeline::begin(&source);
        let shared = SharedClock { source, piece: Latch::new(piece.to_words()), renewal: Mutex::new(renewal) };
        Self { shared: Arc::new(shared), last: Cell::new(Now::default()) }
    }

    /// Current time, never less than an earlier reading of this clone.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Now {
        let raw = self.shared.source.raw();
        let mut piece = TimelinePiece::from_words(self.shared.piece.read());
        let mut now = piece.at(raw);
        if now.monotonic_ns >= piece.renew_at_ns {
            piece = self.renew(&piece, now.monotonic_ns);
            now = piece.at(raw);
        }
        let last = self.last.get();
        let now =
            Now { monotonic_ns: now.monotonic_ns.max(last.monotonic_ns), epoch_ns: now.epoch_ns.max(last.epoch_ns) };
        self.last.set(now);
        now
    }

    #[inline]
    #[must_use]
    pub fn monotonic_ns(&self) -> u64 {
        self.now().monotonic_ns
    }

    /// Raw counter, the cheapest reading for short intervals; [`Clock::ticks_to_ns`] converts a difference. The
    /// processor may read it a few nanoseconds early, while earlier instructions are in flight.
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.shared.source.raw()
    }

    /// Converts at the current rate.
    #[inline]
    #[must_use]
    pub fn ticks_to_ns(&self, ticks: u64) -> u64 {
        TimelinePiece::from_words(self.shared.piece.read()).ticks_to_ns(ticks)
    }

    #[must_use]
    pub fn kind(&self) -> ClockKind {
        match self.shared.source {
            ClockSource::System => ClockKind::System,
            ClockSource::Tsc => ClockKind::Tsc,
            ClockSource::Virtual(_) => ClockKind::Virtual,
        }
    }

    /// Wall clock minus `epoch_ns`, ns: the rest to be slewed.
    #[must_use]
    pub fn wall_clock_offset_ns(&self) -> i64 {
        let wall_ns = self.shared.source.sample().wall_ns;
        timeline::difference_ns(wall_ns, self.now().epoch_ns)
    }

    #[cold]
    fn renew(&self, expired: &TimelinePiece, monotonic_ns: u64) -> TimelinePiece {
        let shared = &*self.shared;
        let renewal = if expired.is_long_over(monotonic_ns) {
            // The process was stopped or the machine slept: the old piece is no longer usable, so wait for the lock.
            shared.renewal.lock().unwrap_or_else(PoisonError::into_inner)
        } else {
            match shared.renewal.try_lock() {
                Ok(renewal) => renewal,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // Another reader is renewing it; the old piece is good for a while.
                Err(TryLockError::WouldBlock) => return TimelinePiece::from_words(shared.piece.read()),
            }
        };
        let mut renewal = renewal;
        let current = TimelinePiece::from_words(shared.piece.read());
        if current != *expired {
            return current;
        }
        let next = renewal.next(&current, &shared.source.sample());
        shared.piece.write(next.to_words());
        next
    }
}

impl Clone for Clock {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), last: self.last.clone() }
    }
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::Tsc => "tsc",
            Self::Virtual => "virtual",
        })
    }
}

impl FromStr for ClockKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "system" => Ok(Self::System),
            "tsc" => Ok(Self::Tsc),
            "virtual" => Ok(Self::Virtual),
            _ => Err(Error::Parse { what: "clock", expected: "system, tsc or virtual", found: text.to_owned() }),
        }
    }
}
