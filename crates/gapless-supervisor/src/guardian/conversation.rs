//! [`Conversation`]: one supervisor's connection, as the guardian sees it.

use super::protocol::{Ask, CHILDREN_A_PACKET, ChildReport, Told, VERSION};
use crate::packets::{Packets, Received};
use gapless_agent::fault::crash_point;
use nix::sys::socket::{getsockopt, sockopt};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A peer must say hello within this time: until then it keeps others from being heard.
const HELLO_WITHIN: Duration = Duration::from_secs(2);

/// One supervisor's connection.
#[derive(Debug)]
pub struct Conversation {
    packets: Packets,
    /// It takes nothing any more, and what it has asked for is still done.
    is_mute: bool,
    /// What goes along with the welcome.
    notify: Option<OwnedFd>,
    /// Until when it must have said hello; `None` of one that has.
    hello_until: Option<Instant>,
}

/// What is to be done for it.
#[derive(Debug)]
pub enum Next {
    /// This.
    Ask(Ask),
    /// Nothing now.
    Nothing,
    /// It is over: nothing more comes.
    End,
}

impl Conversation {
    /// Takes over a connection, which does not block; an error says why not. `notify` is the socket that a supervisor is given.
    pub fn begin(socket: OwnedFd, notify: impl AsFd, now: Instant) -> Result<Self, String> {
        // Not rustix's: the process id of a peer in another namespace is 0, which its type cannot hold.
        let peer =
            getsockopt(&socket, sockopt::PeerCredentials).map_err(|errno| format!("asking who it is: {errno}"))?;
        let (user, this) = (peer.uid(), rustix::process::geteuid().as_raw());
        if user != this && user != 0 {
            return Err(format!("it is of user {user}, and this guardian of user {this}"));
        }
        let notify =
            notify.as_fd().try_clone_to_owned().map_err(|error| format!("copying the notify socket: {error}"))?;
        let (packets, hello_until) = (Packets::over(socket), Some(now + HELLO_WITHIN));
        Ok(Self { packets, is_mute: false, notify: Some(notify), hello_until })
    }

    /// What it wants; an error is its own, and ends the conversation. `end_wanted`: the guardian is asked to end.
    pub fn next(&mut self, now: Instant, end_wanted: bool) -> Result<Next, String> {
        let flushed = self.packets.flush();
        self.mute_if(flushed);
        let ask = match self.packets.receive()? {
            Received::Packet(ask) => ask,
            Received::End => return Ok(Next::End),
            Received::Nothing => {
                let is_late = self.hello_until.is_some_and(|until| now >= until);
                return if is_late { Err("it does not say hello".to_owned()) } else { Ok(Next::Nothing) };
            }
        };
        match (ask, self.hello_until) {
            (Ask::Hello { version: VERSION }, Some(_)) => {
                self.hello_until = None;
                let welcome = Told::Welcome { version: VERSION, process_id: std::process::id() };
                let sent = self.packets.send_with(&welcome, self.notify.take());
                self.mute_if(sent);
                crash_point("guardian_welcomed");
                if end_wanted {
                    self.tell(&Told::EndWanted);
                }
                // There may be more at once.
                self.next(now, end_wanted)
            }
            (Ask::Hello { version }, Some(_)) => {
                Err(format!("it speaks version {version} of the protocol, and this guardian version {VERSION}"))
            }
            (Ask::Hello { .. }, None) => Err("it says hello twice".to_owned()),
            (other, Some(_)) => Err(format!("it does not say hello first, but {other:?}")),
            (ask, None) => Ok(Next::Ask(ask)),
        }
    }

    /// Tells something; who has not said hello is told nothing.
    pub fn tell(&mut self, told: &Told) {
        if self.hello_until.is_none() && !self.is_mute {
            let sent = self.packets.send(told);
            self.mute_if(sent);
        }
    }

    /// One that is gone, or does not read. What it has asked for before is done all the same: the next one is to find it in
    /// the list.
    fn mute_if(&mut self, result: Result<(), String>) {
        if let Err(reason) = result {
            if !self.is_mute {
                tracing::warn!("a supervisor is told nothing any more: {reason}");
            }
            self.is_mute = true;
            self.packets.shut();
        }
    }

    /// Tells of all children.
    pub fn tell_children(&mut self, children: &[ChildReport]) {
        let mut pieces = children.chunks(CHILDREN_A_PACKET).peekable();
        if pieces.peek().is_none() {
            self.tell(&Told::Children { children: Vec::new(), more: false });
        }
        while let Some(piece) = pieces.next() {
            self.tell(&Told::Children { children: piece.to_vec(), more: pieces.peek().is_some() });
            crash_point("guardian_listed");
        }
    }

    /// Says why it is over, if that gets through.
    pub fn refuse(mut self, reason: &str) {
        let reason = reason.chars().take(1000).collect();
        // The peer may be gone.
        let _ = self.packets.send(&Told::Refused { reason });
    }

    /// Whether something waits until it has read.
    pub fn has_queued(&self) -> bool {
        self.packets.has_queued()
    }

    /// When it wants to be asked again, if nothing comes.
    pub const fn deadline(&self) -> Option<Instant> {
        self.hello_until
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}
