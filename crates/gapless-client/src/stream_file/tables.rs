//! A key is named like the field that it sets, without the field's unit.

use super::{JournalSettings, NetworkSettings, NodeSettings, SequencerSettings, StreamConfig};
use crate::node::Start;
use crate::throttle::Throttle;
use gapless_agent::{OptimizeFor, PlanKind};
use gapless_config::{ConfigError, Table, Value};
use gapless_journal::{Flush, RecoveryCheck, Retention};
use gapless_transport::Tier;
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Interface, PACKET_LENGTH_MAX, Segmentation};
use gapless_transport::transport::Transport;
use gapless_wire::control::WINDOW_MESSAGES_MAX;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::Field;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

const BURST_FRAMES: u32 = 256;
const WHOLE_U32: RangeInclusive<u64> = 1..=u32::MAX as u64;
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
const SIZE_MAX: u64 = 1 << 50;

pub(super) fn read(file: &mut Table<'_>) -> Result<StreamConfig, ConfigError> {
    let mut config = StreamConfig::unnamed();
    stream(file.table("stream")?, &mut config)?;
    config.sequencer.journal = journal(file.table("journal")?)?;
    threads(file.table("threads")?, &mut config.sequencer)?;
    let mut limits = file.table("throttle")?;
    config.sequencer.throttle = throttle(&mut limits)?;
    limits.end()?;
    let mut batches = file.table("batch")?;
    batches.set("node", &mut config.node.batch, Value::switch)?;
    config.sequencer.batch = batches.get("sequencer", Value::switch)?;
    batches.end()?;
    config.users = file.tables("user")?.into_iter().map(user).collect::<Result<Vec<_>, _>>()?;
    config.network = network(file.table("network")?, config.transport, &mut config.node)?;
    node(file.table("node")?, &mut config.node)?;
    Ok(config)
}

fn stream(mut table: Table<'_>, config: &mut StreamConfig) -> Result<(), ConfigError> {
    config.directory = match table.take("directory") {
        Some(value) if value.text()?.is_empty() => return Err(value.expected("a path is allowed")),
        Some(value) => Some(value.text()?.into()),
        None => None,
    };
    let sequencer = &mut config.sequencer;
    sequencer.tier = table.get("tier", |value| value.choice(&Tier::ALL.map(|tier| (tier.name(), tier))))?;
    table.set("transport", &mut config.transport, |value| value.choice(Transport::NAMES))?;
    let mtus = u64::from(Mtu::MIN)..=u64::from(Mtu::MAX);
    config.mtu = table.get("mtu", |value| {
        let bytes = value.size(mtus)?;
        Mtu::new(bytes).map_err(|reason| value.refuse(reason))
    })?;
    sequencer.feed_session = table.get("feed_session", |value| value.read(str::parse))?;
    let frames = gapless_wire::HEADER_LENGTH as u64 + 64..=FRAME_LENGTH_MAX as u64;
    sequencer.frame_length_max = table.get("frame_length_max", |value| bytes(value, frames))?;
    sequencer.message_length_max = table.get("message_length_max", |value| bytes(value, 1..=1 << 32))?;
    sequencer.fragments_bytes_max = table.get("fragments", |value| bytes(value, 1..=SIZE_MAX))?;
    sequencer.window_bytes = table.get("window", |value| match bytes(value, 64 << 10..=64 << 30)? {
        length if length.is_power_of_two() => Ok(length),
        _ => Err(value.expected("a power of two is allowed")),
    })?;
    sequencer.session_expiry = table.get("session_expiry", |value| value.duration(Duration::from_secs(1)..=LONGEST))?;
    sequencer.state_interval_frames = table.get("state_interval_frames", |value| value.whole(1..=i64::MAX as u64))?;
    sequencer.state_interval_min = table.get("state_interval_min", |value| value.duration(Duration::ZERO..=LONGEST))?;
    table.end()
}

fn journal(mut table: Table<'_>) -> Result<JournalSettings, ConfigError> {
    let kinds = [("mapped", Flush::Mapped), ("write", Flush::Write)];
    let checks = [("tail", RecoveryCheck::Tail), ("all", RecoveryCheck::All)];
    let settings = JournalSettings {
        segment_length_bytes: table.get("segment_length", |value| value.size(1..=SIZE_MAX))?,
        first_segment_length_bytes: table.get("first_segment_length", |value| value.size(1..=SIZE_MAX))?,
        zero_initial: table.get("zero_initial", Value::switch)?,
        zero_first: table.get("zero_first", Value::switch)?,
        flush: table.get("flush", |value| value.choice(&kinds))?,
        write_buffer_bytes: table.get("write_buffer", |value| bytes(value, 1..=1 << 30))?,
        retention: Retention {
            bytes_max: table.get("retention_bytes", |value| value.size(1..=SIZE_MAX))?,
            age_max_ns: table.get("retention_age", |value| nanoseconds(value, 1_000_000_000))?,
        },
        check: table.get("check", |value| value.choice(&checks))?,
    };
    table.end()?;
    Ok(settings)
}

fn threads(mut table: Table<'_>, sequencer: &mut SequencerSettings) -> Result<(), ConfigError> {
    let plans = [PlanKind::Min, PlanKind::Default, PlanKind::Max].map(|plan| (plan.to_string(), plan));
    let aims = [OptimizeFor::Latency, OptimizeFor::Throughput].map(|aim| (aim.to_string(), aim));
    sequencer.plan = table.get("plan", |value| value.choice(&plans.each_ref().map(|(name, plan)| (&**name, *plan))))?;
    sequencer.optimize_for =
        table.get("optimize_for", |value| value.choice(&aims.each_ref().map(|(name, aim)| (&**name, *aim))))?;
    sequencer.sequencer_cpus = table.get("sequencer_cpus", |value| value.read(str::parse))?;
    table.end()
}

fn throttle(table: &mut Table<'_>) -> Result<Option<Throttle>, ConfigError> {
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

fn user(mut table: Table<'_>) -> Result<Credentials, ConfigError> {
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
    transport: Transport,
    node: &mut NodeSettings,
) -> Result<NetworkSettings, ConfigError> {
    let by_packets = matches!(transport, Transport::Udp | Transport::Multicast);
    let by_tcp = transport == Transport::Tcp;
    let mut address = |key, is_needed| match table.take(key) {
        Some(value) => value.address().map(Some),
        None if is_needed => Err(table.missing(key, "an IP address with a port, such as \"192.0.2.7:4001\",")),
        None => Ok(None),
    };
    let command = address("command", by_packets || by_tcp)?;
    let (request, rewind) = (address("request", by_packets)?, address("rewind", by_tcp)?);
    let mut network = NetworkSettings {
        command,
        request,
        rewind,
        groups: groups(&mut table, transport)?,
        interface: table.get("interface", interface)?,
        hops: table.get("hops", |value| value.whole(0..=255).map(|hops| hops as u8))?,
        segmentation: table
            .get("segmentation", |value| value.choice(&[("auto", Segmentation::Auto), ("off", Segmentation::Off)]))?,
        packet_length_max: table.get("packet_length_max", |value| bytes(value, 256..=PACKET_LENGTH_MAX as u64))?,
        heartbeat_interval_ns: table.get("heartbeat_interval", |value| nanoseconds(value, 1_000_000))?,
        ..NetworkSettings::default()
    };
    table.set("silence", &mut node.silence_ns_max, |value| nanoseconds(value, 1_000_000))?;
    network.report_interval_ns = table.get("report_interval", |value| nanoseconds(value, 1_000_000))?;
    network.nodes_max = table.get("nodes_max", |value| value.whole(1..=65_536).map(|count| count as usize))?;
    table.end()?;
    Ok(network)
}

fn groups(table: &mut Table<'_>, transport: Transport) -> Result<Vec<SocketAddr>, ConfigError> {
    match (table.take("groups"), transport) {
        (Some(groups), Transport::Multicast) => groups.list()?.iter().map(Value::address).collect(),
        (Some(groups), other) => {
            let reason = format!("there are groups with transport \"multicast\" only, not with {:?}", other.name());
            Err(groups.refuse(reason))
        }
        (None, Transport::Multicast) => {
            Err(table.missing("groups", "one address of a group, or two for feeds A and B,"))
        }
        (None, _) => Ok(Vec::new()),
    }
}

fn interface(value: &Value<'_>) -> Result<Interface, ConfigError> {
    let name = value.text()?;
    if name == "default" {
        return Ok(Interface::Default);
    }
    Ok(name.parse().map_or_else(|_| Interface::Name(name.to_owned()), Interface::Address))
}

fn node(mut table: Table<'_>, node: &mut NodeSettings) -> Result<(), ConfigError> {
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

fn bytes(value: &Value<'_>, range: RangeInclusive<u64>) -> Result<usize, ConfigError> {
    value.size(range).map(|bytes| bytes as usize)
}

fn nanoseconds(value: &Value<'_>, least_ns: u64) -> Result<u64, ConfigError> {
    value.duration(Duration::from_nanos(least_ns)..=LONGEST).map(|duration| duration.as_nanos() as u64)
}

fn field<const N: usize>(value: &Value<'_>) -> Result<Field<N>, ConfigError> {
    value.read(Field::new)
}
