//! `Conversation`: connection of a supervisor, on the guardian's side.

use super::protocol::{CHILDREN_PER_PACKET, ChildReport, GuardianMessage, GuardianRequest, VERSION};
use crate::packets::{PacketPoll, Packets};
use gapless_agent::fault::crash_point;
use nix::sys::socket::{getsockopt, sockopt};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Conversation {
    packets: Packets,
    /// Sending has failed; requests are still carried out.
    is_mute: bool,
    notify: Option<OwnedFd>,
    hello_until: Option<Instant>,
}

#[derive(Debug)]
pub enum NextRequest {
    Request(GuardianRequest),
    Nothing,
    Closed,
}

impl Conversation {
    /// Begins a conversation on a non-blocking socket; `notify` is sent to the supervisor. An error is the reason for a
    /// refusal.
    pub fn begin(socket: OwnedFd, notify: impl AsFd, now: Instant) -> Result<Self, String> {
        // rustix cannot represent the process id 0, which the kernel reports for a peer in another namespace.
        let peer =
            getsockopt(&socket, sockopt::PeerCredentials).map_err(|errno| format!("asking who it is: {errno}"))?;
        let (user, this) = (peer.uid(), rustix::process::geteuid().as_raw());
        if user != this && user != 0 {
            return Err(format!("it is of user {user}, and this guardian of user {this}"));
        }
        let notify =
            notify.as_fd().try_clone_to_owned().map_err(|error| format!("copying the notify socket: {error}"))?;
        let (packets, hello_until) = (Packets::over(socket), Some(now + HELLO_TIMEOUT));
        Ok(Self { packets, is_mute: false, notify: Some(notify), hello_until })
    }

    /// Next request; `end_wanted`: SIGTERM was received. An error is the peer's fault and ends the conversation.
    pub fn next(&mut self, now: Instant, end_wanted: bool) -> Result<NextRequest, String> {
        let flushed = self.packets.flush();
        self.mute_if(flushed);
        let ask = match self.packets.receive()? {
            PacketPoll::Packet(ask) => ask,
            PacketPoll::Closed => return Ok(NextRequest::Closed),
            PacketPoll::Pending => {
                let is_late = self.hello_until.is_some_and(|until| now >= until);
                return if is_late { Err("it does not say hello".to_owned()) } else { Ok(NextRequest::Nothing) };
            }
        };
        match (ask, self.hello_until) {
            (GuardianRequest::Hello { version: VERSION }, Some(_)) => {
                self.hello_until = None;
                let welcome = GuardianMessage::Welcome { version: VERSION, process_id: std::process::id() };
                let sent = self.packets.send_with(&welcome, self.notify.take());
                self.mute_if(sent);
                crash_point("guardian_welcomed");
                if end_wanted {
                    self.send(&GuardianMessage::EndWanted);
                }
                self.next(now, end_wanted)
            }
            (GuardianRequest::Hello { version }, Some(_)) => {
                Err(format!("it speaks version {version} of the protocol, and this guardian version {VERSION}"))
            }
            (GuardianRequest::Hello { .. }, None) => Err("it says hello twice".to_owned()),
            (other, Some(_)) => Err(format!("it does not say hello first, but {other:?}")),
            (ask, None) => Ok(NextRequest::Request(ask)),
        }
    }

    /// Sends a message; dropped before the handshake.
    pub fn send(&mut self, message: &GuardianMessage) {
        if self.hello_until.is_none() && !self.is_mute {
            let sent = self.packets.send(message);
            self.mute_if(sent);
        }
    }

    /// Received requests are still carried out: the list for the next supervisor is complete.
    fn mute_if(&mut self, result: Result<(), String>) {
        if let Err(reason) = result {
            if !self.is_mute {
                tracing::warn!("a supervisor is told nothing any more: {reason}");
            }
            self.is_mute = true;
            self.packets.shut();
        }
    }

    pub fn send_children(&mut self, children: &[ChildReport]) {
        let mut pieces = children.chunks(CHILDREN_PER_PACKET).peekable();
        if pieces.peek().is_none() {
            self.send(&GuardianMessage::Children { children: Vec::new(), more: false });
        }
        while let Some(piece) = pieces.next() {
            self.send(&GuardianMessage::Children { children: piece.to_vec(), more: pieces.peek().is_some() });
            crash_point("guardian_listed");
        }
    }

    /// Sends the reason for a refusal, best effort.
    pub fn refuse(mut self, reason: &str) {
        let reason = reason.chars().take(1000).collect();
        // The peer may be gone.
        let _ = self.packets.send(&GuardianMessage::Refused { reason });
    }

    pub fn has_queued(&self) -> bool {
        self.packets.has_queued()
    }

    /// Handshake deadline, at which [`Conversation::next`] must be called.
    pub const fn deadline(&self) -> Option<Instant> {
        self.hello_until
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }
}
