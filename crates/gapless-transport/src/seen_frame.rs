//! `SeenFrame`: the last frame of a stream that a peer has seen.

use gapless_log::StreamIdentity;

/// Last seen frame of a stream; zeros for none. Not comparable with another stream or incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenFrame {
    pub identity: StreamIdentity,
    pub sequence: u64,
    /// Time stamp of the frame, ns since the epoch. Two histories never give a sequence the same one.
    pub timestamp_ns: u64,
}

impl SeenFrame {
    #[must_use]
    pub const fn none_seen(identity: StreamIdentity) -> Self {
        Self { identity, sequence: 0, timestamp_ns: 0 }
    }

    /// Error for `peer`'s stream, released up to `released_sequence`, without this frame.
    #[must_use]
    pub fn missing_reason(&self, peer: &str, released_sequence: u64) -> String {
        let Self { sequence, timestamp_ns, .. } = self;
        format!(
            "{peer} serves another history of its stream: the frame of sequence {sequence} with the time stamp {timestamp_ns} ns, \
             which was seen, is not in it; it is released up to sequence {released_sequence}. Put back the directory that belongs \
             to the stream, or make this one a history of its own with `gapless journal restore` (a member of a cluster: \
             `gapless cluster add --replace`; a relay or an archive: move its directory away, and it is fetched again)"
        )
    }

    /// Perhaps an earlier frame. A time of 0 means unknown, as in the answer to the opening of a session: it proves
    /// nothing and is ignored.
    #[inline]
    pub const fn observe(&mut self, sequence: u64, timestamp_ns: u64) {
        if sequence > self.sequence && timestamp_ns != 0 {
            (self.sequence, self.timestamp_ns) = (sequence, timestamp_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_frame_with_known_time_counts() {
        let mut seen = SeenFrame::none_seen(StreamIdentity::default());
        for ((sequence, timestamp_ns), expected) in
            [((5, 50), (5, 50)), ((4, 40), (5, 50)), ((9, 0), (5, 50)), ((6, 60), (6, 60))]
        {
            seen.observe(sequence, timestamp_ns);
            assert_eq!((seen.sequence, seen.timestamp_ns), expected);
        }
    }
}
