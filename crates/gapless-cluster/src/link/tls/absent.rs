//! What stands for TLS in a build without it: types that have no value, so nothing behind them is ever run.

use crate::link::error::LinkError;
use crate::link::wire::MemberId;
use gapless_transport::sockets::SocketRead;
use gapless_transport::sockets::TcpSocket;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::io::IoSlice;
use std::path::Path;

/// A member's certificate and key, and the authority of all of them. There is none: this build has no TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTls {}

impl LinkTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`LinkError::TlsNotBuilt`], always.
    pub fn load(_: &Path, _: &Path, _: &Path, _: &str, _: MemberId) -> Result<Self, LinkError> {
        Err(LinkError::TlsNotBuilt)
    }

    pub(in crate::link) fn dialled(&self, _: TcpSocket, _: MemberId) -> io::Result<TlsSocket> {
        match *self {}
    }

    pub(in crate::link) fn accepted(&self, _: TcpSocket) -> io::Result<TlsSocket> {
        match *self {}
    }
}

#[derive(Debug)]
pub(in crate::link) enum TlsSocket {}

impl TlsSocket {
    pub(in crate::link) fn receive(&mut self, _: &mut [u8]) -> io::Result<SocketRead> {
        match *self {}
    }

    pub(in crate::link) fn send_slices(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub(in crate::link) fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(in crate::link) fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub(in crate::link) fn finish(&mut self) {
        match *self {}
    }

    pub(in crate::link) fn proves(&self, _: MemberId) -> bool {
        match *self {}
    }
}

impl AsFd for TlsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
