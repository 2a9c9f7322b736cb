//! Starting a relay. It must learn the stream's identity before anything else.

use super::builder::{Journaling, StreamBuilder, StreamRole};
use super::carried_frames;
use super::{EventStream, StreamRecovery};
use crate::locked_directory::{DirectoryOwner, LockedDirectory};
use crate::options::EventStreamOptions;
use crate::persistence::{JournalParameters, OpenedJournal};
use crate::relay::feeds::KeptFeeds;
use crate::relay::limits::RelayLimits;
use crate::relay::{Relay, RelayCounters, RelayLinks, log_missing_upstream};
use crate::{AgentRole, StreamError};
use gapless_agent::wait_notices::WaitNotices;
use gapless_agent::{Clock, checked_file};
use gapless_client::ClientError;
use gapless_client::feed_sessions::{Feeds, SharedFeeds};
use gapless_client::node::link::ConnectionInfo;
use gapless_client::node::{NodeLink, Start};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalError, JournalReader, replace_file};
use gapless_log::StreamIdentity;
use gapless_transport::Tier;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::mark::Mark;
use gapless_wire::{Fragment, Kind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ATTEMPT_INTERVAL: Duration = Duration::from_millis(2);

pub(super) fn start(
    options: &EventStreamOptions,
    mut upstream: Box<dyn NodeLink>,
    start: Start,
    stopped: &AtomicBool,
) -> Result<EventStream, StreamError> {
    options.check()?;
    let (clock, _) = Clock::fastest();
    let mut directory =
        options.directory.as_ref().map(|root| LockedDirectory::lock(StreamLayout::new(root))).transpose()?;
    directory.as_mut().map_or(Ok(()), |directory| directory.check_owner(DirectoryOwner::Relay))?;
    if let (Some(directory), Tier::Memory) = (&directory, options.tier) {
        directory.check_no_journal()?;
    }
    let layout = directory.as_ref().map(LockedDirectory::layout);
    let origin = match layout {
        Some(layout) => UpstreamRecord::read(layout)?,
        None => None,
    };
    let mut recovery = StreamRecovery::default();
    let mut feeds = Feeds::default();
    let mut opened = None;
    let mut seen_frame = SeenFrame::default();
    let layout_kept = layout.filter(|_| options.tier != Tier::Memory);
    let kept_of = |identity| layout_kept.map(|layout| KeptFeeds::at(layout.feeds(), identity));
    let mut first_sequence = 0;
    if let Some(layout) = layout_kept
        && layout.journal().is_dir()
        && !matches!(JournalReader::open(layout.journal()), Err(JournalError::NoJournal { .. }))
    {
        // On the device before the journal exists.
        let Some(origin) = &origin else {
            let reason = "it is missing beside a journal; put it back from a copy of this directory, or move the directory away: the \
                          relay fetches what its stream still holds";
            return Err(StreamError::State { path: layout.origin(), reason: reason.to_owned() });
        };
        let mut found = open(options, layout, origin.identity, 1)?;
        first_sequence = found.journal.first_sequence();
        let before = kept_of(origin.identity).map(|kept| kept.before(first_sequence)).unwrap_or_default();
        (feeds, seen_frame) = fold(layout, &mut found, before, &mut recovery, SeenFrame::none_seen(origin.identity))?;
        carried_frames::check(options, &layout.journal(), recovery.last_sequence)?;
        opened = Some(found);
    }
    let opened_before = opened.is_some();
    let start = if opened_before { Start::Sequence(recovery.last_sequence + 1) } else { start };
    let connected =
        connect(&mut *upstream, (start, seen_frame), &clock, stopped).map_err(|error| match (error, layout) {
            (StreamError::Client(other @ ClientError::OtherStream { .. }), Some(layout)) => {
                other_origin(layout, &other)
            }
            (error, _) => error,
        })?;
    if let (Some(layout), Some(origin)) = (layout, &origin)
        && origin.identity != connected.identity
    {
        let (peer, expected, found) = (upstream.peer(), origin.identity, connected.identity);
        return Err(other_origin(layout, &ClientError::OtherStream { peer, expected, found }));
    }
    let limits = RelayLimits::common(options, &connected, &upstream.peer())?;
    if let (Some(layout), true) = (layout, options.tier != Tier::Memory) {
        if origin.is_none() {
            UpstreamRecord { identity: connected.identity }.write(layout)?;
        }
        if opened.is_none() {
            recovery.last_sequence = connected.position - 1;
            opened = Some(open(options, layout, connected.identity, connected.position)?);
        }
    } else {
        recovery.last_sequence = connected.position - 1;
    }
    let kept = kept_of(connected.identity);
    if let Some(kept) = &kept {
        let now = connected.feed.filter(|feed| feed.first_sequence < first_sequence);
        let is_unknown = now.is_some_and(|now| feeds.find_by_name(now.name).is_none());
        if is_unknown || (opened_before && kept.is_older(&feeds, first_sequence)) {
            let path = layout_kept.map(StreamLayout::feeds).unwrap_or_default();
            tracing::warn!(path = %path.display(), "the file of the feed sessions of before is damaged, or an older copy");
            feeds =
                Feeds::restored(feeds.all().iter().filter(|it| it.first_sequence >= first_sequence).copied().collect());
        }
    }
    if feeds.newest().is_none()
        && let Some(feed) = connected.feed
    {
        feeds = Feeds::restored(vec![feed]);
    }
    if let Some(kept) = &kept {
        kept.write(&feeds)?;
    }
    let identity = connected.identity;
    let mut builder =
        StreamBuilder::new(options, directory, identity, recovery.last_sequence + 1, opened, StreamRole::Relay)?;
    builder.advertised_limits = (limits.frame_length_max, limits.message_bytes_max);
    let Journaling { releaser, syncer_and_preparer, report } = builder.journal()?;
    recovery.journal = report;
    if let Some((_, preparer)) = syncer_and_preparer {
        // No state depends on relayed frames: retention alone decides.
        preparer.set_snapshot_sequence(u64::MAX);
    }
    let links = RelayLinks {
        publishers: builder.acceptor_links.ingress.clone(),
        egress: builder.egress(),
        downstream: builder.threads.downstream(Some(AgentRole::Relay), &[AgentRole::Journaler]),
        feeds: SharedFeeds::new(feeds),
        kept_feeds: kept,
        throttle: options.throttle,
        limits,
        counters: RelayCounters::add_to(&builder.counters)?,
    };
    links.counters.last_sequence.set(recovery.last_sequence);
    let seen_frame = if seen_frame.identity == identity { seen_frame } else { SeenFrame::none_seen(identity) };
    let relay = Relay::new(upstream, seen_frame, identity, builder.take_writer(), releaser, links);
    let shared = relay.shared();
    builder.start(Box::new(relay), Vec::new(), shared, recovery, Some(clock))
}

fn other_origin(layout: &StreamLayout, other: &ClientError) -> StreamError {
    let next = "move the directory away: what the stream holds is fetched again into a new one";
    let reason = match other {
        ClientError::OtherStream { expected, found, .. } if expected.stream_id == found.stream_id => format!(
            "the stream was restored or recovered since, and is in another incarnation than the part of it here: {other}; {next}"
        ),
        _ => format!(
            "the directory is of another stream than it is to pass on, or this file is damaged: {other}; take its own stream, or {next}"
        ),
    };
    StreamError::State { path: layout.origin(), reason }
}

fn connect(
    upstream: &mut dyn NodeLink,
    (start, seen_frame): (Start, SeenFrame),
    clock: &Clock,
    stopped: &AtomicBool,
) -> Result<ConnectionInfo, StreamError> {
    let mut waits = WaitNotices::after_a_second();
    // Acquire: pairs with the store that stops the start.
    while !stopped.load(Ordering::Acquire) {
        let now_ns = clock.now().monotonic_ns;
        match upstream.connect(start, seen_frame, now_ns) {
            Ok(Some(connected)) => return Ok(connected),
            Ok(None) | Err(ClientError::Disconnected { .. }) => {
                if let Some(waited) = waits.take_due(now_ns) {
                    log_missing_upstream(upstream, waited);
                }
                std::thread::sleep(ATTEMPT_INTERVAL);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(ClientError::Closed.into())
}

fn open(
    options: &EventStreamOptions,
    layout: &StreamLayout,
    identity: StreamIdentity,
    first_sequence: u64,
) -> Result<OpenedJournal, StreamError> {
    let new_stream_id = Some(identity.stream_id);
    let opening = JournalParameters::new(options.tier, options.frame_length_max);
    options.persistence.open(&layout.journal(), JournalParameters { first_sequence, new_stream_id, ..opening })
}

fn fold(
    layout: &StreamLayout,
    opened: &mut OpenedJournal,
    mut feeds: Feeds,
    recovery: &mut StreamRecovery,
    mut seen_frame: SeenFrame,
) -> Result<(Feeds, SeenFrame), StreamError> {
    let journal = &mut opened.journal;
    let (first, last) = (journal.first_sequence(), journal.last_sequence());
    recovery.last_sequence = last;
    if first > last {
        return Ok((feeds, seen_frame));
    }
    let mut replay = JournalReader::open(layout.journal())?.replay_until(first, last)?;
    let mut incomplete_from = None;
    while let Some(frame) = replay.next_frame()? {
        recovery.frames_replayed += 1;
        if frame.fragment() != Fragment::WHOLE && frame.fragment().index == 0 {
            incomplete_from = Some(frame.sequence());
        }
        if frame.fragment().is_last() {
            incomplete_from = None;
            seen_frame.observe(frame.sequence(), frame.timestamp_ns());
        }
        if frame.kind() == Kind::Mark {
            match Mark::from_bytes(frame.payload()) {
                Some(Mark::FeedBegan { feed_session }) => feeds.begin(feed_session, frame.sequence()),
                Some(Mark::FeedEnded { .. }) => feeds.end(frame.sequence()),
                _ => {}
            }
        }
    }
    if let Some(sequence) = incomplete_from {
        journal.truncate_after(sequence - 1)?;
        recovery.last_sequence = sequence - 1;
    }
    Ok((feeds, seen_frame))
}

const ORIGIN_LENGTH_MAX: u64 = 1 << 10;

/// File next to the journal that names the upstream.
struct UpstreamRecord {
    identity: StreamIdentity,
}

impl UpstreamRecord {
    fn read(layout: &StreamLayout) -> Result<Option<Self>, StreamError> {
        let path = layout.origin();
        let text = match checked_file::read_to_string(&path, ORIGIN_LENGTH_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(StreamError::System { action: format!("reading {}", path.display()), source });
            }
        };
        let parsed = text.trim().split_once(' ').and_then(|(stream, incarnation)| {
            let stream_id = u128::from_str_radix(stream, 16).ok()?;
            Some(StreamIdentity { stream_id, incarnation: u64::from_str_radix(incarnation, 16).ok()? })
        });
        let reason = "it should hold a stream id and an incarnation, both hexadecimal".to_owned();
        parsed.map(|identity| Some(Self { identity })).ok_or(StreamError::State { path, reason })
    }

    fn write(&self, layout: &StreamLayout) -> Result<(), StreamError> {
        let path = layout.origin();
        let text = format!("{:032x} {:016x}\n", self.identity.stream_id, self.identity.incarnation);
        replace_file(&path, path.with_extension("new"), text.as_bytes())
            .map_err(|source| StreamError::System { action: format!("writing {}", path.display()), source })
    }
}
