//! [`SocketRead`]: what a look at a connection of bytes brings, whatever carries them.

/// What one look at a socket brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRead {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other side sends no more.
    End,
}
