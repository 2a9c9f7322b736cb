//! The handshake from the publisher's side: hello, welcome, four descriptors.

use super::ConnectOptions;
use crate::TransportError;
use crate::handshake::{Hello, Status, WELCOME_DESCRIPTORS_MAX, WELCOME_LENGTH, Welcome};
use crate::link::ring_size_reason;
use crate::publisher_link::PublisherLink;
use crate::readiness::timespec;
use crate::socket_path::socket_address;
use gapless_log::{RingReader, RingWriter, Window};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags, SocketType,
};
use std::io::IoSliceMut;
use std::path::Path;
use std::time::Instant;

/// Connects to the service that listens on the socket `path`.
///
/// # Errors
/// Nobody listens there; a refusal; no answer in time.
pub fn connect(path: &Path, options: &ConnectOptions) -> Result<PublisherLink, TransportError> {
    let peer = path.display().to_string();
    let refused = |reason: String| TransportError::Handshake { peer: peer.clone(), status: None, reason };
    options.check(&peer)?;
    let action = || format!("connecting to {peer}");
    let address = socket_address(path).map_err(|source| TransportError::System { action: action(), source })?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(TransportError::system(action()))?;
    // A signal, such as that of a Ctrl-C, is no answer: its handler has been called, and the wait goes on.
    retry_on_intr(|| rustix::net::connect(&socket, &address)).map_err(TransportError::system(action()))?;
    let hello = Hello { link: options.link, identity: options.identity, reads: options.reads, seen: options.seen };
    let hello = hello.to_bytes();
    retry_on_intr(|| rustix::net::send(&socket, &hello, SendFlags::NOSIGNAL))
        .map_err(TransportError::system(action()))?;
    let begun = Instant::now();
    let has_come = || {
        let left = options.timeout.saturating_sub(begun.elapsed());
        Ok(poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timespec(left)))? > 0)
    };
    if !retry_on_intr(has_come).map_err(TransportError::system(action()))? {
        return Err(options.timed_out(&peer));
    }
    let mut bytes = [0; WELCOME_LENGTH];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received =
        retry_on_intr(|| rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags))
            .map_err(TransportError::system(action()))?;
    let descriptors: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    if received.bytes == 0 {
        return Err(refused("the service hung up".to_owned()));
    }
    let welcome = Welcome::from_bytes(&bytes[..received.bytes])
        .ok_or_else(|| refused(format!("an answer of {} bytes that is no welcome", received.bytes)))?;
    match welcome.status {
        Status::Welcome => {}
        Status::OtherStream => {
            let (found, wanted) = (welcome.identity.stream_id, options.identity.stream_id);
            return Err(refused(format!("it serves stream {found:032x}, not {wanted:032x}")));
        }
        Status::OtherIncarnation => {
            let (found, wanted) = (welcome.identity.incarnation, options.identity.incarnation);
            return Err(refused(format!("the stream is in incarnation {found:016x}, not {wanted:016x}")));
        }
        Status::OtherHistory => {
            let (seen, released_sequence) = (options.seen, welcome.released_sequence);
            return Err(TransportError::OtherHistory { peer, seen, released_sequence });
        }
        Status::RingSize => return Err(refused(ring_size_reason(options.link))),
        Status::NotReadable => {
            return Err(refused("its stream belongs to a service and cannot be read".to_owned()));
        }
        Status::Unavailable => {
            let (status, reason) =
                (Some(Status::Unavailable), "it takes no more publishers; its log says why".to_owned());
            return Err(TransportError::Handshake { peer, status, reason });
        }
    }
    let mut descriptors = descriptors.into_iter();
    let (Some(commands), Some(replies), Some(wake_service), Some(wake_publisher)) =
        (descriptors.next(), descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return Err(refused("a welcome without its four descriptors".to_owned()));
    };
    let window = descriptors.next().map(Window::open).transpose()?;
    if options.reads && window.is_none() {
        return Err(refused("a welcome without the window that was asked for".to_owned()));
    }
    Ok(PublisherLink {
        welcome,
        writer: RingWriter::open(commands)?,
        reader: RingReader::open(replies)?,
        wake_service,
        wake_publisher,
        socket: Some(socket),
        window,
        pump: None,
    })
}
