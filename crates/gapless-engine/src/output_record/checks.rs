//! [`OutputChecks`]: locate the first differing output within a record: a frame in a short record, else a range. All
//! records have the same length.

use super::OutputHash;
use std::ops::RangeInclusive;

pub(super) const CHECKS_MAX: usize = 256;
pub(super) const CHECK_LENGTH: usize = 2;

/// Lowest bits of the hash after every `step_frames` frames. When the array is full, every second check is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputChecks {
    /// A power of two.
    step_frames: u32,
    frames: u32,
    values: [u16; CHECKS_MAX],
}

impl OutputChecks {
    pub const fn new() -> Self {
        Self { step_frames: 1, frames: 0, values: [0; CHECKS_MAX] }
    }

    #[inline]
    pub fn after_frame(&mut self, hash: OutputHash) {
        self.frames += 1;
        if !self.is_due() {
            return;
        }
        let mut at = self.count() - 1;
        if at == CHECKS_MAX {
            for kept in 0..CHECKS_MAX / 2 {
                self.values[kept] = self.values[2 * kept + 1];
            }
            self.step_frames *= 2;
            if !self.is_due() {
                return;
            }
            at = CHECKS_MAX / 2;
        }
        self.values[at] = hash.0 as u16;
    }

    pub fn of_first(mut self, frames: u64) -> Self {
        self.frames = self.frames.min(u32::try_from(frames).unwrap_or(u32::MAX));
        let count = self.count();
        self.values[count..].fill(0);
        self
    }

    /// Avoids a division for each frame.
    const fn is_due(&self) -> bool {
        self.frames & (self.step_frames - 1) == 0
    }

    const fn count(&self) -> usize {
        (self.frames >> self.step_frames.trailing_zeros()) as usize
    }

    pub fn to_bytes(self) -> impl Iterator<Item = u8> {
        self.values.into_iter().flat_map(u16::to_le_bytes)
    }

    pub const fn step_frames(&self) -> u32 {
        self.step_frames
    }

    pub fn from_bytes(step_frames: u32, frames: u64, bytes: &[u8]) -> Option<Self> {
        let frames = u32::try_from(frames).ok().filter(|_| step_frames.is_power_of_two())?;
        let count = (frames / step_frames) as usize;
        let mut values = [0; CHECKS_MAX];
        for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = u16::from_le_bytes(*bytes);
        }
        (count <= CHECKS_MAX).then_some(Self { step_frames, frames, values })
    }
}

#[derive(Clone, Debug)]
pub(super) struct ReplayComparison {
    checks: OutputChecks,
    frames: u32,
    /// Counted from 0; `None` until a check differs.
    differs: Option<RangeInclusive<u32>>,
}

impl ReplayComparison {
    pub const fn new(checks: OutputChecks) -> Self {
        Self { checks, frames: 0, differs: None }
    }

    #[inline]
    pub fn after_frame(&mut self, hash: OutputHash) {
        self.frames += 1;
        let step = self.checks.step_frames;
        if self.differs.is_some() || !self.frames.is_multiple_of(step) || self.frames > self.checks.frames {
            return;
        }
        if self.checks.values[(self.frames / step) as usize - 1] != hash.0 as u16 {
            self.differs = Some(self.frames - step..=self.frames - 1);
        }
    }

    pub fn differs(&self, first: u64, last: u64) -> RangeInclusive<u64> {
        match &self.differs {
            Some(frames) => first + u64::from(*frames.start())..=first + u64::from(*frames.end()),
            None => first + self.checks.count() as u64 * u64::from(self.checks.step_frames)..=last,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn checks(frames: u64, other: Option<u64>) -> (OutputChecks, Vec<OutputHash>) {
        let (mut checks, mut hash, mut hashes) = (OutputChecks::new(), OutputHash::new(), Vec::new());
        for frame in 0..frames {
            hash.timer(frame, u64::from(other == Some(frame)));
            checks.after_frame(hash);
            hashes.push(hash);
        }
        (checks, hashes)
    }

    fn found(recorded: OutputChecks, replayed: &[OutputHash]) -> RangeInclusive<u64> {
        let mut replay = ReplayComparison::new(recorded);
        replayed.iter().for_each(|hash| replay.after_frame(*hash));
        replay.differs(101, 100 + replayed.len() as u64)
    }

    #[test]
    fn first_difference_is_located() {
        for frames in [1, 2, 255, 256, 257, 300, 511, 512, 513, 4000, 16_384, 20_001] {
            let recorded = checks(frames, None).0;
            let step = u64::from(recorded.step_frames());
            assert_eq!(step == 1, frames <= 256, "{frames} frames, {step} a check");
            for other in [0, 1, frames / 3, frames / 2, frames - 1].into_iter().filter(|other| *other < frames) {
                let stretch = found(recorded, &checks(frames, Some(other)).1);
                assert!(stretch.contains(&(101 + other)), "{other} of {frames}: {stretch:?}");
                assert!(stretch.end() - stretch.start() < step, "{other} of {frames}: {stretch:?}");
            }
        }
    }

    #[test]
    fn checks_survive_a_round_trip() {
        let whole = checks(700, None).0;
        let bytes: Vec<u8> = whole.to_bytes().collect();
        assert_eq!(bytes.len(), CHECKS_MAX * CHECK_LENGTH);
        assert_eq!(OutputChecks::from_bytes(whole.step_frames(), 700, &bytes), Some(whole));
        for step_frames in [0, 3, 6, u32::MAX] {
            assert_eq!(OutputChecks::from_bytes(step_frames, 700, &bytes), None, "{step_frames}");
        }
        assert_eq!(OutputChecks::from_bytes(1, 700, &bytes), None, "too many checks");
        let part = whole.of_first(690);
        assert_eq!(found(part, &checks(690, Some(10)).1), 109..=112);
        assert_eq!(found(part, &checks(690, Some(689)).1), 789..=790);
    }
}
