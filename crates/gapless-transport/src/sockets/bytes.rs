//! [`SocketRead`]: the result of a look at a connection of bytes, for every carrier.

/// The result of one look at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRead {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other side sends no more.
    End,
}
