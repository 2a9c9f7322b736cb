//! [`SoupServer`]: the agent "rewind": sends released frames, starting anywhere, by SoupBinTCP 3.00. A slow client
//! costs one buffer, but delays no other.

mod client;

use super::client_sessions::ClientSessionOptions;
use crate::counters::counters;
use crate::{AgentRole, StreamError};
use client::{ClientActivity, SoupClient, SoupDisconnect};
use gapless_agent::{Agent, AgentError, Now};
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::replay_merge::ReplayMerge;
use gapless_log::Window;
use gapless_transport::network::tcp::TcpConnection;
use gapless_transport::network::tcp_server::TcpServer;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::warnings::Warnings;
use gapless_wire::soup::LOGIN_LENGTH;
use rustix::fd::{AsFd, BorrowedFd};
use std::net::SocketAddr;

/// Admission of clients, and cost of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoupServerOptions {
    /// Credentials and number of admitted clients.
    pub sessions: ClientSessionOptions,
    /// Time until a client must log in, ns.
    pub login_timeout_ns: u64,
    /// Bytes prepared for a client at once; its buffer has one frame more.
    pub batch_bytes: usize,
}

impl SoupServerOptions {
    #[must_use]
    pub const fn new(sessions: ClientSessionOptions) -> Self {
        Self { sessions, login_timeout_ns: 5_000_000_000, batch_bytes: 128 << 10 }
    }
}

counters! {
    pub struct SoupServerCounters {
        /// Connected clients.
        clients: "rewind.clients",
        /// Logins that were accepted.
        logins: "rewind.logins",
        /// Logins refused for their credentials, feed session or sequence.
        logins_refused: "rewind.logins_refused",
        /// Connections closed at once because of the client limit.
        clients_refused: "rewind.clients_refused",
        /// Clients dropped for bytes that are not SoupBinTCP.
        malformed: "rewind.malformed",
        /// Clients dropped because they were silent or did not log in.
        silent: "rewind.clients_silent",
        /// Clients dropped because their next frames are no longer kept.
        overtaken: "rewind.clients_overtaken",
        /// Sent frames.
        frames: "rewind.frames",
        /// Messages to the server, which are skipped.
        messages_ignored: "rewind.messages_ignored",
    }
}

pub struct SoupSource {
    pub window: Window,
    pub feeds: SharedFeeds,
    pub make_reader: Box<dyn Fn(u64) -> ReplayMerge + Send>,
    /// Publishes nothing; wakes the agent for new frames.
    pub news: PublisherLink,
    /// No other process continues the feed session.
    pub ends_here: bool,
}

pub struct SoupServer {
    server: TcpServer<SoupClient>,
    source: SoupSource,
    options: SoupServerOptions,
    counters: SoupServerCounters,
    now_ns: u64,
    next_deadline_ns: u64,
    close_by_ns: Option<u64>,
    warnings: Warnings,
}

const INCOMING_BYTES: usize = 1_024;
const TIMER_INTERVAL_NS: u64 = 50_000_000;
/// Limit on the wait for lagging clients.
const CLOSING_NS: u64 = 100_000_000;

impl SoupServer {
    /// Listens at `local`; port 0 picks a free one.
    ///
    /// # Errors
    /// The operating system refuses the port.
    pub fn bind(
        local: SocketAddr,
        source: SoupSource,
        options: SoupServerOptions,
        counters: SoupServerCounters,
    ) -> Result<Self, StreamError> {
        let server = TcpServer::bind(local, options.sessions.clients_max)?;
        let (now_ns, next_deadline_ns) = (0, 0);
        let warnings = Warnings::default();
        Ok(Self { server, source, options, counters, now_ns, next_deadline_ns, close_by_ns: None, warnings })
    }

    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.server.local_address()
    }

    const fn is_ending(&self) -> bool {
        self.source.ends_here && self.close_by_ns.is_some()
    }

    fn poll_sockets(&mut self, now_ns: u64) -> Result<usize, StreamError> {
        let arrivals = self.server.poll_sockets(now_ns, |socket, peer| {
            let connection = TcpConnection::over(socket, peer, INCOMING_BYTES, LOGIN_LENGTH)?;
            Ok((connection, SoupClient::new(now_ns)))
        })?;
        if arrivals.events > 0 {
            self.counters.clients.set(self.server.connections() as u64);
            self.counters.clients_refused.add(arrivals.refused);
        }
        Ok(arrivals.events)
    }

    fn serve(&mut self, now_ns: u64) -> usize {
        let released_sequence = self.source.window.released_sequence();
        let is_timer_due = now_ns >= self.next_deadline_ns;
        let is_ending = self.is_ending();
        let Self { server, source, options, counters, warnings, .. } = self;
        let (mut work, mut frames, mut gone) = (0, 0, 0);
        server.retain(|slot| {
            let received = SoupClient::receive(slot, source, options, now_ns);
            let ending = match received {
                Ok(ClientActivity { bytes, logged_in, refused, ignored }) => {
                    work += bytes;
                    if ignored > 0 {
                        counters.messages_ignored.add(ignored);
                        let peer = slot.connection.peer();
                        warnings
                            .warn(now_ns, || format!("the rewind client at {peer} sends messages; none is taken here"));
                    }
                    counters.logins.add(u64::from(logged_in));
                    if let Some(text) = refused {
                        counters.logins_refused.add(1);
                        warnings.warn(now_ns, || text);
                    }
                    match SoupClient::feed(slot, released_sequence, is_ending, options.batch_bytes, now_ns) {
                        Ok(count) => {
                            frames += count;
                            if is_timer_due { SoupClient::tick(slot, options.login_timeout_ns, now_ns) } else { None }
                        }
                        Err(ending) => Some(ending),
                    }
                }
                Err(ending) => Some(ending),
            };
            let Some(ending) = ending else { return true };
            gone += 1;
            let peer = slot.connection.peer();
            match ending {
                SoupDisconnect::Left => tracing::debug!(%peer, "a rewind client has left"),
                SoupDisconnect::Malformed(error) => {
                    counters.malformed.add(1);
                    warnings.warn(now_ns, || format!("the rewind client at {peer} is dropped: {error}"));
                }
                SoupDisconnect::Silent => {
                    counters.silent.add(1);
                    tracing::info!(%peer, "a rewind client has fallen silent and is dropped");
                }
                SoupDisconnect::Lapped(error) => {
                    counters.overtaken.add(1);
                    warnings.warn(now_ns, || format!("the rewind client at {peer} is dropped: {error}"));
                }
                // A client must not stop the stream: the journal's writer reports the journal's errors.
                SoupDisconnect::Failed(error) => {
                    warnings.warn(now_ns, || {
                        format!("the rewind client at {peer} is dropped, its frames cannot be read: {error}")
                    });
                }
            }
            false
        });
        if gone > 0 {
            counters.clients.set(server.connections() as u64);
        }
        if frames > 0 {
            counters.frames.add(frames as u64);
        }
        if is_timer_due {
            self.next_deadline_ns = now_ns + TIMER_INTERVAL_NS;
        }
        work + frames + gone
    }
}

impl Agent for SoupServer {
    fn name(&self) -> &str {
        AgentRole::Rewind.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.now_ns = now.monotonic_ns;
        let events = self.poll_sockets(now.monotonic_ns)?;
        if self.server.connections() == 0 {
            return Ok(events);
        }
        Ok(events + self.serve(now.monotonic_ns))
    }

    fn arm(&mut self) {
        // Only for a client that reads: once it has everything, it waits for new frames.
        if self.server.slots().any(|slot| slot.state.is_reading()) {
            self.source.news.reader.arm();
        }
    }

    fn disarm(&mut self) {
        self.source.news.reader.disarm();
        // Empties the counter; failing on an empty one is fine too.
        let _ = rustix::io::read(&self.source.news.wake_publisher, &mut [0u8; 8]);
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend([self.server.as_fd(), self.source.news.wake_publisher.as_fd()]);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        (self.server.connections() > 0).then_some(self.next_deadline_ns)
    }

    fn on_close(&mut self, now: Now) -> Result<(), AgentError> {
        self.close_by_ns = Some(now.monotonic_ns + CLOSING_NS);
        Ok(())
    }

    fn is_drained(&self) -> bool {
        let released_sequence = self.source.window.released_sequence();
        let is_caught_up = |client: &SoupClient| match self.is_ending() {
            true => !client.is_reading(),
            false => client.is_caught_up(released_sequence),
        };
        self.close_by_ns.is_some_and(|by_ns| self.now_ns >= by_ns)
            || self.server.slots().all(|slot| slot.connection.unsent() == 0 && is_caught_up(&slot.state))
    }
}
