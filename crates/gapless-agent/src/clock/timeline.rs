//! The timeline: linear pieces that map a counter to monotonic and epoch time, and the calculation of the next piece.
//!
//! Two corrections, both at most [`SLEW_PPM_MAX`] (0.5 ms a second):
//! - epoch time is slewed towards the wall clock by a tenth of the offset per second; a wall clock that jumped by an
//!   hour is followed at 0.5 ms a second, and nothing expires because of the jump.
//! - monotonic time from the time stamp counter is led back to the system's within a piece. The counter's rate is
//!   measured again over each piece.

use super::source::{ClockSample, ClockSource};
use crate::agent::Now;

pub const SLEW_PPM_MAX: i64 = 500;

/// The counter's rate is known only roughly at first; each piece lasts twice as long as the last.
const FIRST_PIECE_NS: u64 = 10_000_000;
const PIECE_NS_MAX: u64 = 500_000_000;
const SLEW_TIME_NS: i64 = 10_000_000_000;
/// A larger error is a jump of the counter (a migrated or restored machine).
const MONOTONIC_ERROR_NS_MAX: u64 = 1_000_000;
const CALIBRATION_NS: u64 = 10_000_000;

const Q32: i64 = 1 << 32;
const SLEW_Q32_MAX: i64 = SLEW_PPM_MAX * Q32 / 1_000_000;

pub(crate) const PIECE_WORDS: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimelinePiece {
    raw: u64,
    monotonic_ns: u64,
    epoch_ns: u64,
    /// Nanoseconds per tick × 2³².
    rate_q32: u64,
    /// Rate of epoch time minus that of monotonic time, × 2³².
    slew_q32: i64,
    /// A piece that is not renewed (the process was stopped) must not run past the wall clock.
    slew_span_ns: u64,
    pub renew_at_ns: u64,
}

impl TimelinePiece {
    pub(crate) fn to_words(self) -> [u64; PIECE_WORDS] {
        [
            self.raw,
            self.monotonic_ns,
            self.epoch_ns,
            self.rate_q32,
            self.slew_q32 as u64,
            self.slew_span_ns,
            self.renew_at_ns,
        ]
    }

    #[inline]
    pub(crate) fn from_words(words: [u64; PIECE_WORDS]) -> Self {
        let [raw, monotonic_ns, epoch_ns, rate_q32, slew_q32, slew_span_ns, renew_at_ns] = words;
        Self { raw, monotonic_ns, epoch_ns, rate_q32, slew_q32: slew_q32 as i64, slew_span_ns, renew_at_ns }
    }

    #[inline]
    pub(crate) fn at(&self, raw: u64) -> Now {
        let ticks = raw.wrapping_sub(self.raw) as i64;
        let passed_ns = ((i128::from(ticks) * i128::from(self.rate_q32)) >> 32) as i64;
        Now { monotonic_ns: self.monotonic_ns.wrapping_add_signed(passed_ns), epoch_ns: self.epoch_after(passed_ns) }
    }

    #[inline]
    fn epoch_after(&self, passed_ns: i64) -> u64 {
        let slewed_ns = passed_ns.min(self.slew_span_ns as i64);
        // No overflow: at most 2³² nanoseconds × 2²².
        self.epoch_ns.wrapping_add_signed(passed_ns.wrapping_add(slewed_ns.wrapping_mul(self.slew_q32) >> 32))
    }

    #[inline]
    pub(crate) fn ticks_to_ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.rate_q32)) >> 32) as u64
    }

    /// Waiting for the next piece is then better than reading this one.
    pub(crate) fn is_long_over(&self, monotonic_ns: u64) -> bool {
        monotonic_ns.saturating_sub(self.renew_at_ns) > 2 * PIECE_NS_MAX
    }
}

#[derive(Debug)]
pub(crate) struct Renewal {
    counts_nanoseconds: bool,
    piece_ns: u64,
    rate_q32: u64,
    measured_from: ClockSample,
    out_of_step: bool,
}

pub(crate) fn begin(source: &ClockSource) -> (TimelinePiece, Renewal) {
    if source.counts_nanoseconds() {
        first_piece(source.sample(), Q32 as u64, true)
    } else {
        let (first, rate_q32) = calibrate(source);
        first_piece(first, rate_q32, false)
    }
}

fn first_piece(first: ClockSample, rate_q32: u64, counts_nanoseconds: bool) -> (TimelinePiece, Renewal) {
    let piece = TimelinePiece {
        raw: first.raw,
        monotonic_ns: first.monotonic_ns,
        epoch_ns: first.wall_ns,
        rate_q32,
        slew_q32: 0,
        slew_span_ns: 0,
        renew_at_ns: first.monotonic_ns.saturating_add(FIRST_PIECE_NS),
    };
    let measured_from = first;
    (piece, Renewal { counts_nanoseconds, piece_ns: FIRST_PIECE_NS, rate_q32, measured_from, out_of_step: false })
}

fn calibrate(source: &ClockSource) -> (ClockSample, u64) {
    let begun = source.sample();
    loop {
        std::thread::sleep(std::time::Duration::from_nanos(CALIBRATION_NS));
        let now = source.sample();
        if let Some(rate_q32) = measured_rate_q32(&begun, &now) {
            return (now, rate_q32);
        }
    }
}

fn measured_rate_q32(from: &ClockSample, to: &ClockSample) -> Option<u64> {
    let passed_ns = to.monotonic_ns.checked_sub(from.monotonic_ns)?;
    let ticks = to.raw.checked_sub(from.raw).filter(|&ticks| ticks > 0)?;
    if passed_ns < FIRST_PIECE_NS / 2 {
        return None;
    }
    u64::try_from((u128::from(passed_ns) << 32) / u128::from(ticks)).ok().filter(|&rate| rate > 0)
}

impl Renewal {
    pub(crate) fn next(&mut self, current: &TimelinePiece, sample: &ClockSample) -> TimelinePiece {
        self.piece_ns = (self.piece_ns * 2).min(PIECE_NS_MAX);
        // The next piece begins at the end of this one, so neither time jumps.
        let mut end = current.at(sample.raw);
        let mut rate_q32 = Q32 as u64;
        if !self.counts_nanoseconds {
            let error_ns = difference_ns(sample.monotonic_ns, end.monotonic_ns);
            let measured = measured_rate_q32(&self.measured_from, sample);
            self.measured_from = *sample;
            let in_step = error_ns.unsigned_abs() <= MONOTONIC_ERROR_NS_MAX;
            // A measurement across a jump is invalid; the next one is valid, whatever its value.
            if let Some(measured) = measured.filter(|_| in_step || self.out_of_step) {
                self.rate_q32 = measured;
            }
            self.out_of_step = !in_step;
            if in_step {
                let lead_q32 = (error_ns * Q32 / self.piece_ns as i64).clamp(-SLEW_Q32_MAX, SLEW_Q32_MAX);
                let change = (i128::from(self.rate_q32) * i128::from(lead_q32)) >> 32;
                rate_q32 = self.rate_q32.wrapping_add_signed(change as i64);
            } else {
                // Each clone keeps its own readings from going back.
                let passed_ns = difference_ns(sample.monotonic_ns, current.monotonic_ns);
                end = Now { monotonic_ns: sample.monotonic_ns, epoch_ns: current.epoch_after(passed_ns) };
                rate_q32 = self.rate_q32;
                self.piece_ns = FIRST_PIECE_NS;
            }
        }
        let ahead_ns = difference_ns(sample.wall_ns, end.epoch_ns);
        let slew_q32 = (i128::from(ahead_ns) * i128::from(Q32) / i128::from(SLEW_TIME_NS))
            .clamp(i128::from(-SLEW_Q32_MAX), i128::from(SLEW_Q32_MAX)) as i64;
        TimelinePiece {
            raw: sample.raw,
            monotonic_ns: end.monotonic_ns,
            epoch_ns: end.epoch_ns,
            rate_q32,
            slew_q32,
            slew_span_ns: 2 * PIECE_NS_MAX,
            renew_at_ns: end.monotonic_ns.saturating_add(self.piece_ns),
        }
    }
}

pub(crate) fn difference_ns(later: u64, earlier: u64) -> i64 {
    later.wrapping_sub(earlier) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000_000_000;

    struct Machine {
        ticks: f64,
        monotonic_ns: u64,
        piece: TimelinePiece,
        renewal: Renewal,
    }

    impl Machine {
        fn new(ticks_per_ns: f64) -> Self {
            let first = ClockSample { raw: 1 << 40, monotonic_ns: 77, wall_ns: START + 77 };
            let rate_q32 = (Q32 as f64 / ticks_per_ns * 1.000_005) as u64;
            let (piece, renewal) = first_piece(first, rate_q32, false);
            Self { ticks: first.raw as f64, monotonic_ns: 77, piece, renewal }
        }

        fn now(&self) -> Now {
            self.piece.at(self.ticks as u64)
        }

        fn error_ns(&self) -> i64 {
            difference_ns(self.now().monotonic_ns, self.monotonic_ns)
        }

        fn run(&mut self, milliseconds: u64, ticks_per_ns: f64) {
            for _ in 0..milliseconds {
                let before = self.now();
                self.ticks += ticks_per_ns * 1e6;
                self.monotonic_ns += 1_000_000;
                let sample = self.sample();
                if self.now().monotonic_ns >= self.piece.renew_at_ns {
                    let end = self.now();
                    self.piece = self.renewal.next(&self.piece, &sample);
                    assert_eq!(self.now(), end, "a piece begins where the last one ended");
                }
                let after = self.now();
                let passed_ns = difference_ns(after.monotonic_ns, before.monotonic_ns);
                assert!((998_000..=1_002_000).contains(&passed_ns), "a millisecond became {passed_ns} ns");
            }
        }

        fn sample(&self) -> ClockSample {
            ClockSample { raw: self.ticks as u64, monotonic_ns: self.monotonic_ns, wall_ns: START + self.monotonic_ns }
        }

        fn renew(&mut self) {
            self.piece = self.renewal.next(&self.piece, &self.sample());
        }
    }

    #[test]
    fn drifting_counter_stays_in_step() {
        let mut machine = Machine::new(2.45);
        for second in 0..120 {
            let drift = 1.0 + 2e-4 * (f64::from(second) / 10.0).sin();
            machine.run(1_000, 2.45 * drift);
            assert!(machine.error_ns().abs() < 50_000, "{} ns off in second {second}", machine.error_ns());
        }
        machine.run(5_000, 2.45);
        assert!(machine.error_ns().abs() < 100, "{} ns off", machine.error_ns());
        assert!(difference_ns(machine.now().epoch_ns, START + machine.monotonic_ns).abs() < 50_000);
    }

    #[test]
    fn jumping_counter_is_caught() {
        for (jump_ticks, ticks_per_ns) in [(9e12, 2.45), (-1e12, 2.45), (0.0, 3.2), (-1e12, 1.8)] {
            let mut machine = Machine::new(2.45);
            machine.run(3_000, 2.45);
            // A migration: half a second passes unseen, and the counter is another one.
            machine.ticks += jump_ticks + ticks_per_ns * 5e8;
            machine.monotonic_ns += 500_000_000;
            machine.renew();
            assert_eq!(machine.error_ns(), 0, "the system's clock is taken over at once");
            for _ in 0..4 {
                machine.ticks += ticks_per_ns * 2e7;
                machine.monotonic_ns += 20_000_000;
                machine.renew();
            }
            machine.run(10_000, ticks_per_ns);
            assert!(machine.error_ns().abs() < 1_000, "{} ns off after {jump_ticks}", machine.error_ns());
        }
    }

    #[test]
    fn no_counter_makes_a_piece_panic() {
        let (piece, mut renewal) = first_piece(ClockSample { raw: 5, monotonic_ns: 5, wall_ns: 5 }, u64::MAX, false);
        for raw in [0, 1, u64::MAX / 2, u64::MAX] {
            let _ = piece.at(raw);
            for monotonic_ns in [0, u64::MAX / 2, u64::MAX] {
                let next = renewal.next(&piece, &ClockSample { raw, monotonic_ns, wall_ns: raw });
                let _ = next.at(raw.wrapping_mul(3));
            }
        }
    }
}
