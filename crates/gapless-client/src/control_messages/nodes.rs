//! Messages about the connected nodes and their state, over the stream's Unix socket. Each request gets one page of
//! rows, so the number of nodes is unlimited.
//!
//! ```text
//!  NodesRequest (16 bytes)
//!   0  u64  magic "GAPNODE\1"
//!   8  u32  rows after this connection, 0 for the first page
//!  12  u32  reserved, 0
//!
//!  NodesAnswer (80 bytes and the rows)
//!   0  u64  magic "GAPROWS\2"
//!   8  u32  number of rows, up to 128
//!  12  u32  1 if more rows follow, else 0
//!  16  u128 stream id
//!  32  u64  incarnation
//!  40  u64  released sequence
//!  48  u64  process id of the sender
//!  56  u32  1 halted, 2 the feed session has ended, 4 whether it is halted is not known
//!  60  u16  tier: 0 memory, 1 journal, 2 sync, 3 quorum, 4 quorum-sync
//!  62  u16  transports: 1 shared memory, 2 udp, 4 multicast, 8 tcp
//!  64 10 B  the newest feed session, blank without one
//!  74  …    reserved, 0
//!  80  …    rows
//!
//!  a row (128 bytes)
//!   0  u32  connection; rises with the rows
//!   4  u32  process id, 0 elsewhere
//!   8  u32  transport: 1 shared memory, 2 udp, 3 multicast, 4 tcp
//!  12  u32  state: 0 unknown, 1 rewinding, 2 live
//!  16  u64  position: next sequence to be read
//!  24  u64  lag: frames up to the end
//!  32  u64  frames that it requested again
//!  40  u64  frames that it resent
//!  48  u64  frames that it published
//!  56  u64  its frames dropped for lack of room
//!  64 16 B  name: user or process, UTF-8 filled up with 0
//!  80 16 B  IPv6 address, IPv4 mapped; 0 on this machine
//!  96  u32  port
//! 100  u32  messages in flight
//! 104  u64  time of the report, ns
//! 112  …    reserved, 0
//! ```

use gapless_log::StreamIdentity;
use gapless_transport::Tier;
use gapless_transport::transport::Transport;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::fields::{FieldWriter, u32_at, u64_at};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub const NODES_REQUEST_MAGIC: u64 = u64::from_le_bytes(*b"GAPNODE\x01");
pub const NODES_ANSWER_MAGIC: u64 = u64::from_le_bytes(*b"GAPROWS\x02");
pub const NODES_REQUEST_LENGTH: usize = 16;
pub const ROWS_MAX: usize = 128;
pub const NODES_ANSWER_LENGTH_MAX: usize = HEAD_LENGTH + ROWS_MAX * ROW_LENGTH;

const HEAD_LENGTH: usize = 80;
const ROW_LENGTH: usize = 128;
const NAME_LENGTH: usize = 16;

/// A node by its last report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Connection; never reused in the life of the sequencer's process.
    pub connection: u32,
    /// User that logged in, or the program's name on shared memory; may be empty.
    pub name: String,
    /// Known on shared memory.
    pub process_id: Option<u32>,
    /// Known over a network.
    pub address: Option<SocketAddr>,
    pub transport: Transport,
    /// Whether it has read everything available; `None` if it reads nothing or has not reported yet.
    pub is_live: Option<bool>,
    /// Next sequence that it reads; 0 if it reads nothing or has not reported yet.
    pub position: u64,
    /// Frames to the end of the stream, at the time of the report.
    pub lag_frames: u64,
    /// Lost and requested again.
    pub frames_requested: u64,
    pub frames_resent: u64,
    /// Includes resent ones.
    pub frames_published: u64,
    /// Dropped for lack of room; the node resends them.
    pub frames_dropped: u64,
    /// Published and not yet seen in the stream.
    pub in_flight: u32,
    /// Time of the report, ns; only differences between rows of one connection are meaningful.
    pub noted_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// Durability of a frame before any reader sees it.
    pub tier: Tier,
    /// Listed in the order of [`Transport::NAMES`].
    pub transports: Vec<Transport>,
    /// `None` if only another process knows.
    pub is_halted: Option<bool>,
    /// Blank before the first.
    pub feed_session: FeedSession,
    /// Publishers' messages then wait for the next feed session.
    pub has_feed_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodesRequest {
    /// Connection before the page's rows; 0 for the first page.
    pub behind: u32,
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesAnswer {
    pub identity: StreamIdentity,
    pub released_sequence: u64,
    pub process_id: u64,
    pub stream: StreamState,
    pub has_more: bool,
    /// Ascending connections, at most [`ROWS_MAX`].
    pub rows: Vec<NodeRow>,
}

impl NodesRequest {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; NODES_REQUEST_LENGTH] {
        let mut bytes = [0; NODES_REQUEST_LENGTH];
        bytes[..8].copy_from_slice(&NODES_REQUEST_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.behind.to_le_bytes());
        bytes
    }

    /// `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_request =
            bytes.len() == NODES_REQUEST_LENGTH && u64_at(bytes, 0) == NODES_REQUEST_MAGIC && u32_at(bytes, 12) == 0;
        is_request.then(|| Self { behind: u32_at(bytes, 8) })
    }
}

impl NodesAnswer {
    /// Serialized form.
    ///
    /// # Panics
    /// If there are more rows than [`ROWS_MAX`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        assert!(self.rows.len() <= ROWS_MAX, "a page has {ROWS_MAX} rows at most");
        let mut bytes = Vec::with_capacity(HEAD_LENGTH + self.rows.len() * ROW_LENGTH);
        FieldWriter::new(&mut bytes)
            .u64(NODES_ANSWER_MAGIC)
            .u32(self.rows.len() as u32)
            .u32(u32::from(self.has_more))
            .u128(self.identity.stream_id)
            .u64(self.identity.incarnation)
            .u64(self.released_sequence)
            .u64(self.process_id);
        self.stream.write_to(&mut bytes);
        for row in &self.rows {
            row.write_to(&mut bytes);
        }
        bytes
    }

    /// `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEAD_LENGTH || u64_at(bytes, 0) != NODES_ANSWER_MAGIC {
            return None;
        }
        let (count, more) = (u32_at(bytes, 8) as usize, u32_at(bytes, 12));
        let (rows, rest) = bytes[HEAD_LENGTH..].as_chunks::<ROW_LENGTH>();
        if rows.len() != count || !rest.is_empty() || count > ROWS_MAX || more > 1 {
            return None;
        }
        let rows = rows.iter().map(NodeRow::from_bytes).collect::<Option<Vec<_>>>()?;
        // A page without progress would be requested forever.
        if !rows.is_sorted_by(|one, next| one.connection < next.connection) || (more == 1 && rows.is_empty()) {
            return None;
        }
        Some(Self {
            identity: StreamIdentity::at(bytes, 16),
            released_sequence: u64_at(bytes, 40),
            process_id: u64_at(bytes, 48),
            stream: StreamState::from_bytes(bytes[56..].first_chunk()?)?,
            has_more: more == 1,
            rows,
        })
    }
}

const HALTED_FLAG: u32 = 1;
const FEED_ENDED_FLAG: u32 = 2;
const HALT_UNKNOWN_FLAG: u32 = 4;

impl StreamState {
    const LENGTH: usize = 24;

    fn write_to(&self, bytes: &mut Vec<u8>) {
        let halted = self.is_halted.map_or(HALT_UNKNOWN_FLAG, |is_halted| if is_halted { HALTED_FLAG } else { 0 });
        let flags = halted | if self.has_feed_ended { FEED_ENDED_FLAG } else { 0 };
        let is_way = |transport: &Transport| self.transports.contains(transport);
        let ways = Transport::NAMES.iter().rev().fold(0, |ways, (_, each)| ways << 1 | u16::from(is_way(each)));
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&(self.tier as u16).to_le_bytes());
        bytes.extend_from_slice(&ways.to_le_bytes());
        bytes.extend_from_slice(&self.feed_session.bytes());
        bytes.extend_from_slice(&[0; Self::LENGTH - 8 - FeedSession::LENGTH]);
    }

    fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let (flags, ways) = (u32_at(bytes, 0), u16::from_le_bytes([bytes[6], bytes[7]]));
        let is_known = flags & HALT_UNKNOWN_FLAG == 0;
        if flags > 7 || (!is_known && flags & HALTED_FLAG != 0) || ways >> Transport::NAMES.len() != 0 {
            return None;
        }
        let (name, rest) = bytes[8..].split_first_chunk()?;
        let ways = Transport::NAMES.iter().enumerate().filter(|(bit, _)| ways >> bit & 1 == 1);
        rest.iter().all(|byte| *byte == 0).then_some(())?;
        Some(Self {
            tier: Tier::from_value(u16::from_le_bytes([bytes[4], bytes[5]]).into())?,
            transports: ways.map(|(_, (_, transport))| *transport).collect(),
            is_halted: is_known.then_some(flags & HALTED_FLAG != 0),
            feed_session: FeedSession::from_bytes(*name)?,
            has_feed_ended: flags & FEED_ENDED_FLAG != 0,
        })
    }
}

impl NodeRow {
    fn write_to(&self, bytes: &mut Vec<u8>) {
        let mut row = [0; ROW_LENGTH];
        let state = match self.is_live {
            None => 0u32,
            Some(false) => 1,
            Some(true) => 2,
        };
        let (address, port) = match self.address {
            Some(SocketAddr::V4(address)) => (u128::from(address.ip().to_ipv6_mapped()), address.port()),
            Some(SocketAddr::V6(address)) => (u128::from(*address.ip()), address.port()),
            None => (0, 0),
        };
        let transport = Transport::NAMES.iter().position(|(_, transport)| *transport == self.transport);
        let transport = transport.map_or(0, |index| index as u32 + 1);
        let words = [self.connection, self.process_id.unwrap_or(0), transport, state];
        for (place, word) in row.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let words = [
            self.position,
            self.lag_frames,
            self.frames_requested,
            self.frames_resent,
            self.frames_published,
            self.frames_dropped,
        ];
        for (place, word) in row[16..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let name = &self.name.as_bytes()[..self.name.floor_char_boundary(NAME_LENGTH)];
        row[64..][..name.len()].copy_from_slice(name);
        row[80..96].copy_from_slice(&address.to_be_bytes());
        row[96..100].copy_from_slice(&u32::from(port).to_le_bytes());
        row[100..104].copy_from_slice(&self.in_flight.to_le_bytes());
        row[104..112].copy_from_slice(&self.noted_ns.to_le_bytes());
        bytes.extend_from_slice(&row);
    }

    fn from_bytes(row: &[u8; ROW_LENGTH]) -> Option<Self> {
        let state = match u32_at(row, 12) {
            0 => None,
            1 => Some(false),
            2 => Some(true),
            _ => return None,
        };
        let (_, transport) = *Transport::NAMES.get((u32_at(row, 8) as usize).checked_sub(1)?)?;
        let field = &row[64..][..NAME_LENGTH];
        let length = field.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let name = std::str::from_utf8(&field[..length]).ok().filter(|name| !name.contains('\0'))?;
        let address: [u8; 16] = *row[80..].first_chunk()?;
        let port = u16::try_from(u32_at(row, 96)).ok()?;
        let ip = IpAddr::from(Ipv6Addr::from(address)).to_canonical();
        let address = (address != [0; 16] || port != 0).then_some(SocketAddr::new(ip, port));
        let process_id = Some(u32_at(row, 4)).filter(|process| *process != 0);
        if row[112..] != [0; ROW_LENGTH - 112] {
            return None;
        }
        Some(Self {
            connection: u32_at(row, 0),
            name: name.to_owned(),
            process_id,
            address,
            transport,
            is_live: state,
            position: u64_at(row, 16),
            lag_frames: u64_at(row, 24),
            frames_requested: u64_at(row, 32),
            frames_resent: u64_at(row, 40),
            frames_published: u64_at(row, 48),
            frames_dropped: u64_at(row, 56),
            in_flight: u32_at(row, 100),
            noted_ns: u64_at(row, 104),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(connection: u32) -> NodeRow {
        NodeRow {
            connection,
            name: "anna".to_owned(),
            process_id: None,
            address: Some("10.1.2.3:4000".parse().unwrap()),
            transport: Transport::Udp,
            is_live: Some(true),
            position: 7,
            lag_frames: 1,
            frames_requested: 2,
            frames_resent: 3,
            frames_published: 4,
            frames_dropped: 5,
            in_flight: 6,
            noted_ns: 7,
        }
    }

    fn stream() -> StreamState {
        StreamState {
            tier: Tier::Sync,
            transports: vec![Transport::SharedMemory, Transport::Tcp],
            is_halted: Some(true),
            feed_session: FeedSession::new("MONDAY").unwrap(),
            has_feed_ended: true,
        }
    }

    #[test]
    fn stream_state_round_trip() {
        let blank = StreamState { is_halted: None, feed_session: FeedSession::BLANK, transports: vec![], ..stream() };
        for stream in [stream(), blank, StreamState { is_halted: Some(false), has_feed_ended: false, ..stream() }] {
            let mut bytes = Vec::new();
            stream.write_to(&mut bytes);
            assert_eq!(StreamState::from_bytes(bytes[..].first_chunk().unwrap()), Some(stream));
        }
    }

    fn answer(rows: Vec<NodeRow>) -> NodesAnswer {
        let identity = StreamIdentity { stream_id: 1 << 99, incarnation: 8 };
        NodesAnswer { identity, released_sequence: 9, process_id: 10, stream: stream(), has_more: true, rows }
    }

    #[test]
    fn page_round_trip() {
        let here = NodeRow {
            process_id: Some(77),
            address: None,
            is_live: None,
            transport: Transport::SharedMemory,
            name: "ééééé".to_owned(),
            ..row(2)
        };
        let six = NodeRow { address: Some("[fe80::1]:65535".parse().unwrap()), is_live: Some(false), ..row(3) };
        let written = answer(vec![row(1), here, six]);
        let bytes = written.to_bytes();
        assert_eq!(bytes.len(), HEAD_LENGTH + 3 * ROW_LENGTH);
        assert_eq!(NodesAnswer::from_bytes(&bytes), Some(written));
        let request = NodesRequest { behind: 5 };
        assert_eq!(NodesRequest::from_bytes(&request.to_bytes()), Some(request));
        assert_eq!(NodesRequest::from_bytes(&request.to_bytes()[..15]), None);
    }

    #[test]
    fn long_name_is_cut_between_characters() {
        let long = NodeRow { name: "x".to_owned() + &"é".repeat(10), ..row(1) };
        let read = NodesAnswer::from_bytes(&answer(vec![long]).to_bytes()).unwrap();
        assert_eq!(read.rows[0].name, "x".to_owned() + &"é".repeat(7));
    }

    #[test]
    fn malformed_page_is_refused() {
        let good = answer(vec![row(1), row(2)]).to_bytes();
        for (offset, byte) in [
            (0, 0),
            (7, 1),
            (8, 1),
            (8, 3),
            (12, 2),
            (56, 8),
            (60, 9),
            (62, 16),
            (79, 1),
            (88, 9),
            (92, 3),
            (144, 0xff),
            (206, 1),
        ] {
            let mut bytes = good.clone();
            bytes[offset] = byte;
            assert_eq!(NodesAnswer::from_bytes(&bytes), None, "byte {offset}");
        }
        assert_eq!(NodesAnswer::from_bytes(&answer(vec![row(2), row(2)]).to_bytes()), None, "not in order");
        assert_eq!(NodesAnswer::from_bytes(&answer(Vec::new()).to_bytes()), None, "has_more without rows");
        assert_eq!(NodesAnswer::from_bytes(&good[..good.len() - 1]), None);
    }
}
