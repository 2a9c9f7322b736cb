//! The tables of the file: which keys there are, and what each may be. A key is named like the field that it sets,
//! without the field's unit.

use super::{NodeSettings, StreamConfig};
use crate::network::TcpNetwork;
use crate::network::endpoints::{Carrier, PacketNetwork};
use crate::network::guests::GuestOptions;
use crate::network::tcp_endpoints::FRAME_LENGTH_TCP;
use crate::options::EventStreamOptions;
use crate::persistence::Persistence;
use gapless_agent::{OptimizeFor, PlanKind};
use gapless_client::ClientError;
use gapless_client::node::Start;
use gapless_client::stream_file::document::{Table, Value};
use gapless_client::throttle::Throttle;
use gapless_journal::{Flush, RecoveryCheck};
use gapless_transport::Tier;
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Interface, PACKET_LENGTH_MAX, Segmentation};
use gapless_transport::transport::Transport;
use gapless_wire::control::WINDOW_MESSAGES_MAX;
use gapless_wire::descriptor::{FRAME_LENGTH_MAX, FRAME_LENGTH_UDP};
use gapless_wire::soup::Field;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Frames at once, where a rate is given and no burst.
const BURST_FRAMES: u32 = 256;
const WHOLE_U32: RangeInclusive<u64> = 1..=u32::MAX as u64;
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
const SIZE_MAX: u64 = 1 << 50;

/// Everything that the file says of a stream.
pub(super) fn read(file: &mut Table<'_>) -> Result<StreamConfig, ClientError> {
    let mut config = StreamConfig::in_directory("");
    stream(file.table("stream")?, &mut config)?;
    journal(file.table("journal")?, &mut config.stream.persistence)?;
    threads(file.table("threads")?, &mut config.stream)?;
    let mut limits = file.table("throttle")?;
    config.stream.throttle = throttle(&mut limits)?;
    limits.end()?;
    let mut batches = file.table("batch")?;
    let mut batch = true;
    batches.set("node", &mut config.node.batch, Value::switch)?;
    batches.set("sequencer", &mut batch, Value::switch)?;
    batches.end()?;
    let users = file.tables("user")?.into_iter().map(user).collect::<Result<Vec<_>, _>>()?;
    let mut guests = GuestOptions { users, ..GuestOptions::default() };
    let (packets, tcp) = network(file.table("network")?, &mut config, &mut guests)?;
    config.stream.packets = packets.map(|packets| PacketNetwork { batch, guests: guests.clone(), ..packets });
    config.stream.tcp = tcp.map(|tcp| TcpNetwork { guests, ..tcp });
    node(file.table("node")?, &mut config.node)?;
    Ok(config)
}

fn stream(mut table: Table<'_>, config: &mut StreamConfig) -> Result<(), ClientError> {
    let StreamConfig { transport, stream, .. } = config;
    stream.directory = match table.take("directory") {
        Some(value) if value.text()?.is_empty() => return Err(value.expected("a path is allowed")),
        Some(value) => Some(value.text()?.into()),
        None => None,
    };
    table.set("tier", &mut stream.tier, |value| value.choice(&Tier::ALL.map(|tier| (tier.name(), tier))))?;
    table.set("transport", transport, |value| value.choice(Transport::NAMES))?;
    stream.frame_length_max = match transport {
        Transport::SharedMemory => stream.frame_length_max,
        Transport::Udp | Transport::Multicast => FRAME_LENGTH_UDP,
        Transport::Tcp => FRAME_LENGTH_TCP,
    };
    table.set("feed_session", &mut stream.feed_session, |value| value.read(str::parse))?;
    let frames = gapless_wire::HEADER_LENGTH as u64 + 64..=FRAME_LENGTH_MAX as u64;
    table.set("frame_length_max", &mut stream.frame_length_max, |value| bytes(value, frames))?;
    table.set("message_length_max", &mut stream.message_length_max, |value| bytes(value, 1..=1 << 32))?;
    table.set("fragments", &mut stream.fragments_bytes_max, |value| bytes(value, 1..=SIZE_MAX))?;
    table.set("window", &mut stream.window_bytes, |value| match bytes(value, 64 << 10..=64 << 30)? {
        length if length.is_power_of_two() => Ok(length),
        _ => Err(value.expected("a power of two is allowed")),
    })?;
    table
        .set("session_expiry", &mut stream.session_expiry, |value| value.duration(Duration::from_secs(1)..=LONGEST))?;
    table.set("state_interval_frames", &mut stream.state_interval_frames, |value| value.whole(1..=i64::MAX as u64))?;
    table
        .set("state_interval_min", &mut stream.state_interval_min, |value| value.duration(Duration::ZERO..=LONGEST))?;
    table.end()
}

fn journal(mut table: Table<'_>, persistence: &mut Persistence) -> Result<(), ClientError> {
    table.set("segment_length", &mut persistence.segment_length_bytes, |value| value.size(1..=SIZE_MAX))?;
    table.set("zero_initial", &mut persistence.zero_initial, Value::switch)?;
    let kinds = [("mapped", Some(Flush::Mapped)), ("write", Some(Flush::Write))];
    table.set("flush", &mut persistence.flush, |value| value.choice(&kinds))?;
    table.set("write_buffer", &mut persistence.write_buffer_bytes, |value| bytes(value, 1..=1 << 30))?;
    let retention = &mut persistence.retention;
    table.set("retention_bytes", &mut retention.bytes_max, |value| value.size(1..=SIZE_MAX).map(Some))?;
    table.set("retention_age", &mut retention.age_max_ns, |value| nanoseconds(value, 1_000_000_000).map(Some))?;
    let checks = [("tail", RecoveryCheck::Tail), ("all", RecoveryCheck::All)];
    table.set("check", &mut persistence.check, |value| value.choice(&checks))?;
    table.end()
}

fn threads(mut table: Table<'_>, stream: &mut EventStreamOptions) -> Result<(), ClientError> {
    let plans = [PlanKind::Min, PlanKind::Default, PlanKind::Max].map(|plan| (plan.to_string(), plan));
    let aims = [OptimizeFor::Latency, OptimizeFor::Throughput].map(|aim| (aim.to_string(), aim));
    table
        .set("plan", &mut stream.plan, |value| value.choice(&plans.each_ref().map(|(name, plan)| (&**name, *plan))))?;
    table.set("optimize_for", &mut stream.optimize_for, |value| {
        value.choice(&aims.each_ref().map(|(name, aim)| (&**name, *aim)))
    })?;
    table.set("sequencer_cpus", &mut stream.sequencer_cpus, |value| value.read(str::parse).map(Some))?;
    table.end()
}

fn throttle(table: &mut Table<'_>) -> Result<Option<Throttle>, ClientError> {
    let rate = table.take("frames_per_s").map(|value| value.whole(WHOLE_U32)).transpose()?;
    let burst = table.take("burst_frames");
    match (rate, burst) {
        (None, None) => Ok(None),
        (None, Some(burst)) => Err(burst.refuse("frames_per_s is missing beside it; a number of frames is expected")),
        (Some(rate), burst) => {
            let burst = burst.map_or(Ok(u64::from(BURST_FRAMES)), |value| value.whole(WHOLE_U32))?;
            Ok(Some(Throttle { frames_per_s: rate as u32, burst_frames: burst as u32 }))
        }
    }
}

fn user(mut table: Table<'_>) -> Result<Credentials, ClientError> {
    let Some(name) = table.take("name") else { return Err(table.missing("name", "a text")) };
    let Some(password) = table.take("password") else { return Err(table.missing("password", "a text")) };
    let user = Credentials { username: field(&name)?, password: field(&password)? };
    if user.username.is_blank() {
        return Err(name.expected("1 to 6 printable ASCII characters are allowed"));
    }
    table.end()?;
    Ok(user)
}

fn network(
    mut table: Table<'_>,
    config: &mut StreamConfig,
    guests: &mut GuestOptions,
) -> Result<(Option<PacketNetwork>, Option<TcpNetwork>), ClientError> {
    let by_packets = matches!(config.transport, Transport::Udp | Transport::Multicast);
    let by_tcp = config.transport == Transport::Tcp;
    let mut address = |key, is_needed| match table.take(key) {
        Some(value) => value.address().map(Some),
        None if is_needed => Err(table.missing(key, "an IP address with a port, such as \"192.0.2.7:4001\",")),
        None => Ok(None),
    };
    let command = address("command", by_packets || by_tcp)?;
    let (request, rewind) = (address("request", by_packets)?, address("rewind", by_tcp)?);
    let nowhere = super::UNSPECIFIED;
    let mut network = PacketNetwork::udp(command.unwrap_or(nowhere), request.unwrap_or(nowhere));
    let groups = table.take("groups");
    match (groups, config.transport) {
        (Some(groups), Transport::Multicast) => {
            network.groups = groups.list()?.iter().map(Value::address).collect::<Result<_, _>>()?;
        }
        (Some(groups), other) => {
            let reason = format!("there are groups with transport \"multicast\" only, not with {:?}", other.name());
            return Err(groups.refuse(reason));
        }
        (None, Transport::Multicast) => {
            return Err(table.missing("groups", "one address of a group, or two for feeds A and B,"));
        }
        (None, _) => {}
    }
    if let Carrier::Udp { interface, hops, segmentation } = &mut network.carrier {
        table.set("interface", interface, |value| {
            let name = value.text()?;
            let by_name = || Interface::Name(name.to_owned());
            Ok(if name == "default" {
                Interface::Default
            } else {
                name.parse().map_or_else(|_| by_name(), Interface::Address)
            })
        })?;
        table.set("hops", hops, |value| value.whole(0..=255).map(|hops| hops as u8))?;
        table.set("segmentation", segmentation, |value| {
            value.choice(&[("auto", Segmentation::Auto), ("off", Segmentation::Off)])
        })?;
    }
    table.set("packet_length_max", &mut network.packet_length_max, |value| {
        bytes(value, 256..=PACKET_LENGTH_MAX as u64)
    })?;
    table.set("heartbeat_interval", &mut network.heartbeat_interval_ns, |value| nanoseconds(value, 1_000_000))?;
    table.set("silence", &mut config.node.silence_ns_max, |value| nanoseconds(value, 1_000_000))?;
    table.set("report_interval", &mut guests.heartbeat_interval_ns, |value| nanoseconds(value, 1_000_000))?;
    table.set("nodes_max", &mut guests.guests_max, |value| value.whole(1..=65_536).map(|count| count as usize))?;
    table.end()?;
    // Nodes by packets read over TCP what they are far behind with; the command port has one number for both.
    let tcp = command.zip(rewind).map(|(command, rewind)| TcpNetwork::new(command, rewind));
    Ok((by_packets.then_some(network), tcp.filter(|_| by_packets || by_tcp)))
}

fn node(mut table: Table<'_>, node: &mut NodeSettings) -> Result<(), ClientError> {
    table.set("start", &mut node.start, |value| match (value.number(), value.text().ok()) {
        (Some(sequence), _) if sequence > 0 => Ok(Start::Sequence(sequence)),
        (_, Some("first")) => Ok(Start::First),
        (_, Some("live")) => Ok(Start::Live),
        _ => Err(value.expected("\"first\", \"live\" and sequences from 1 are allowed")),
    })?;
    let publisher = &mut node.publisher;
    table.set("window_messages", &mut publisher.window_messages, |value| {
        value.whole(1..=u64::from(WINDOW_MESSAGES_MAX)).map(|count| count as u32)
    })?;
    publisher.throttle = throttle(&mut table)?;
    table.set("kept", &mut publisher.kept_bytes_max, |value| bytes(value, 4096..=SIZE_MAX))?;
    table.set("resend_interval", &mut publisher.resend_interval_ns, |value| nanoseconds(value, 1_000))?;
    table.set("username", &mut node.username, field)?;
    table.set("password", &mut node.password, field)?;
    table.end()
}

fn bytes(value: &Value<'_>, range: RangeInclusive<u64>) -> Result<usize, ClientError> {
    value.size(range).map(|bytes| bytes as usize)
}

fn nanoseconds(value: &Value<'_>, least_ns: u64) -> Result<u64, ClientError> {
    value.duration(Duration::from_nanos(least_ns)..=LONGEST).map(|duration| duration.as_nanos() as u64)
}

fn field<const N: usize>(value: &Value<'_>) -> Result<Field<N>, ClientError> {
    value.read(Field::new)
}
