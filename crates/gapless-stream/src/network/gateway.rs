//! [`Gateway`]: the command port's agent, between nodes' datagrams and rings. Packets are untrusted.

use super::client_sessions::ClientSessions;
use super::feed_sender::FeedChange;
use crate::AgentRole;
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Now};
use gapless_transport::mailbox::Mailbox;
use gapless_transport::network::datagrams::{Datagrams, Peer};
use gapless_wire::upstream::{UpstreamBody, UpstreamPacket};
use rustix::fd::BorrowedFd;

pub struct Gateway<S> {
    socket: S,
    sessions: ClientSessions,
    /// Joining and leaving nodes, if the feed is sent to single nodes.
    feed: Option<Mailbox<FeedChange>>,
    packet_length_max: usize,
    replies: Vec<(Peer, Vec<u8>)>,
}

impl<S: Datagrams> Gateway<S> {
    /// An agent for `sessions` at `socket`.
    #[must_use]
    pub fn new(
        socket: S,
        sessions: ClientSessions,
        feed: Option<Mailbox<FeedChange>>,
        packet_length_max: usize,
    ) -> Self {
        Self { socket, sessions, feed, packet_length_max, replies: Vec::new() }
    }

    fn notify_feed(&self, change: FeedChange) {
        if let Some(feed) = &self.feed
            && feed.push(change).is_err()
        {
            tracing::warn!(?change, "the feed takes no more changes; the node connects again");
        }
    }

    #[inline]
    fn receive(&mut self, now_ns: u64) -> Result<usize, AgentError> {
        let Self { sessions, replies, .. } = self;
        let mut count = 0;
        let mut changes = Vec::new();
        self.socket.receive(&mut |peer, bytes| {
            count += 1;
            let packet = match UpstreamPacket::parse(bytes) {
                Ok(packet) => packet,
                Err(_) => return sessions.counters().malformed.add(1),
            };
            if let UpstreamBody::Hello(hello) = packet.body {
                let mut answer = vec![0; 512];
                let (_, length) = sessions.handle_hello(peer, &hello, now_ns, &mut answer);
                answer.truncate(length);
                replies.push((peer, answer));
                return;
            }
            let Some(client) = sessions.client_mut(packet.key, peer, now_ns) else {
                sessions.counters().unknown.add(1);
                // Only in answer to messages of a node: otherwise two sequencers would answer each other forever.
                if matches!(packet.body, UpstreamBody::Frames(_) | UpstreamBody::Report(_)) {
                    let mut answer = vec![0; gapless_wire::upstream::HEADER_LENGTH];
                    let unknown = UpstreamPacket { key: packet.key, body: UpstreamBody::Unknown };
                    // Never longer than the packet that it answers.
                    if unknown.write_to(&mut answer).is_some() {
                        replies.push((peer, answer));
                    }
                }
                return;
            };
            // Only after a packet proves that the welcome arrived: the sender of a hello may be forged.
            if client.take_is_new() {
                changes.push(FeedChange::Join(peer));
            }
            match packet.body {
                UpstreamBody::Frames(frames) => {
                    sessions.publish(packet.key, frames);
                }
                UpstreamBody::Report(report) => sessions.note_report(packet.key, report),
                UpstreamBody::Farewell => {
                    sessions.leave(packet.key);
                    changes.push(FeedChange::Leave(peer));
                }
                UpstreamBody::Hello(_)
                | UpstreamBody::Welcome(_)
                | UpstreamBody::Refusal { .. }
                | UpstreamBody::Answers(_)
                | UpstreamBody::Unknown => {
                    sessions.counters().malformed.add(1);
                }
            }
        })?;
        changes.into_iter().for_each(|change| self.notify_feed(change));
        Ok(count)
    }

    fn sweep(&mut self, now_ns: u64) {
        let mut gone = Vec::new();
        self.sessions.sweep(now_ns, |_, peer| gone.push(peer));
        gone.into_iter().for_each(|peer| self.notify_feed(FeedChange::Leave(peer)));
    }
}

impl<S: Datagrams> Agent for Gateway<S> {
    fn name(&self) -> &str {
        AgentRole::Gateway.name()
    }

    #[inline]
    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut work = self.receive(now.monotonic_ns)?;
        if work > 0 {
            self.sessions.flush();
        }
        let (socket, packet_length_max) = (&mut self.socket, self.packet_length_max);
        for (peer, packet) in self.replies.drain(..) {
            // The node asks again for a lost answer.
            let _ = socket.send(peer, &packet, packet.len());
        }
        work += self.sessions.answer(packet_length_max, |_, peer, packet| {
            crash_point("before_answer");
            let _ = socket.send(peer, packet, packet.len());
        });
        self.sweep(now.monotonic_ns);
        Ok(work)
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.socket.fd());
        self.sessions.watch(descriptors);
    }

    fn arm(&mut self) {
        self.sessions.arm();
    }

    fn disarm(&mut self) {
        self.sessions.disarm();
    }
}
