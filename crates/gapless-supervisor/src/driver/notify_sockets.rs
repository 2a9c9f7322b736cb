//! Notifications (`sd_notify`) wait in a socket of the guardian while no supervisor runs. A message is removed only
//! after it was handled, so that a killed supervisor loses none.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, UnixCredentials, recvmsg};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsRawFd, OwnedFd};
use std::io::IoSliceMut;

const MESSAGE_BYTES_MAX: usize = 4096;
const STATUS_CHARACTERS_MAX: usize = 200;

#[derive(Debug, Default)]
pub struct NotifySockets {
    /// Socket of the current guardian, and of its predecessor, where messages may still wait.
    sockets: Vec<OwnedFd>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// Sender according to the kernel; 0 if its PID namespace is invisible here.
    pub process_id: u32,
    /// `READY=1`
    pub is_ready: bool,
    /// `INITIALISED=1`
    pub is_initialised: bool,
    /// `WATCHDOG=trigger`: the sender asks to be treated as hung.
    pub is_stuck: bool,
    /// `RELOADING=1`
    pub is_reloading: bool,
    /// `STOPPING=1`
    pub is_stopping: bool,
    /// `STATUS=`
    pub status: Option<String>,
}

impl NotifySockets {
    pub fn listen(&mut self, socket: OwnedFd) {
        self.sockets.push(socket);
        if self.sockets.len() > 2 {
            self.sockets.remove(0);
        }
    }

    pub fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.extend(self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
    }

    /// Next message, with the index of its socket; [`NotifySockets::take`] removes it.
    pub fn peek(&self) -> Option<(usize, Notification)> {
        self.sockets.iter().enumerate().find_map(|(index, socket)| Some((index, receive(socket, MsgFlags::MSG_PEEK)?)))
    }

    /// Removes the message that was peeked at.
    pub fn take(&self, index: usize) {
        self.sockets.get(index).and_then(|socket| receive(socket, MsgFlags::empty()));
    }
}

fn receive(socket: &OwnedFd, flags: MsgFlags) -> Option<Notification> {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    // The kernel closes descriptors: tools of systemd wait for that, hence until the message is taken.
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
    Some(Notification { process_id: process_id.unwrap_or(0), ..parse(&String::from_utf8_lossy(&bytes[..length])) })
}

/// Unknown lines are ignored.
fn parse(text: &str) -> Notification {
    let says = |word: &str| text.lines().any(|line| line.trim() == word);
    let status = text.lines().rev().find_map(|line| line.trim().strip_prefix("STATUS="));
    let shown = |status: &str| status.chars().filter(|c| !c.is_control()).take(STATUS_CHARACTERS_MAX).collect();
    Notification {
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
    fn only_exact_lines_are_parsed() {
        assert_eq!(parse(""), Notification::default());
        assert_eq!(parse("READY=10\nXREADY=1\nready=1\nSTATUSX=a\n\0"), Notification::default());
        let all = parse(
            "READY=1\nINITIALISED=1\nRELOADING=1\nMONOTONIC_USEC=5\nSTOPPING=1\nSTATUS=a b\x1b[1m\nWATCHDOG=trigger",
        );
        let status = Some("a b[1m".to_owned());
        let expected = Notification {
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
    fn peeked_message_stays_until_taken() {
        let (receiver, sender) = std::os::unix::net::UnixDatagram::pair().unwrap();
        nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::PassCred, &true).unwrap();
        let mut notify_sockets = NotifySockets::default();
        assert_eq!(notify_sockets.peek(), None);
        notify_sockets.listen(receiver.into());
        sender.send(b"READY=1").unwrap();
        sender.send(b"STOPPING=1").unwrap();
        for _ in 0..2 {
            let (index, notification) = notify_sockets.peek().unwrap();
            assert_eq!((index, notification.is_ready, notification.process_id), (0, true, std::process::id()));
        }
        notify_sockets.take(0);
        assert!(notify_sockets.peek().unwrap().1.is_stopping);
        notify_sockets.take(0);
        assert_eq!(notify_sockets.peek(), None);
    }
}
