//! [`RelayLimits`]: frames and messages too long for the stream or the relay are refused here. The sequencer sees all
//! nodes of a relay as one publisher and would drop all of them.

use crate::StreamError;
use crate::fragments::shortest_length;
use crate::options::{EventStreamOptions, message_bytes_max};
use gapless_client::node::link::ConnectionInfo;
use gapless_wire::control::{SessionOpen, TimerFired};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Fragment, Frame, Kind, aligned_length};

/// Common limits of a relay and its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayLimits {
    /// Longest frame that passes, bytes.
    pub frame_length_max: usize,
    /// Longest message that passes, with headers and padding, bytes.
    pub message_bytes_max: usize,
    window_bytes: usize,
    window_frame_length_max: usize,
}

impl RelayLimits {
    /// Limits of both a relay with `options` and the stream at `peer`.
    ///
    /// # Errors
    /// [`StreamError::Option`], if the frames of the stream do not fit here.
    pub fn common(options: &EventStreamOptions, connected: &ConnectionInfo, peer: &str) -> Result<Self, StreamError> {
        let frame_length_max = options.frame_length_max.min(connected.frame_length_max);
        let ours = message_bytes_max(options.message_length_max, frame_length_max).min(options.window_bytes / 2);
        let limits = Self {
            frame_length_max,
            message_bytes_max: ours.min(connected.message_bytes_max),
            window_bytes: options.window_bytes,
            window_frame_length_max: options.frame_length_max,
        };
        limits.check_fit(connected, peer).map(|()| limits)
    }

    /// Whether the limits announced to the nodes still hold.
    ///
    /// # Errors
    /// As for [`RelayLimits::common`]; or the stream's limits have shrunk.
    pub fn check_unchanged(&self, connected: &ConnectionInfo, peer: &str) -> Result<(), StreamError> {
        self.check_fit(connected, peer)?;
        let refuse = |option, ours: usize, theirs: usize, what: &str| {
            let reason = format!(
                "{peer} takes {what} of {theirs} bytes now, nodes here were told {ours}; start the relay again"
            );
            Err(StreamError::Option { option, reason })
        };
        let (frame_length_max, message_bytes_max) = (connected.frame_length_max, connected.message_bytes_max);
        if frame_length_max < self.frame_length_max {
            return refuse("frame_length_max", self.frame_length_max, frame_length_max, "frames");
        }
        if message_bytes_max < self.message_bytes_max {
            return refuse("message_length_max", self.message_bytes_max, message_bytes_max, "messages");
        }
        Ok(())
    }

    fn check_fit(&self, connected: &ConnectionInfo, peer: &str) -> Result<(), StreamError> {
        let (ours, theirs) = (self.window_frame_length_max, connected.frame_length_max);
        if ours < theirs {
            let reason = format!("{peer} has frames of up to {theirs} bytes, more than the {ours} here");
            return Err(StreamError::Option { option: "frame_length_max", reason });
        }
        let (half, longest) = (self.window_bytes / 2, connected.message_bytes_max);
        if longest > half {
            let reason = format!(
                "{peer} has messages of up to {longest} bytes with their headers, more than half of the window of {} \
                 bytes here; at least {} are needed",
                self.window_bytes,
                (2 * longest).next_power_of_two()
            );
            return Err(StreamError::Option { option: "window_bytes", reason });
        }
        Ok(())
    }

    /// Whether the sequencer would keep the publisher of `frame`, as far as one frame shows.
    ///
    /// # Errors
    /// The reason why the sequencer would not.
    #[inline]
    pub fn check(&self, frame: &Frame<'_>) -> Result<(), &'static str> {
        if frame.length() > self.frame_length_max {
            return Err("a frame is longer than the stream's limit");
        }
        match frame.kind() {
            Kind::Event | Kind::Command if frame.fragment() == Fragment::WHOLE => check_numbered(frame),
            Kind::Event | Kind::Command => self.check_part(frame),
            kind => check_request(kind, frame),
        }
    }

    fn check_part(&self, frame: &Frame<'_>) -> Result<(), &'static str> {
        let Fragment { index, count } = frame.fragment();
        let shortest = shortest_length(usize::from(count), aligned_length(frame.length()));
        if index == 0 && shortest > self.message_bytes_max {
            return Err("a message is longer than the stream's limit");
        }
        if frame.session_seq().checked_add(u64::from(count)).is_none() {
            return Err("a fragment's session_seq runs over");
        }
        check_numbered(frame)
    }
}

#[inline]
fn check_numbered(frame: &Frame<'_>) -> Result<(), &'static str> {
    if frame.session_seq() == 0 { Err("session_seq starts at 1") } else { Ok(()) }
}

#[cold]
fn check_request(kind: Kind, frame: &Frame<'_>) -> Result<(), &'static str> {
    if frame.fragment() != Fragment::WHOLE {
        return Err("only messages come in fragments");
    }
    match kind {
        Kind::SessionOpen if SessionOpen::from_bytes(frame.payload()).is_none() => {
            Err("the payload of a session open has another form")
        }
        Kind::SessionOpen if frame.session_seq() != 0 => Err("a session is opened with session_seq 0"),
        Kind::SessionOpen => Ok(()),
        Kind::TimerRequest if TimerFired::from_bytes(frame.payload()).is_none() => {
            Err("the payload of a timer request has another form")
        }
        Kind::TimerRequest if frame.flags() & REFUSED_FLAG != 0 => {
            Err("whether a timer is refused is for the sequencer to say")
        }
        Kind::TimerRequest | Kind::Acknowledge | Kind::SessionClose => check_numbered(frame),
        _ => Err("a publisher may not send frames of this kind"),
    }
}
