//! [`Assembly`]: reassembles the fragments of one message, for clients and nodes. The frames are verified and arrive in
//! order.

use crate::ClientError;
use gapless_wire::Frame;

/// Fragments of one message so far; its sender sends nothing else between them.
#[derive(Default)]
pub(crate) struct Assembly {
    payload: Vec<u8>,
    /// Index of the next fragment; 0 between two messages.
    next_index: u16,
}

impl Assembly {
    /// Whether a message has begun and is incomplete.
    pub(crate) const fn is_begun(&self) -> bool {
        self.next_index > 0
    }

    /// Discards an incomplete message.
    pub(crate) fn clear(&mut self) {
        self.payload.clear();
        self.next_index = 0;
    }

    /// Adds a fragment; returns the whole payload with the last one. A fragment 0 starts over.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] for a fragment out of order, and for a message of more than `length_max` bytes.
    pub(crate) fn add(&mut self, frame: &Frame<'_>, length_max: usize) -> Result<Option<&[u8]>, ClientError> {
        let fragment = frame.fragment();
        if fragment.index == 0 {
            self.clear();
        }
        if fragment.index != self.next_index {
            let what = format!("fragment {} where {} was due", fragment.index, self.next_index);
            return Err(ClientError::Protocol { what });
        }
        if self.payload.len() + frame.payload().len() > length_max {
            let what = format!("a message of more than {length_max} bytes, which no service sends");
            return Err(ClientError::Protocol { what });
        }
        self.payload.extend_from_slice(frame.payload());
        self.next_index = if fragment.is_last() { 0 } else { fragment.index + 1 };
        Ok(fragment.is_last().then_some(self.payload.as_slice()))
    }
}
