//! One carrier for two agents, so that both send from one address.

use super::datagrams::{Datagrams, Peer};
use super::route::Route;
use rustix::fd::BorrowedFd;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct SharedDatagrams<S> {
    carrier: Arc<Mutex<S>>,
    /// Descriptor of the same socket, which can be waited for without the lock.
    descriptor: Option<Arc<rustix::fd::OwnedFd>>,
    local_address: Peer,
}

impl<S> Clone for SharedDatagrams<S> {
    fn clone(&self) -> Self {
        let descriptor = self.descriptor.clone();
        Self { carrier: Arc::clone(&self.carrier), descriptor, local_address: self.local_address }
    }
}

impl<S: Datagrams> SharedDatagrams<S> {
    /// Shares `carrier`.
    ///
    /// # Errors
    /// The operating system has no more descriptors.
    pub fn new(carrier: S) -> io::Result<Self> {
        let descriptor = carrier.fd().map(|fd| fd.try_clone_to_owned()).transpose()?.map(Arc::new);
        let local_address = carrier.local_address();
        Ok(Self { carrier: Arc::new(Mutex::new(carrier)), descriptor, local_address })
    }

    fn lock(&self) -> MutexGuard<'_, S> {
        // A carrier that panicked has taken the packet or not: both can happen on a network.
        self.carrier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Datagrams> Datagrams for SharedDatagrams<S> {
    fn send(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize> {
        self.lock().send(to, bytes, packet_length)
    }

    fn send_uneven(&mut self, to: Peer, bytes: &[u8], lengths: &[usize]) -> io::Result<usize> {
        self.lock().send_uneven(to, bytes, lengths)
    }

    fn receive(&mut self, take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize> {
        self.lock().receive(take)
    }

    fn renew(&mut self) -> io::Result<()> {
        self.lock().renew()
    }

    fn route(&self) -> Option<Route> {
        self.lock().route()
    }

    fn local_address(&self) -> Peer {
        self.local_address
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(|descriptor| rustix::fd::AsFd::as_fd(&**descriptor))
    }
}
