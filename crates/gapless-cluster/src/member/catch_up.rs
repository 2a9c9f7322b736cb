//! Fetch of frames up to a log position from the leader's journal, a piece at a time, and the same service to others;
//! messages as in `frame_fetch`.

use super::frame_fetch::{FetchError, FetchedFrames, PieceRequests, header, parse_header};
use super::journal_readers::{JournalReaders, ReadOutcome};
use crate::consensus::{LogPosition, MemberId, PositionFetch};
use crate::link::{Links, MessageContent};
use gapless_transport::catch_up_budget::CatchUpBudget;
use gapless_wire::{Frame, aligned_length};
use std::collections::VecDeque;
use std::ops::Range;

/// Takes a fraction of a millisecond of a leader's turn.
const PIECE_BYTES: usize = 256 << 10;
/// More are dropped, and the other member asks again.
const REQUESTS_MAX: usize = 64;
/// Frames without a quorum to be replaced: more than a leader has in flight.
const REPLACEMENT_BYTES_MAX: usize = 48 << 20;

#[derive(Default)]
pub(super) struct CatchUp {
    fetching: Option<FetchState>,
    requests: VecDeque<(MemberId, u64, u64)>,
    bytes: Vec<u8>,
    fetched: u64,
}

struct FetchState {
    requests: PieceRequests,
    frames: FetchedFrames,
    /// Up to here the frames equal the leader's.
    common_sequence: u64,
    /// Frames after it differ, and stay until consensus cuts them.
    is_other: bool,
    /// Fetched frames under comparison, or to be appended after the cut.
    replacement: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PieceOutcome {
    Kept,
    Append(Range<usize>),
    NotHeld,
    /// More frames would be replaced than fit here until consensus cuts them.
    TooMuch,
}

impl CatchUp {
    /// `last_sequence` is that of the last frame here.
    pub fn begin(&mut self, fetch: &PositionFetch, last_sequence: u64, now_ns: u64) {
        let LogPosition { sequence, hash, .. } = fetch.base;
        tracing::info!(
            from = sequence + 1,
            to = fetch.position.sequence,
            last_sequence,
            "frames are fetched from the leader"
        );
        self.fetching = Some(FetchState {
            requests: PieceRequests::new(fetch.leader, now_ns),
            frames: FetchedFrames::after(sequence, hash, fetch.position),
            common_sequence: sequence,
            is_other: false,
            replacement: Vec::new(),
        });
    }

    /// Counts a reached log position.
    pub fn note_fetched(&mut self) {
        self.fetched += 1;
        self.end();
    }

    /// Reached log positions.
    pub const fn fetched(&self) -> u64 {
        self.fetched
    }

    pub fn end(&mut self) {
        self.fetching = None;
    }

    /// Sequence of the last frame to fetch.
    pub fn target(&self) -> Option<u64> {
        self.fetching.as_ref().map(|fetching| fetching.frames.to.sequence)
    }

    /// Continues with another leader; any member's journal would do, because the hash proves the frames.
    pub fn follow(&mut self, leader: MemberId) {
        if let Some(fetching) = &mut self.fetching {
            fetching.requests.follow(leader);
        }
    }

    /// Source of the frames.
    pub fn leader(&self) -> Option<MemberId> {
        self.fetching.as_ref().map(|fetching| fetching.requests.leader())
    }

    /// Drops the requests of a disconnected member.
    pub fn peer_disconnected(&mut self, member: MemberId) {
        self.requests.retain(|(other, ..)| *other != member);
        if let Some(fetching) = &mut self.fetching {
            fetching.requests.end_waiting();
        }
    }

    /// The log position once all its frames are here, and the end of the common prefix.
    pub fn complete(&self) -> Option<(LogPosition, u64)> {
        let fetching = self.fetching.as_ref()?;
        fetching.frames.is_complete().then_some((fetching.frames.to, fetching.common_sequence))
    }

    /// Frames to append after the cut at `sequence`; empty if none differed.
    pub fn replacement_after(&self, sequence: u64) -> &[u8] {
        let Some(fetching) = self.fetching.as_ref().filter(|fetching| fetching.is_other) else { return &[] };
        let mut start = 0;
        while start < fetching.replacement.len() {
            let frame = Frame::parse(&fetching.replacement[start..]).expect("checked when it came");
            if frame.sequence() > sequence {
                break;
            }
            start += aligned_length(frame.length());
        }
        &fetching.replacement[start..]
    }

    /// Asks for the next piece.
    pub fn ask(&mut self, links: &mut Links, now_ns: u64) {
        let Some(fetching) = &mut self.fetching else { return };
        if fetching.frames.is_complete() || !fetching.requests.begin_waiting(now_ns) {
            return;
        }
        // If it is not connected, it is asked again later.
        let _ = links.send(
            fetching.requests.leader().get(),
            MessageContent::CatchUpRequest,
            &fetching.frames.request(),
            &[],
        );
    }

    /// Queues another member's request for frames.
    pub fn queue_request(&mut self, from: MemberId, bytes: &[u8]) {
        let Some((first, last)) = parse_header(bytes).filter(|(first, last)| *first >= 1 && first <= last) else {
            return;
        };
        self.requests.retain(|(other, ..)| *other != from);
        if self.requests.len() < REQUESTS_MAX {
            self.requests.push_back((from, first, last));
        }
    }

    /// Whether requests are queued.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Serves one of the requests.
    pub fn serve(
        &mut self,
        links: &mut Links,
        (readers, budget): (&mut JournalReaders, &mut CatchUpBudget),
        now_ns: u64,
    ) {
        if self.requests.is_empty() || !budget.has_budget(now_ns) {
            return;
        }
        let Some((to, first, last)) = self.requests.pop_front() else { return };
        self.bytes.clear();
        match readers.read(to, (first, last), PIECE_BYTES, (&mut self.bytes, now_ns)) {
            // A quorum was faster than this journal.
            ReadOutcome::Until(until) if until < first => return,
            // The receiver asks again; an empty answer would say that the frames are not held.
            ReadOutcome::NotNow => return,
            ReadOutcome::Until(until) if until == last => readers.forget(to),
            ReadOutcome::Until(_) => {}
            ReadOutcome::NotHeld => {
                tracing::warn!(member = %to, first, "a member needs frames that this journal no longer holds");
            }
        }
        budget.spend(self.bytes.len());
        // The receiver asks again if the frames do not arrive.
        let _ = links.send(to.get(), MessageContent::CatchUpFrames, &header(first, last), &[&self.bytes]);
    }

    /// Processes a piece. `held` are this member's frames from the first requested sequence up to `last_sequence`;
    /// those up to `released` are equal everywhere.
    pub fn take(
        &mut self,
        from: MemberId,
        bytes: &[u8],
        frames: &[u8],
        (held, last_sequence, released): (&[u8], u64, u64),
    ) -> Result<PieceOutcome, FetchError> {
        let Some(fetching) = &mut self.fetching else { return Ok(PieceOutcome::Kept) };
        let Some((first, _)) = parse_header(bytes) else { return Ok(PieceOutcome::Kept) };
        if from != fetching.requests.leader() || first != fetching.frames.last_sequence + 1 {
            return Ok(PieceOutcome::Kept);
        }
        if frames.is_empty() {
            return Ok(PieceOutcome::NotHeld);
        }
        let (mut known, mut compared) = (0, 0);
        let fetched = fetching.frames.checked(frames, |sequence, place| {
            if sequence <= last_sequence && !fetching.is_other {
                compared = place.end;
                if sequence <= released {
                    known = place.end;
                    fetching.common_sequence = sequence;
                } else if held.get(place.clone()) == frames.get(place) {
                    fetching.common_sequence = sequence;
                } else {
                    fetching.is_other = true;
                }
            }
        })?;
        // Released frames are not cut, so nothing replaces them.
        let added = if fetching.is_other { &frames[known..] } else { &frames[known..compared] };
        if fetching.replacement.len() + added.len() > REPLACEMENT_BYTES_MAX {
            return Ok(PieceOutcome::TooMuch);
        }
        fetching.replacement.extend_from_slice(added);
        fetching.frames = fetched;
        fetching.requests.end_waiting();
        if fetching.is_other {
            return Ok(PieceOutcome::Kept);
        }
        if fetched.last_sequence >= last_sequence {
            // All frames here are the leader's: the next ones are appended as they arrive.
            fetching.replacement = Vec::new();
            fetching.common_sequence = fetched.last_sequence;
        }
        Ok(if compared < frames.len() { PieceOutcome::Append(compared..frames.len()) } else { PieceOutcome::Kept })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::consensus::{Chain, Members};
    use gapless_wire::{FrameHeader, FrameWriter};

    #[test]
    fn piece_with_cut_padding_is_refused() {
        let mut frames = vec![0; 72];
        let mut writer = FrameWriter::new(&mut frames);
        writer.payload_mut()[..3].copy_from_slice(b"abc");
        writer.finish(&FrameHeader { sequence: 1, term: 2, ..FrameHeader::default() }, 3);
        let mut chain = Chain::new(7);
        let base = LogPosition { index: 1, term: 1, sequence: 0, hash: chain.value() };
        chain.extend_frames(&frames).unwrap();
        let position = LogPosition { index: 2, term: 2, sequence: 1, hash: chain.value() };
        let leader = MemberId::new(2).unwrap();
        let fetch = PositionFetch { position, members: Members::of_voters(&[leader]), base, leader };
        let taken = |frames: &[u8]| {
            let mut catch_up = CatchUp::default();
            catch_up.begin(&fetch, 0, 0);
            catch_up.take(leader, &header(1, 1), frames, (&[], 0, 0))
        };
        for length in 67..72 {
            assert_eq!(taken(&frames[..length]), Err(FetchError::Padding { sequence: 1 }), "{length} bytes");
        }
        assert_eq!(taken(&frames), Ok(PieceOutcome::Append(0..72)));
    }
}
