//! [`Notices`]: what copies say of themselves, as systemd's services do, on the socket that the guardian keeps. What was said
//! while no supervisor lived waits there; what one has read is taken only when it is done, so that its death loses nothing.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, UnixCredentials, recvmsg};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsRawFd, OwnedFd};
use std::io::IoSliceMut;

/// What is read of one message, bytes.
const MESSAGE_BYTES_MAX: usize = 4096;
/// What is kept of a status, characters.
const STATUS_CHARACTERS_MAX: usize = 200;

/// The sockets on which copies say how far they have come.
#[derive(Debug, Default)]
pub struct Notices {
    /// That of the guardian, and that of the one before, to which somebody may just have sent.
    sockets: Vec<OwnedFd>,
}

/// What one process has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// It, as the kernel names it; 0 of one in a namespace that this process does not see.
    pub process_id: u32,
    /// It said `READY=1`.
    pub is_ready: bool,
    /// It said `INITIALISED=1`.
    pub is_initialised: bool,
    /// It said `WATCHDOG=trigger`: it is to be taken for stuck.
    pub is_stuck: bool,
    /// It said `RELOADING=1`.
    pub is_reloading: bool,
    /// It said `STOPPING=1`.
    pub is_stopping: bool,
    /// What it said behind `STATUS=`.
    pub status: Option<String>,
}

impl Notices {
    /// Hears this one, too.
    pub fn listen(&mut self, socket: OwnedFd) {
        self.sockets.push(socket);
        if self.sockets.len() > 2 {
            self.sockets.remove(0);
        }
    }

    /// What is to be polled.
    pub fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.extend(self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
    }

    /// What has come next, if anything, and on which socket. It stays there until it is taken.
    pub fn peek(&self) -> Option<(usize, Notice)> {
        self.sockets.iter().enumerate().find_map(|(index, socket)| Some((index, receive(socket, MsgFlags::MSG_PEEK)?)))
    }

    /// Takes what was peeked at on this socket.
    pub fn take(&self, index: usize) {
        self.sockets.get(index).and_then(|socket| receive(socket, MsgFlags::empty()));
    }
}

fn receive(socket: &OwnedFd, flags: MsgFlags) -> Option<Notice> {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    // Descriptors have no room. Who waits until his is closed, as systemd's tools do, waits until the message is taken.
    let mut control = nix::cmsg_space!(UnixCredentials);
    let (length, process_id) = {
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let flags = flags | MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let received = recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut pieces, Some(&mut control), flags).ok()?;
        let process_id = received.cmsgs().ok().and_then(|mut messages| {
            messages.find_map(|message| match message {
                ControlMessageOwned::ScmCredentials(sender) => u32::try_from(sender.pid()).ok(),
                _ => None,
            })
        });
        (received.bytes, process_id)
    };
    // Of a message without a sender it is not known whose it is: nobody's.
    Some(Notice { process_id: process_id.unwrap_or(0), ..parse(&String::from_utf8_lossy(&bytes[..length])) })
}

/// What a message says, in lines of the protocol of `sd_notify`. What is not known is passed over.
fn parse(text: &str) -> Notice {
    let says = |word: &str| text.lines().any(|line| line.trim() == word);
    let status = text.lines().rev().find_map(|line| line.trim().strip_prefix("STATUS="));
    let shown = |status: &str| status.chars().filter(|c| !c.is_control()).take(STATUS_CHARACTERS_MAX).collect();
    Notice {
        process_id: 0,
        is_ready: says("READY=1"),
        is_initialised: says("INITIALISED=1"),
        is_stuck: says("WATCHDOG=trigger"),
        is_reloading: says("RELOADING=1"),
        is_stopping: says("STOPPING=1"),
        status: status.map(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_say_and_nothing_else() {
        assert_eq!(parse(""), Notice::default());
        assert_eq!(parse("READY=10\nXREADY=1\nready=1\nSTATUSX=a\n\0"), Notice::default());
        let all = parse(
            "READY=1\nINITIALISED=1\nRELOADING=1\nMONOTONIC_USEC=5\nSTOPPING=1\nSTATUS=a b\x1b[1m\nWATCHDOG=trigger",
        );
        let status = Some("a b[1m".to_owned());
        let expected = Notice {
            process_id: 0,
            is_ready: true,
            is_initialised: true,
            is_stuck: true,
            is_reloading: true,
            is_stopping: true,
            status,
        };
        assert_eq!(all, expected);
        assert_eq!(parse(&format!("STATUS={}", "x".repeat(1000))).status.unwrap().len(), STATUS_CHARACTERS_MAX);
    }

    #[test]
    fn what_is_peeked_at_stays_until_it_is_taken() {
        let (receiver, sender) = std::os::unix::net::UnixDatagram::pair().unwrap();
        nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::PassCred, &true).unwrap();
        let mut notices = Notices::default();
        assert_eq!(notices.peek(), None);
        notices.listen(receiver.into());
        sender.send(b"READY=1").unwrap();
        sender.send(b"STOPPING=1").unwrap();
        for _ in 0..2 {
            let (index, notice) = notices.peek().unwrap();
            assert_eq!((index, notice.is_ready, notice.process_id), (0, true, std::process::id()));
        }
        notices.take(0);
        assert!(notices.peek().unwrap().1.is_stopping);
        notices.take(0);
        assert_eq!(notices.peek(), None);
    }
}
