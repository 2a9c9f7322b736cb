//! Frames are verified and arrive in order.

use crate::ClientError;
use gapless_wire::Frame;

/// The sender of a message sends nothing else between its fragments.
#[derive(Default)]
pub(crate) struct Assembly {
    payload: Vec<u8>,
    next_index: u16,
}

impl Assembly {
    pub(crate) const fn is_begun(&self) -> bool {
        self.next_index > 0
    }

    pub(crate) fn clear(&mut self) {
        self.payload.clear();
        self.next_index = 0;
    }

    /// Adds a fragment; returns the whole payload with the last one.
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
