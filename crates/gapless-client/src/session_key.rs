//! Names of a session and of a command in a client's program.

/// A session of one [`PolledClient`](crate::PolledClient); valid across reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub(crate) u32);

impl SessionKey {
    /// Position in the order of opening, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number has no meaning in another session. A client that may be killed records it with the command before sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandNumber {
    pub session: u64,
    /// Number of the command's last frame, from 1.
    pub session_seq: u64,
}

impl CommandNumber {
    pub const LENGTH: usize = 16;

    /// Session and number, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        (u128::from(self.session_seq) << 64 | u128::from(self.session)).to_le_bytes()
    }

    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self { session: both as u64, session_seq: (both >> 64) as u64 }
    }
}

impl std::fmt::Display for CommandNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of session {}", self.session_seq, self.session)
    }
}
