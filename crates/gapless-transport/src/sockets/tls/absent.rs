//! Placeholder for TLS in a build without it: types without values, so none of their code ever runs.

use super::error::TlsError;
use crate::sockets::bytes::SocketRead;
use crate::sockets::tcp::TcpSocket;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::io::IoSlice;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutualTls {}

impl MutualTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError::NotBuilt`], always.
    pub fn load(_: &Path, _: &Path, _: &Path, _: &str) -> Result<Self, TlsError> {
        Err(TlsError::NotBuilt)
    }

    pub fn dialled(&self, _: TcpSocket, _: &str) -> io::Result<TlsSocket> {
        match *self {}
    }

    pub fn accepted(&self, _: TcpSocket) -> io::Result<TlsSocket> {
        match *self {}
    }
}

#[derive(Debug)]
pub enum TlsSocket {}

impl TlsSocket {
    pub fn receive(&mut self, _: &mut [u8]) -> io::Result<SocketRead> {
        match *self {}
    }

    pub fn send_slices(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub fn finish(&mut self) {
        match *self {}
    }

    pub fn proves(&self, _: &str) -> bool {
        match *self {}
    }
}

impl AsFd for TlsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
