use super::frames::{frame, marks};
use super::places::Place;
use gapless_log::{FreeRead, LogError, Scope};
use gapless_wire::aligned_length;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::VecDeque;

fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: gapless_testkit::random::rounds(200, 20) as u32,
        failure_persistence: None,
        ..Config::default()
    };
    if let Err(error) = TestRunner::new(config).run(&strategy, test) {
        panic!("{error}");
    }
}

#[derive(Clone, Debug)]
enum RingStep {
    Append { payload_length: usize },
    Abandon { length: usize },
    Publish,
    Discard,
    Read,
    Release,
}

fn ring_step() -> impl Strategy<Value = RingStep> {
    prop_oneof![
        6 => (0usize..1900).prop_map(|payload_length| RingStep::Append { payload_length }),
        1 => (64usize..2048).prop_map(|length| RingStep::Abandon { length }),
        4 => Just(RingStep::Publish),
        1 => Just(RingStep::Discard),
        6 => Just(RingStep::Read),
        4 => Just(RingStep::Release),
    ]
}

pub fn ring_models_a_queue(place: &impl Place) {
    check(prop::collection::vec(ring_step(), 1..200), |steps| {
        let (mut writer, mut reader) = place.ring();
        let (mut committed, mut published) = (VecDeque::new(), VecDeque::new());
        let (mut unreleased, mut occupied) = (0, 0);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                RingStep::Append { payload_length } => {
                    let frame = frame(0, payload_length, number as u64);
                    let fits = occupied + frame.len() <= 4096;
                    match writer.append(&frame) {
                        Ok(()) => {
                            prop_assert!(fits);
                            occupied += frame.len();
                            committed.push_back(frame);
                        }
                        Err(error) => prop_assert!(!fits && matches!(error, LogError::Full { .. }), "{}", error),
                    }
                }
                RingStep::Abandon { length } => {
                    if let Ok(space) = writer.claim(length) {
                        space.fill(0xff);
                    }
                }
                RingStep::Publish => {
                    prop_assert!(!writer.publish());
                    published.append(&mut committed);
                }
                RingStep::Discard => {
                    writer.discard_unpublished();
                    occupied -= committed.drain(..).map(|frame| frame.len()).sum::<usize>();
                }
                RingStep::Read => match reader.next_length().unwrap() {
                    Some(length) => {
                        let mut copy = vec![0; aligned_length(length)];
                        reader.copy(&mut copy);
                        reader.advance(length);
                        unreleased += copy.len();
                        prop_assert_eq!(Some(copy), published.pop_front());
                    }
                    None => prop_assert!(published.is_empty()),
                },
                RingStep::Release => {
                    reader.release();
                    occupied -= std::mem::take(&mut unreleased);
                }
            }
        }
        Ok(())
    });
}

#[derive(Clone, Debug)]
enum WindowStep {
    Append { payload_length: usize },
    Abandon { length: usize },
    Publish,
    Release { frames: usize },
    Truncate { back: u64 },
    PollGating { cursor: usize, frames: usize },
    ReadFree,
}

fn window_step() -> impl Strategy<Value = WindowStep> {
    prop_oneof![
        8 => (0usize..900).prop_map(|payload_length| WindowStep::Append { payload_length }),
        1 => (64usize..2048).prop_map(|length| WindowStep::Abandon { length }),
        4 => Just(WindowStep::Publish),
        4 => (0usize..5).prop_map(|frames| WindowStep::Release { frames }),
        1 => (0u64..8).prop_map(|back| WindowStep::Truncate { back }),
        8 => (0usize..2, 0usize..5).prop_map(|(cursor, frames)| WindowStep::PollGating { cursor, frames }),
        4 => Just(WindowStep::ReadFree),
    ]
}

/// Sequence n is at n - 1.
#[derive(Default)]
struct History {
    frames: Vec<Vec<u8>>,
    published: usize,
    released: usize,
    consumed: [usize; 2],
    is_settled: [bool; 2],
    claimed: usize,
}

impl History {
    fn bytes(&self, range: std::ops::Range<usize>) -> usize {
        self.frames[range].iter().map(Vec::len).sum()
    }

    fn claim(&mut self, length: usize) {
        self.claimed = self.claimed.max(self.bytes(0..self.frames.len()) + length);
    }

    fn has_room(&self, length: usize) -> bool {
        let slowest = self.consumed.iter().copied().fold(self.released, usize::min);
        self.is_settled == [true, true] && self.bytes(slowest..self.frames.len()) + length <= 4096
    }

    fn truncate(&mut self, sequence: usize) {
        self.frames.truncate(sequence);
        if sequence < self.published {
            self.published = sequence;
            self.is_settled[0] = false;
        }
    }
}

pub fn window_models_a_multi_reader_queue(place: &impl Place) {
    check(prop::collection::vec(window_step(), 1..300), |steps| {
        let (mut writer, mut releaser) = place.options().create(1).unwrap();
        let mut cursors = [writer.gating_cursor(Scope::Appended), writer.gating_cursor(Scope::Released)];
        let mut free = place.reader(&writer).free_cursor(1);
        let mut history = History { is_settled: [true, true], ..History::default() };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                WindowStep::Append { payload_length } => {
                    let sequence = history.frames.len() as u64 + 1;
                    let frame = frame(sequence, payload_length, number as u64);
                    let has_room = history.has_room(frame.len());
                    match writer.append(&frame, sequence) {
                        Ok(()) => {
                            prop_assert!(has_room);
                            history.claim(frame.len());
                            history.frames.push(frame);
                        }
                        Err(error) => prop_assert!(!has_room && matches!(error, LogError::Full { .. }), "{}", error),
                    }
                }
                WindowStep::Abandon { length } => {
                    let has_room = history.has_room(aligned_length(length));
                    match writer.claim(length) {
                        Ok(space) => {
                            prop_assert!(has_room);
                            space.fill(0xff);
                            history.claim(space.len());
                        }
                        Err(error) => prop_assert!(!has_room && matches!(error, LogError::Full { .. }), "{}", error),
                    }
                }
                WindowStep::Publish => {
                    writer.publish();
                    history.published = history.frames.len();
                }
                WindowStep::Release { frames } => {
                    history.released = (history.released + frames).min(history.published);
                    releaser.release(history.bytes(0..history.released) as u64, history.released as u64);
                }
                WindowStep::Truncate { back } => {
                    let sequence = (history.frames.len() as u64).saturating_sub(back);
                    match writer.truncate_after(sequence) {
                        Ok(()) => {
                            prop_assert!(sequence as usize >= history.released);
                            history.truncate(sequence as usize);
                        }
                        Err(error) => {
                            prop_assert!(matches!(error, LogError::TruncatesReleased { .. }), "{}", error);
                            prop_assert!((sequence as usize) < history.released);
                        }
                    }
                    prop_assert_eq!(writer.last_sequence(), history.frames.len() as u64);
                }
                WindowStep::PollGating { cursor, frames } => {
                    poll(&mut cursors[cursor], cursor, frames, &mut history)?;
                }
                WindowStep::ReadFree => {
                    let mut copy = Vec::new();
                    let sequence = free.sequence() as usize;
                    let is_released = sequence <= history.released;
                    let is_lapped = is_released && history.claimed > history.bytes(0..sequence - 1) + 4096;
                    match free.read(&mut copy).unwrap() {
                        FreeRead::Frame(_) => {
                            prop_assert!(is_released && !is_lapped);
                            prop_assert_eq!(marks(&copy), marks(&history.frames[sequence - 1]));
                        }
                        FreeRead::Empty => prop_assert!(!is_released),
                        FreeRead::Lapped { from_sequence } => {
                            prop_assert!(is_lapped && from_sequence == sequence as u64);
                            free.seek(history.released as u64 + 1);
                        }
                    }
                }
            }
        }
        Ok(())
    });
}

fn poll(
    cursor: &mut gapless_log::GatingCursor,
    number: usize,
    frames: usize,
    history: &mut History,
) -> Result<(), TestCaseError> {
    let end = [history.published, history.released][number];
    let begin = history.consumed[number];
    history.is_settled[number] = true;
    match cursor.available() {
        Ok(bytes) => {
            prop_assert!(begin <= end, "the truncation was not reported");
            let count = marks(bytes).len();
            prop_assert!(count > 0 || begin == end);
            prop_assert_eq!(bytes, history.frames[begin..begin + count].concat());
            let taken = begin + frames.min(count);
            cursor.advance(history.bytes(begin..taken));
            history.consumed[number] = taken;
        }
        Err(error) => {
            prop_assert!(matches!(error, LogError::Truncated { .. }), "{}", error);
            prop_assert!(number == 0 && begin > end, "it was told of a cut that does not concern it");
            cursor.rewind();
            history.consumed[number] = end;
        }
    }
    Ok(())
}
