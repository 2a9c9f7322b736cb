//! [`SharedMemoryLink`]: upstream through a ring of the node's own, downstream through the sequencer's window, or the
//! journal for older frames.

use super::link::{ConnectionInfo, LinkRead, LinkReads, NodeLink, Start};
use crate::ClientError;
use crate::error::THIS_PROCESS;
use crate::node_progress::{ProgressReport, ProgressWriter};
use crate::quiet_polls::QuietPolls;
use crate::replay_merge::{ReplayMerge, ReplayRead};
use crate::stream_layout::StreamLayout;
use gapless_log::{LogError, StreamIdentity};
use gapless_transport::TransportError;
use gapless_transport::addresses::Addresses;
use gapless_transport::connect::ConnectOptions;
use gapless_transport::connect::shared_memory::{DialResult, PendingDial, is_retryable};
use gapless_transport::link::RingSizes;
use gapless_transport::peer_process::PeerProcess;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::tier::Tier;
use gapless_wire::mtu::Mtu;
use gapless_wire::{Frame, aligned_length};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemoryOptions {
    pub rings: RingSizes,
    /// Limit for a sequencer with alternatives, at most one second; a single one is waited for.
    pub timeout: Duration,
    /// Stated by the node; without one it takes the stream's.
    pub mtu: Option<Mtu>,
}

impl Default for SharedMemoryOptions {
    fn default() -> Self {
        let rings = RingSizes { command_ring_bytes: 4 << 20, reply_ring_bytes: 64 << 10 };
        Self { rings, timeout: Duration::from_secs(5), mtu: None }
    }
}

pub struct SharedMemoryLink {
    options: SharedMemoryOptions,
    directories: Option<Addresses<StreamDirectory>>,
    up: Option<SharedMemoryConnection>,
    dialing: Option<PendingDial>,
    answer: Vec<u8>,
    next_attempt_ns: u64,
    /// Added to `next_attempt_ns` at the next attempt, because no clock was available.
    pause: Duration,
    /// No member has as much of the stream as the node has read.
    lagging_since_ns: Option<u64>,
    progress: Option<ProgressReport>,
    failure: Option<TransportError>,
    reason: Option<String>,
}

struct StreamDirectory {
    layout: StreamLayout,
    /// Compared with the paths that members name.
    named: PathBuf,
}

impl StreamDirectory {
    fn new(directory: &Path) -> Self {
        let layout = StreamLayout::new(directory);
        let socket = layout.socket();
        Self { named: std::path::absolute(&socket).unwrap_or(socket), layout }
    }
}

impl fmt::Display for StreamDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.named.display().fmt(f)
    }
}

struct SharedMemoryConnection {
    link: PublisherLink,
    reader: ReplayMerge,
    laps: u64,
    quiet_polls: QuietPolls,
    sent: u64,
    answers: u64,
    silence: SequencerSilence,
    notes: ProgressWriter,
}

/// A stalled process keeps its socket open.
#[derive(Default)]
struct SequencerSilence {
    /// Position in the stream and number of answers, at the last check.
    seen: (u64, u64),
    since: Option<Instant>,
}

impl SequencerSilence {
    fn elapsed(&mut self, seen: (u64, u64), awaits: bool) -> Duration {
        if seen != self.seen || !awaits {
            *self = Self { seen, since: None };
            return Duration::ZERO;
        }
        self.since.get_or_insert_with(Instant::now).elapsed()
    }
}

impl SharedMemoryConnection {
    fn new(link: PublisherLink, reader: ReplayMerge) -> Self {
        Self {
            link,
            reader,
            laps: 0,
            quiet_polls: QuietPolls::default(),
            sent: 0,
            answers: 0,
            silence: SequencerSilence::default(),
            notes: ProgressWriter::default(),
        }
    }
}

/// A sequencer that owes an answer for so long is left for another.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// [`SharedMemoryLink::connect_failure`] then reports that the answer is awaited.
const SILENCE_TOLD: Duration = Duration::from_millis(500);
const ATTEMPT_INTERVAL_NS: u64 = 5_000_000;

impl SharedMemoryLink {
    #[must_use]
    pub fn new(directory: &Path, options: SharedMemoryOptions) -> Self {
        Self::any(&[directory], options)
    }

    /// Link to a stream that any of these directories may hold: those of a cluster's members on this machine. A member
    /// that does not lead names the leader, or the next directory is tried.
    ///
    /// # Panics
    /// If `directories` is empty.
    #[must_use]
    pub fn any(directories: &[impl AsRef<Path>], options: SharedMemoryOptions) -> Self {
        let directory = |directory: &dyn AsRef<Path>| StreamDirectory::new(directory.as_ref());
        let directories = Addresses::new(directories.iter().map(|each| directory(each)).collect());
        Self::with_parts(options, Some(directories), None)
    }

    const fn with_parts(
        options: SharedMemoryOptions,
        directories: Option<Addresses<StreamDirectory>>,
        up: Option<SharedMemoryConnection>,
    ) -> Self {
        Self {
            options,
            directories,
            up,
            dialing: None,
            answer: Vec::new(),
            next_attempt_ns: 0,
            pause: Duration::ZERO,
            lagging_since_ns: None,
            progress: None,
            failure: None,
            reason: None,
        }
    }

    /// Link to a stream of this process. When the stream stops, the link is lost for good.
    #[doc(hidden)] // `EventStream::local_link` is the application's way.
    #[must_use]
    pub fn local(link: PublisherLink, reader: ReplayMerge, options: SharedMemoryOptions) -> Self {
        Self::with_parts(options, None, Some(SharedMemoryConnection::new(link, reader)))
    }

    fn up(&mut self) -> Result<&mut SharedMemoryConnection, ClientError> {
        if self.up.is_none() {
            return Err(ClientError::Disconnected { peer: self.peer(), reason: self.reason.clone() });
        }
        Ok(self.up.as_mut().expect("looked at above"))
    }

    fn dial(&mut self, layout: &StreamLayout, seen: SeenFrame) -> Result<Option<SharedMemoryConnection>, ClientError> {
        let timeout = self.answer_timeout();
        let attempt = match self.dialing.take() {
            Some(dialing) => Ok(dialing),
            None => {
                let options = ConnectOptions {
                    link: self.options.rings,
                    identity: StreamIdentity::default(),
                    reads: true,
                    seen,
                    mtu: self.options.mtu,
                    timeout,
                };
                PendingDial::begin(&layout.socket(), &options)
            }
        };
        let link = match attempt.and_then(PendingDial::finish) {
            Ok(DialResult::Connected(link)) => *link,
            Ok(DialResult::Pending(pending)) => {
                if self.has_others() && pending.elapsed() >= timeout {
                    self.failure = Some(pending.timed_out());
                } else {
                    self.dialing = Some(pending);
                    let is_answer = |failure: &TransportError| matches!(failure, TransportError::Handshake { .. });
                    self.failure = self.failure.take().filter(|failure| self.has_others() || is_answer(failure));
                }
                return Ok(None);
            }
            Err(error) if is_retryable(&error) => {
                self.failure = Some(error);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.failure = None;
        let window = link.window.clone().expect("asked for, or the handshake has failed");
        let is_kept = Tier::from_value(link.welcome.tier).is_none_or(Tier::is_journaled);
        let reader = ReplayMerge::new(window, is_kept.then(|| layout.journal()), 1);
        Ok(Some(SharedMemoryConnection::new(link, reader)))
    }
}

impl SharedMemoryLink {
    fn answer_timeout(&self) -> Duration {
        self.options.timeout.min(SILENCE_MAX)
    }

    fn has_others(&self) -> bool {
        self.directories.as_ref().is_some_and(|directories| directories.count() > 1)
    }

    fn move_to_next(&mut self) {
        if let Some(directories) = self.directories.as_mut().filter(|directories| directories.count() > 1) {
            self.pause = directories.failed(Instant::now());
        }
    }
}

impl NodeLink for SharedMemoryLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        if let Some(directories) = &self.directories {
            let layout = directories.current().layout.clone();
            if self.dialing.is_none() {
                self.next_attempt_ns = self.next_attempt_ns.max(now_ns * u64::from(!self.pause.is_zero()));
                self.next_attempt_ns += std::mem::take(&mut self.pause).as_nanos() as u64;
                if now_ns < self.next_attempt_ns {
                    return Ok(None);
                }
                self.next_attempt_ns = now_ns + if self.has_others() { 0 } else { ATTEMPT_INTERVAL_NS };
            }
            self.up = self.dial(&layout, seen)?;
            if self.up.is_none() && self.dialing.is_none() {
                self.move_to_next();
            }
        }
        let Some(up) = &mut self.up else {
            return if self.directories.is_some() {
                Ok(None)
            } else {
                Err(ClientError::Disconnected { peer: THIS_PROCESS.to_owned(), reason: self.reason.clone() })
            };
        };
        let released_sequence = up.reader.released_sequence();
        let position = match start {
            Start::First => up.reader.first_held()?,
            _ => start.position(released_sequence),
        };
        if position > released_sequence + 1 {
            let found = up.link.welcome.identity;
            // Another member may have more; a new leader will soon.
            let since_ns = *self.lagging_since_ns.get_or_insert(now_ns);
            if self.has_others() && now_ns.saturating_sub(since_ns) < self.options.timeout.as_nanos() as u64 {
                self.up = None;
                self.move_to_next();
                return Ok(None);
            }
            if seen.sequence > 0 && seen.identity != found {
                return Err(ClientError::OtherStream { peer: self.peer(), expected: seen.identity, found });
            }
            let lost =
                if seen.sequence > released_sequence { "; it has lost frames that this node has read" } else { "" };
            let reason = format!("the stream ends at {released_sequence}{lost}");
            return Err(ClientError::Lapped { sequence: position, reason });
        }
        self.lagging_since_ns = None;
        up.reader.seek(position);
        Ok(Some(ConnectionInfo {
            identity: up.link.welcome.identity,
            frame_length_max: up.link.welcome.frame_length_max as usize,
            message_bytes_max: up.link.welcome.message_length_max as usize,
            released_sequence,
            position,
            feed: None,
        }))
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        let up = self.up()?;
        match up.link.writer.append(frame) {
            Ok(()) => {
                up.sent += 1;
                Ok(true)
            }
            Err(LogError::Full { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn flush(&mut self) -> Result<(), ClientError> {
        let up = self.up()?;
        if up.link.writer.publish() {
            // Fails only if the counter is full; then the sequencer is being woken already.
            let _ = rustix::io::write(&up.link.wake_service, &1u64.to_ne_bytes());
        }
        Ok(())
    }

    #[inline]
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        let Some(up) = &mut self.up else { return Ok(0) };
        let mut count = 0;
        while let Some(length) = up.link.reader.next_length()? {
            self.answer.resize(aligned_length(length), 0);
            up.link.reader.copy(&mut self.answer);
            let frame = Frame::parse(&self.answer).and_then(|frame| frame.verify().map(|()| frame));
            let frame = frame.map_err(|error| ClientError::Protocol { what: error.to_string() })?;
            take(&frame);
            up.link.reader.advance(length);
            count += 1;
        }
        up.answers += count as u64;
        up.link.reader.release();
        Ok(count)
    }

    #[inline]
    fn read(&mut self, _now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        let Some(up) = &mut self.up else { return Ok(LinkRead::Empty) };
        if up.laps != up.reader.laps() {
            up.laps = up.reader.laps();
            return Ok(LinkRead::Lapped);
        }
        match up.reader.read()? {
            ReplayRead::Frame(frame) => {
                up.quiet_polls.end();
                Ok(LinkRead::Frame(frame))
            }
            ReplayRead::Empty => Ok(LinkRead::Empty),
        }
    }

    #[inline]
    fn read_each(
        &mut self,
        limit: usize,
        now_ns: u64,
        take: &mut impl FnMut(&Frame<'_>) -> Result<(), ClientError>,
    ) -> Result<LinkReads, ClientError> {
        let mut reads = LinkReads::default();
        while reads.frames < limit {
            match self.read(now_ns)? {
                LinkRead::Frame(frame) => take(&frame)?,
                LinkRead::Empty => break,
                LinkRead::Lapped => {
                    reads.is_lapped = true;
                    break;
                }
            }
            reads.frames += 1;
            if let Some(up) = &mut self.up {
                reads.frames += up.reader.read_copied(limit - reads.frames, take)?;
            }
        }
        Ok(reads)
    }

    fn released_sequence(&self) -> u64 {
        self.up.as_ref().map_or(0, |up| up.reader.released_sequence())
    }

    fn loses(&self) -> bool {
        false
    }

    #[inline]
    fn note(&mut self, progress: ProgressReport) {
        self.progress = Some(progress);
    }

    #[inline]
    fn tick(&mut self, _now_ns: u64) -> Result<(), ClientError> {
        let Some(up) = &mut self.up else { return Ok(()) };
        let position = up.reader.sequence();
        let progress = self.progress.unwrap_or_else(|| {
            let is_live = position > up.reader.released_sequence();
            ProgressReport { is_live, ..ProgressReport::default() }
        });
        up.notes.write(&up.link.reader, position, up.sent, progress);
        // A node that does not read may wait for something else.
        if !up.quiet_polls.take_clock_check() || !up.quiet_polls.take_due_question(Instant::now()) {
            return Ok(());
        }
        let awaits = progress.in_flight > 0 || (up.sent > 0 && up.answers == 0);
        let is_silent = up.silence.elapsed((position, up.answers), awaits) >= SILENCE_MAX;
        let is_gone = up.link.is_gone();
        let reason = if is_gone { up.link.failure() } else { None };
        let is_left = is_silent && self.has_others();
        if !is_gone && !is_left {
            return Ok(());
        }
        let peer = self.peer();
        (self.up, self.reason) = (None, reason.clone());
        if !is_gone {
            self.move_to_next();
        }
        Err(ClientError::Disconnected { peer, reason })
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let Some(up) = &mut self.up else {
            match &self.dialing {
                Some(dialing) if self.has_others() => dialing.wait(timeout.min(self.answer_timeout()))?,
                Some(dialing) => dialing.wait(timeout)?,
                None => std::thread::sleep(timeout.min(Duration::from_nanos(ATTEMPT_INTERVAL_NS))),
            }
            return Ok(());
        };
        up.link.reader.arm();
        let is_news = up.reader.sequence() <= up.reader.released_sequence() || up.link.reader.next_length()?.is_some();
        if !is_news {
            up.link.sleep(timeout)?;
            up.quiet_polls.check_next();
        }
        up.link.reader.disarm();
        Ok(())
    }

    fn on_not_leader(&mut self, leaders: &str) -> Result<(), ClientError> {
        let Some(directories) = self.directories.as_mut().filter(|directories| directories.count() > 1) else {
            return Ok(());
        };
        let peer = directories.current().layout.socket().display().to_string();
        self.pause = directories.on_not_leader(leaders, Instant::now());
        self.up = None;
        Err(ClientError::Disconnected { peer, reason: None })
    }

    fn connect_failure(&self) -> Option<String> {
        if let Some(dialing) = self.dialing.as_ref().filter(|dialing| dialing.elapsed() >= SILENCE_TOLD) {
            return Some(dialing.silence());
        }
        let (failure, directories) = (self.failure.as_ref()?, self.directories.as_ref()?);
        let layout = &directories.current().layout;
        let directory = layout.root().display();
        // The error may belong to the previous directory.
        Some(if layout.node_socket().exists() && !layout.socket().exists() {
            format!(
                "{directory} is the directory of a service, which has clients and no nodes; connect a client to its node.socket"
            )
        } else if !layout.root().exists() {
            format!("there is no directory {directory}")
        } else {
            failure.to_string()
        })
    }

    fn standstill(&self) -> Option<String> {
        let process = PeerProcess::of(self.up.as_ref()?.link.socket.as_ref()?)?;
        let (id, why) = (process.id(), process.standstill()?);
        Some(format!("the sequencer's process {id} at {} {why}", self.peer()))
    }

    fn peer(&self) -> String {
        let here =
            |directories: &Addresses<StreamDirectory>| directories.current().layout.socket().display().to_string();
        self.directories.as_ref().map_or_else(|| THIS_PROCESS.to_owned(), here)
    }
}
