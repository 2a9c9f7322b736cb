//! `SoupClient`: the rewind agent's state of one client: its login, its position, and the reasons to drop it.

use super::{SoupServerOptions, SoupSource};
use crate::network::client_sessions::ClientSessionOptions;
use gapless_client::ClientError;
use gapless_client::feed_sessions::{Feed, Feeds};
use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_transport::network::tcp::Received;
use gapless_transport::network::tcp_server::ConnectionSlot;
use gapless_wire::mark::Mark;
use gapless_wire::soup::{
    ClientPacket, HEADER_LENGTH, HEARTBEAT_INTERVAL_NS, LOGIN_ACCEPTED_LENGTH, LOGIN_LENGTH, LOGIN_REJECTED_LENGTH,
    Login, PACKET_LENGTH_MAX, RejectReason, SILENCE_NS_MAX, SoupError, write_end_of_session, write_login_accepted,
    write_login_rejected, write_sequenced, write_server_heartbeat,
};
use gapless_wire::{Frame, Kind};

pub(super) struct SoupClient {
    login_state: SoupClientState,
    last_packet_ns: u64,
    sent_ns: u64,
    passing_over: usize,
}

enum SoupClientState {
    Anonymous {
        since_ns: u64,
    },
    Reading(Box<FeedReader>),
    /// Everything was sent. The client closes first, until this time: if we did with its bytes unread, the operating
    /// system would discard data that it has not received.
    Leaving {
        until_ns: Option<u64>,
    },
}

struct FeedReader {
    feed: Feed,
    reader: ReplayMerge,
    /// The next packet is the feed session's end.
    is_over: bool,
}

#[derive(Debug, Default)]
pub(super) struct ClientActivity {
    pub bytes: usize,
    pub logged_in: bool,
    /// Messages to the server.
    pub ignored: u64,
    pub refused: Option<String>,
}

pub(super) enum SoupDisconnect {
    Left,
    Malformed(String),
    Silent,
    Lapped(ClientError),
    Failed(ClientError),
}

const LEAVING_NS: u64 = 1_000_000_000;

impl SoupClient {
    pub const fn new(now_ns: u64) -> Self {
        let login_state = SoupClientState::Anonymous { since_ns: now_ns };
        Self { login_state, last_packet_ns: now_ns, sent_ns: now_ns, passing_over: 0 }
    }

    pub const fn is_reading(&self) -> bool {
        matches!(self.login_state, SoupClientState::Reading(_))
    }

    /// All frames up to `released_sequence` were sent.
    pub fn is_caught_up(&self, released_sequence: u64) -> bool {
        match &self.login_state {
            SoupClientState::Reading(reading) => reading.reader.sequence() > released_sequence,
            _ => true,
        }
    }

    #[inline]
    pub fn receive(
        slot: &mut ConnectionSlot<Self>,
        source: &SoupSource,
        options: &SoupServerOptions,
        now_ns: u64,
    ) -> Result<ClientActivity, SoupDisconnect> {
        let mut activity = ClientActivity::default();
        match slot.receive() {
            Ok(Received::Nothing) => return Ok(activity),
            Ok(Received::Bytes(bytes)) => activity.bytes = bytes,
            Ok(Received::Full) => {}
            Ok(Received::End) | Err(_) => return Err(SoupDisconnect::Left),
        }
        slot.state.last_packet_ns = now_ns;
        loop {
            let passed_over = slot.state.passing_over.min(slot.connection.incoming().len());
            slot.connection.consume(passed_over);
            slot.state.passing_over -= passed_over;
            if slot.state.passing_over > 0 {
                return Ok(activity);
            }
            let limit = match slot.state.login_state {
                SoupClientState::Anonymous { .. } => LOGIN_LENGTH,
                SoupClientState::Reading(_) => {
                    if let Some(skipped) = SkippedPacket::at(slot.connection.incoming()) {
                        activity.ignored += u64::from(skipped.is_message);
                        slot.state.passing_over = skipped.length;
                        continue;
                    }
                    LOGIN_LENGTH
                }
                SoupClientState::Leaving { .. } => {
                    slot.connection.discard_incoming();
                    return Ok(activity);
                }
            };
            if matches!(slot.state.login_state, SoupClientState::Anonymous { .. })
                && let Some((reason, error)) = unreadable_login(slot.connection.incoming())
            {
                slot.connection.consume(LOGIN_LENGTH);
                activity.refused = Some(Self::refuse(slot, reason, &error.to_string()));
                continue;
            }
            let parsed = ClientPacket::parse(slot.connection.incoming(), limit);
            let Some((packet, length)) = parsed.map_err(|error| SoupDisconnect::Malformed(error.to_string()))? else {
                return Ok(activity);
            };
            match (packet, &slot.state.login_state) {
                (ClientPacket::Login(login), SoupClientState::Anonymous { .. }) => {
                    slot.connection.consume(length);
                    match Self::log_in(slot, &login, source, options)? {
                        None => activity.logged_in = true,
                        refused => activity.refused = refused,
                    }
                    continue;
                }
                (ClientPacket::Debug(_), _) | (ClientPacket::Heartbeat, SoupClientState::Reading(_)) => {}
                (ClientPacket::Logout, _) => return Err(SoupDisconnect::Left),
                (ClientPacket::Login(_), _) => return Err(SoupDisconnect::Malformed("a second login".to_owned())),
                (ClientPacket::Unsequenced(_), _) => {
                    return Err(SoupDisconnect::Malformed("a message before the login".to_owned()));
                }
                (ClientPacket::Heartbeat, _) => {
                    return Err(SoupDisconnect::Malformed("a heartbeat before the login".to_owned()));
                }
            }
            slot.connection.consume(length);
        }
    }

    fn log_in(
        slot: &mut ConnectionSlot<Self>,
        login: &Login,
        source: &SoupSource,
        options: &SoupServerOptions,
    ) -> Result<Option<String>, SoupDisconnect> {
        let released_sequence = source.window.released_sequence();
        let found = find(login, &options.sessions, &source.feeds.lock(), released_sequence);
        let begun = match found {
            Ok((feed, sequence)) => begin(feed, (source.make_reader)(sequence), released_sequence)?,
            Err(reason) => Err(reason),
        };
        match begun {
            Ok(reading) => {
                let sequence = reading.reader.sequence();
                let number = reading.feed.number_of(sequence);
                let mut packet = [0; LOGIN_ACCEPTED_LENGTH];
                let length = write_login_accepted(&mut packet, reading.feed.name, number);
                slot.connection.resize_outgoing(options.batch_bytes + 2 * PACKET_LENGTH_MAX);
                slot.connection.queue(&packet[..length.expect("the packet is as long as it is")]);
                tracing::info!(
                    peer = %slot.connection.peer(), username = login.username.as_str(), feed = %reading.feed.name,
                    number, "a rewind client has logged in"
                );
                slot.state.login_state = SoupClientState::Reading(Box::new(reading));
                Ok(None)
            }
            Err(reason) => {
                let (username, feed) = (login.username.as_str(), login.feed_session.to_string());
                let asked = format!("user {username:?}, feed session {feed:?}, message {}", login.sequence);
                Ok(Some(Self::refuse(slot, reason, &asked)))
            }
        }
    }

    fn refuse(slot: &mut ConnectionSlot<Self>, reason: RejectReason, why: &str) -> String {
        let mut packet = [0; LOGIN_REJECTED_LENGTH];
        let length = write_login_rejected(&mut packet, reason).expect("the packet is as long as it is");
        slot.connection.queue(&packet[..length]);
        slot.state.login_state = SoupClientState::Leaving { until_ns: None };
        format!("the rewind client at {} was not let in ({reason:?}): {why}", slot.connection.peer())
    }

    /// Sends pending bytes, then next frames, and the end of the feed session if the stream `is_ending`; returns the
    /// number of frames.
    #[inline]
    pub fn feed(
        slot: &mut ConnectionSlot<Self>,
        released_sequence: u64,
        is_ending: bool,
        batch_bytes: usize,
        now_ns: u64,
    ) -> Result<usize, SoupDisconnect> {
        // Prepared bytes are sent completely before more are prepared, so that the empty buffer needs no move.
        if !slot.send().map_err(|_| SoupDisconnect::Left)? {
            return Ok(0);
        }
        if let SoupClientState::Leaving { until_ns } = &mut slot.state.login_state {
            if until_ns.is_none() {
                *until_ns = Some(now_ns + LEAVING_NS);
                slot.connection.finish();
            }
            return Ok(0);
        }
        let SoupClientState::Reading(reading) = &mut slot.state.login_state else { return Ok(0) };
        if reading.reader.sequence() > released_sequence && !reading.is_over {
            if !is_ending {
                return Ok(0);
            }
            reading.is_over = true;
        }
        let (count, length) = reading.fill(slot.connection.room(), batch_bytes)?;
        slot.connection.commit(length);
        if length > 0 {
            slot.state.sent_ns = now_ns;
        }
        if reading.is_over {
            let length = write_end_of_session(slot.connection.room()).expect("a batch leaves room for a packet");
            slot.connection.commit(length);
            slot.state.login_state = SoupClientState::Leaving { until_ns: None };
        }
        slot.send().map_err(|_| SoupDisconnect::Left)?;
        Ok(count)
    }

    /// Does the work that is due by the clock.
    pub fn tick(slot: &mut ConnectionSlot<Self>, login_timeout_ns: u64, now_ns: u64) -> Option<SoupDisconnect> {
        let client = &mut slot.state;
        match client.login_state {
            SoupClientState::Anonymous { since_ns } => {
                (now_ns.saturating_sub(since_ns) > login_timeout_ns).then_some(SoupDisconnect::Silent)
            }
            SoupClientState::Leaving { until_ns: Some(until_ns) } => {
                (now_ns > until_ns).then_some(SoupDisconnect::Left)
            }
            SoupClientState::Reading(_) | SoupClientState::Leaving { .. }
                if now_ns.saturating_sub(client.last_packet_ns) > SILENCE_NS_MAX =>
            {
                Some(SoupDisconnect::Silent)
            }
            SoupClientState::Leaving { .. } => None,
            SoupClientState::Reading(_) => {
                let is_due = now_ns.saturating_sub(client.sent_ns) >= HEARTBEAT_INTERVAL_NS;
                if is_due && slot.connection.unsent() == 0 {
                    client.sent_ns = now_ns;
                    let length = write_server_heartbeat(slot.connection.room()).expect("an empty buffer has room");
                    slot.connection.commit(length);
                    return slot.send().is_err().then_some(SoupDisconnect::Left);
                }
                None
            }
        }
    }
}

/// A debug text, or a message to a server that takes none; clients may send both.
struct SkippedPacket {
    is_message: bool,
    length: usize,
}

impl SkippedPacket {
    fn at(incoming: &[u8]) -> Option<Self> {
        let &[high, low, kind, ..] = incoming else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        // The length counts everything after itself, from the type on.
        (length > 0 && matches!(kind, b'U' | b'+'))
            .then_some(Self { is_message: kind == b'U', length: HEADER_LENGTH - 1 + length })
    }
}

/// Reject reason for a login of the right length with an unreadable field, as the specification asks.
fn unreadable_login(incoming: &[u8]) -> Option<(RejectReason, SoupError)> {
    let error = ClientPacket::parse(incoming, LOGIN_LENGTH).err()?;
    match error {
        SoupError::Username { .. } | SoupError::Password => Some((RejectReason::NotAuthorized, error)),
        SoupError::FeedSession { .. } | SoupError::Sequence { .. } => Some((RejectReason::SessionNotAvailable, error)),
        _ => None,
    }
}

fn find(
    login: &Login,
    sessions: &ClientSessionOptions,
    feeds: &Feeds,
    released_sequence: u64,
) -> Result<(Feed, u64), RejectReason> {
    if !sessions.is_authorized(&login.username, &login.password) {
        return Err(RejectReason::NotAuthorized);
    }
    let feed = if login.feed_session.is_blank() { feeds.newest() } else { feeds.find_by_name(login.feed_session) };
    let feed = *feed.ok_or(RejectReason::SessionNotAvailable)?;
    // Known once appended, possibly before it is released.
    let last = feed.last_sequence.map_or(released_sequence, |last| last.min(released_sequence));
    let end = feed.first_sequence.max(last + 1);
    let sequence = if login.sequence == 0 { Some(end) } else { feed.sequence_of(login.sequence) };
    sequence
        .filter(|sequence| *sequence <= end)
        .map(|sequence| (feed, sequence))
        .ok_or(RejectReason::SessionNotAvailable)
}

fn begin(
    feed: Feed,
    mut reader: ReplayMerge,
    released_sequence: u64,
) -> Result<Result<FeedReader, RejectReason>, SoupDisconnect> {
    let sequence = reader.sequence();
    if sequence <= released_sequence {
        loop {
            match reader.read() {
                Ok(ReplayRead::Frame(_)) => break reader.seek(sequence),
                // Switching between window and journal returns empty once.
                Ok(ReplayRead::Empty) => {}
                Err(ClientError::Lapped { .. }) => return Ok(Err(RejectReason::SessionNotAvailable)),
                Err(error) => return Err(SoupDisconnect::Failed(error)),
            }
        }
    }
    let is_over = feed.last_sequence.is_some_and(|last| sequence > last);
    Ok(Ok(FeedReader { feed, reader, is_over }))
}

impl FeedReader {
    /// Returns the number of frames, and their length with headers, bytes.
    #[inline]
    fn fill(&mut self, room: &mut [u8], batch_bytes: usize) -> Result<(usize, usize), SoupDisconnect> {
        let (mut count, mut length) = (0, 0);
        while length < batch_bytes && !self.is_over {
            let frame = match self.reader.read() {
                Ok(ReplayRead::Frame(frame)) => frame,
                Ok(ReplayRead::Empty) => break,
                Err(error @ ClientError::Lapped { .. }) => return Err(SoupDisconnect::Lapped(error)),
                Err(error) => return Err(SoupDisconnect::Failed(error)),
            };
            if frame.kind() == Kind::Mark {
                match Mark::from_bytes(frame.payload()) {
                    Some(Mark::FeedBegan { .. }) if frame.sequence() != self.feed.first_sequence => {
                        self.is_over = true;
                        break;
                    }
                    Some(Mark::FeedEnded { .. }) => self.is_over = true,
                    _ => {}
                }
            }
            length += push(&mut room[length..], &frame);
            count += 1;
        }
        Ok((count, length))
    }
}

#[inline]
fn push(room: &mut [u8], frame: &Frame<'_>) -> usize {
    write_sequenced(room, frame.bytes()).expect("the start refuses frames that no packet holds")
}
