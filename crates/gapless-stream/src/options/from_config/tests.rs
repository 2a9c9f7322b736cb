//! Every key, from the file to the options, and every refusal with its line.

use super::*;
use gapless_agent::{OptimizeFor, PlanKind};
use gapless_client::node::{PublisherOptions, Start, StreamNodeOptions};
use gapless_client::stream_file::NodeSettings;
use gapless_client::throttle::Throttle;
use gapless_config::ConfigError;
use gapless_transport::Tier;
use gapless_transport::network::{Interface, Segmentation};
use std::path::Path;
use std::time::Duration;

const EXAMPLE: &str = include_str!("../../../../../docs/guides/stream.toml");
const UDP: &str = "[stream]\ndirectory = \"d\"\ntransport = \"udp\"\n[network]\ncommand = \"127.0.0.1:1\"\nrequest = \"127.0.0.1:2\"\n";
const MULTICAST: &str = "[stream]\ndirectory = \"d\"\ntransport = \"multicast\"\n[network]\ncommand = \"127.0.0.1:1\"\nrequest = \"127.0.0.1:2\"\n";

const MULTICAST_GROUP: &str = "[stream]\ndirectory = \"d\"\ntransport = \"multicast\"\n[network]\ncommand = \"127.0.0.1:1\"\nrequest = \"127.0.0.1:2\"\ngroups = [\"239.0.0.1:9\"]\n";
const TCP: &str = "[stream]\ndirectory = \"d\"\ntransport = \"tcp\"\n[network]\ncommand = \"127.0.0.1:1\"\nrewind = \"127.0.0.1:2\"\n";

fn read(text: &str) -> Result<(StreamConfig, EventStreamOptions), StreamError> {
    let config = StreamConfig::parse(text, "s.toml")?;
    let options = EventStreamOptions::from_config(&config)?;
    Ok((config, options))
}

fn parse(text: &str) -> (StreamConfig, EventStreamOptions) {
    read(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn refused(text: &str) -> String {
    match read(text) {
        Err(StreamError::Config(ConfigError::Refused { place, reason })) => format!("{place}: {reason}"),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was taken: {text}"),
    }
}

#[track_caller]
fn refuses(text: &str, line: usize, words: &[&str]) {
    let found = refused(text);
    assert!(found.starts_with(&format!("s.toml:{line}: ")), "line {line}: {found}");
    assert!(words.iter().all(|word| found.contains(word)), "{words:?}: {found}");
    assert!(!found.contains('\n'), "one line: {found}");
}

/// Without the random token.
fn everything((config, stream): &(StreamConfig, EventStreamOptions)) -> String {
    let EventStreamOptions {
        directory,
        tier,
        persistence,
        feed_session,
        window_bytes,
        mtu,
        frame_length_max,
        message_length_max,
        fragments_bytes_max,
        session_expiry,
        throttle,
        state_interval_frames,
        state_interval_min,
        plan,
        optimize_for,
        sequencer_cpus,
        ..
    } = stream;
    let node =
        NodeSettings { publisher: PublisherOptions { token: 0, ..config.node.publisher }, ..config.node.clone() };
    format!(
        "{directory:?} {tier} {persistence:?} {feed_session} {window_bytes} {mtu:?} {frame_length_max} {message_length_max} \
         {fragments_bytes_max} {session_expiry:?} {throttle:?} {state_interval_frames} {state_interval_min:?} {plan} {optimize_for} \
         {sequencer_cpus:?} {:?} {:?} {:?} {node:?}",
        config.transport,
        stream.packets.as_ref().map(|network| (
            network.command,
            network.request,
            network.groups.clone(),
            network.sessions.clone(),
            network.batch,
            network.packet_length_max,
            network.heartbeat_interval_ns
        )),
        stream.tcp
    )
}

#[test]
fn example_shows_keys_and_defaults() {
    let example = parse(EXAMPLE);
    assert_eq!(everything(&example), everything(&parse("[stream]\ndirectory = \"stream\"")));
    for table in ["stream", "journal", "threads", "throttle", "batch", "network", "node"] {
        let found = refused(&format!("[{table}]\nsurprise = 1"));
        let missing = "is expected";
        assert!(!found.contains(missing), "{found}");
        let allowed = found.split("unknown; ").nth(1).unwrap().split(" are allowed").next().unwrap();
        let shown = EXAMPLE.split(&format!("\n[{table}]")).nth(1).unwrap();
        let shown = shown.split("\n[").next().unwrap();
        for key in allowed.split(", ") {
            let is_shown = shown.lines().any(|line| line.trim_start_matches('#').starts_with(&format!("{key} = ")));
            assert!(is_shown, "{key} of [{table}] is not shown");
        }
    }
    // A key without a default is commented out.
    let udp: String = EXAMPLE.replace("transport = \"shared-memory\"", "transport = \"multicast\"");
    let uncommented: Vec<&str> = udp
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '['))
                .unwrap_or(line)
        })
        .filter(|line| !line.starts_with("frame_length_max"))
        .collect();
    let (config, options) = parse(&uncommented.join("\n"));
    assert!(options.throttle.is_some() && config.node.publisher.throttle.is_some());
    let network = options.packets.unwrap();
    assert_eq!((network.groups.len(), network.sessions.users.len()), (2, 1));
}

#[test]
fn every_key_sets_its_option() {
    let (config, stream) = parse(
        r#"
[stream]
directory = "/var/lib/orders"
tier = "sync"
transport = "multicast"
feed_session = "MONDAY"
frame_length_max = 1_000
message_length_max = "1 MiB"
fragments = "8 MiB"
window = "4 MiB"
session_expiry = "2 h"
state_interval_frames = 5000
state_interval_min = "2 s"
[journal]
segment_length = "64 MiB"
zero_initial = true
zero_first = true
flush = "write"
write_buffer = "16 KiB"
retention_bytes = "10 GiB"
retention_age = "7 d"
[threads]
plan = "max"
optimize_for = "throughput"
sequencer_cpus = "2-3"
[throttle]
frames_per_s = 1000
burst_frames = 10
[batch]
node = false
sequencer = false
[network]
command = "10.0.0.1:4001"
request = "10.0.0.1:4002"
groups = ["239.1.1.1:4003", "239.1.1.2:4003"]
interface = "eth0"
hops = 3
segmentation = "off"
packet_length_max = 1200
heartbeat_interval = "0.5 s"
silence = "5 s"
report_interval = 0.1
nodes_max = 7
[[user]]
name = "anna"
password = "secret"
[[user]]
name = "bert"
password = "geheim"
[node]
start = 17
window_messages = 100
frames_per_s = 2000
kept = "2 MiB"
resend_interval = "50 ms"
username = "anna"
password = "secret"
"#,
    );
    assert_eq!(
        (config.transport.name(), stream.directory.as_deref()),
        ("multicast", Some(Path::new("/var/lib/orders")))
    );
    assert_eq!((stream.tier, stream.feed_session.as_str()), (Tier::Sync, "MONDAY"));
    assert_eq!(
        (stream.frame_length_max, stream.message_length_max, stream.fragments_bytes_max),
        (1000, 1 << 20, 8 << 20)
    );
    assert_eq!((stream.window_bytes, stream.session_expiry), (4 << 20, Duration::from_secs(7200)));
    assert_eq!(
        (stream.state_interval_frames, stream.state_interval_min, stream.plan, stream.optimize_for),
        (5000, Duration::from_secs(2), PlanKind::Max, OptimizeFor::Throughput)
    );
    assert_eq!(stream.sequencer_cpus.unwrap().iter().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(stream.throttle, Some(Throttle { frames_per_s: 1000, burst_frames: 10 }));
    let persistence = &stream.persistence;
    assert_eq!((persistence.segment_length_bytes, persistence.zeroing), (64 << 20, Zeroing::All));
    assert_eq!(persistence.retention.bytes_max, Some(10 << 30));
    assert_eq!(persistence.retention.age_max_ns, Some(7 * 86_400_000_000_000));
    let network = stream.packets.unwrap();
    assert_eq!(
        (network.command.to_string(), network.request.to_string()),
        ("10.0.0.1:4001".into(), "10.0.0.1:4002".into())
    );
    assert_eq!(network.groups, ["239.1.1.1:4003".parse().unwrap(), "239.1.1.2:4003".parse().unwrap()]);
    let Carrier::Udp { interface, hops, segmentation } = network.carrier else { panic!("it is UDP") };
    assert_eq!((interface, hops, segmentation), (Interface::Name("eth0".into()), 3, Segmentation::Off));
    assert_eq!((network.batch, network.packet_length_max, network.heartbeat_interval_ns), (false, 1200, 500_000_000));
    assert_eq!((network.sessions.clients_max, network.sessions.heartbeat_interval_ns), (7, 100_000_000));
    let names: Vec<_> = network.sessions.users.iter().map(|user| user.username.as_str().to_owned()).collect();
    assert_eq!(names, ["anna", "bert"]);
    let node = &config.node;
    assert_eq!((node.start, node.batch, node.silence_ns_max), (Start::Sequence(17), false, 5_000_000_000));
    assert_eq!((node.username.as_str(), node.password.as_str()), ("anna", "secret"));
    let StreamNodeOptions { start, publisher: Some(publisher), .. } = config.node_options(Some(9)) else {
        panic!("it publishes")
    };
    assert_eq!((start, publisher.token, publisher.window_messages), (Start::Sequence(17), 9, 100));
    assert_eq!((publisher.kept_bytes_max, publisher.resend_interval_ns), (2 << 20, 50_000_000));
    assert_eq!(publisher.throttle.unwrap().frames_per_s, 2000);
    assert_ne!(config.node_options(None).publisher.unwrap().token, config.node_options(None).publisher.unwrap().token);
    assert_eq!(config.reading_options(), StreamNodeOptions::reading(Start::Sequence(17)));
}

#[test]
fn invalid_values_are_refused() {
    let at = |table: &str, line: &str| format!("\n[stream]\ndirectory = \"d\"\n\n[{table}]\n{line}\n");
    for (table, line, words) in [
        ("journal", "segment_length = \"many\"", &["journal.segment_length: \"many\" was found", "64 KiB"][..]),
        ("journal", "segment_length = 0", &["0 was found", "1 B to"]),
        ("journal", "segment_length = 4096", &["journal.segment_length", "at least one frame"]),
        ("journal", "zero_initial = \"yes\"", &["\"yes\" was found", "true and false"]),
        ("journal", "retention_age = \"7 weeks\"", &["\"7 weeks\" was found", "200 ms"]),
        ("journal", "retention_age = 0", &["0, which is 0 s, was found", "1 s to"]),
        ("threads", "plan = \"fast\"", &["\"fast\" was found", "\"min\", \"default\", \"max\""]),
        ("threads", "optimize_for = 1", &["1 was found", "\"latency\", \"throughput\""]),
        ("threads", "sequencer_cpus = \"all\"", &["threads.sequencer_cpus"]),
        ("throttle", "frames_per_s = 0", &["0 was found", "1 to 4294967295"]),
        ("throttle", "frames_per_s = -5", &["-5 was found"]),
        ("throttle", "burst_frames = 5", &["throttle.burst_frames", "frames_per_s is missing"]),
        ("batch", "node = 1", &["1 was found", "true and false"]),
        ("network", "command = \"localhost\"", &["\"localhost\" was found", "IP address with a port"]),
        ("network", "command = \"127.0.0.1:0\"", &["IP address with a port"]),
        ("network", "hops = 256", &["256 was found", "0 to 255"]),
        ("network", "segmentation = \"on\"", &["\"on\" was found", "\"auto\", \"off\""]),
        ("network", "packet_length_max = 100", &["100 was found", "256 B to"]),
        ("network", "groups = [\"239.0.0.1:9\"]", &["\"multicast\" only", "\"shared-memory\""]),
        ("node", "start = 0", &["0 was found", "\"first\", \"live\" and sequences from 1"]),
        ("node", "start = \"late\"", &["\"late\" was found"]),
        ("node", "window_messages = 65537", &["65537 was found", "1 to 65536"]),
        ("node", "kept = \"1 MiB\"", &["node.kept", "stream.message_length_max"]),
        ("node", "username = \"too long\"", &["at most 6 characters", "8 were found"]),
        ("node", "resend_interval = true", &["true was found"]),
    ] {
        refuses(&at(table, line), 6, words);
    }
    let at = |line: &str| format!("[stream]\ndirectory = \"d\"\n# a comment\n{line}\n");
    for (line, words) in [
        (
            "tier = \"quorum\"",
            &["stream.tier: \"quorum\" was found", "\"memory\", \"journal\", \"sync\" are allowed"][..],
        ),
        ("transport = \"pigeon\"", &["\"pigeon\" was found", "\"shared-memory\", \"udp\", \"multicast\", \"tcp\""]),
        ("feed_session = \"two words\"", &["printable ASCII", "byte 3"]),
        ("feed_session = \"\"", &["1 to 10 characters"]),
        ("mtu = 575", &["stream.mtu: 575 was found", "576 B to 65535 B"]),
        ("mtu = 65536", &["stream.mtu: 65536 was found"]),
        ("mtu = \"jumbo\"", &["stream.mtu: \"jumbo\" was found", "number of bytes"]),
        ("frame_length_max = 1377\nmtu = 1500", &["an mtu of 1500", "at most 1376"]),
        ("frame_length_max = 100", &["100 was found", "128 B to 1 MiB"]),
        ("frame_length_max = 1.5", &["1.5 was found", "number of bytes"]),
        ("message_length_max = \"40 MiB\"", &["stream.message_length_max", "half of the window"]),
        ("fragments = 4096", &["stream.fragments", "message"]),
        ("window = \"5 MiB\"", &["\"5 MiB\" was found", "power of two"]),
        ("window = \"1 KiB\"", &["64 KiB to 64 GiB"]),
        ("session_expiry = \"1 ms\"", &["1 s to"]),
        ("session_expiry = 2024-01-01", &["a date was found"]),
        ("state_interval_frames = 0", &["0 was found"]),
        ("speed = 9", &["stream.speed: unknown", "directory, tier, transport", "in [stream]"]),
    ] {
        refuses(&at(line), 4, words);
    }
}

#[test]
fn conflicts_are_refused_at_their_key() {
    refuses("", 1, &["stream.directory: missing"]);
    refuses("\n[stream]\ntier = \"memory\"", 2, &["stream.directory: missing", "shared-memory"]);
    refuses(&UDP.replace("directory = \"d\"", "tier = \"journal\""), 1, &["stream.directory", "tier journal"]);
    refuses(
        &UDP.replace("directory = \"d\"", "directory = \"d\"\nframe_length_max = 1_385"),
        3,
        &["frame_length_max", "at most 1376"],
    );
    refuses(&UDP.replace("request = \"127.0.0.1:2\"\n", ""), 4, &["network.request: missing"]);
    refuses(&UDP.replace(":2\"", ":1\""), 6, &["network.request", "another port"]);
    refuses(&UDP.replace("127.0.0.1:2", "[::1]:2"), 6, &["network.request", "family"]);
    refuses(&UDP.replace("127.0.0.1:1", "0.0.0.0:1"), 5, &["network.command", "0.0.0.0:1 was found"]);
    refuses(&format!("{UDP}groups = [\"239.0.0.1:9\"]"), 7, &["network.groups", "\"multicast\" only", "\"udp\""]);
    refuses(&format!("{UDP}interface = \"::1\""), 7, &["network.interface", "family"]);
    refuses(
        &format!("{UDP}heartbeat_interval = \"2 s\"\nsilence = \"3 s\""),
        8,
        &["network.silence: 3000 ms", "4000 ms"],
    );
    refuses(
        &UDP.replace("directory = \"d\"", "directory = \"d\"\nframe_length_max = 65_001"),
        3,
        &["frame_length_max"],
    );
    refuses(&TCP.replace("directory = \"d\"", "directory = \"d\"\nframe_length_max = 65_001"), 3, &["at most 65000"]);
    refuses(&TCP.replace("rewind", "request"), 4, &["network.rewind: missing"]);
    refuses(&TCP.replace(":2", ":1"), 6, &["network.rewind", "command port"]);
    refuses(&TCP.replace("127.0.0.1:2", "[::1]:2"), 6, &["network.rewind", "family"]);
    refuses(&format!("{TCP}silence = \"1 s\""), 7, &["network.silence", "2000 ms"]);
    refuses(&format!("{TCP}groups = [\"239.0.0.1:9\"]"), 7, &["network.groups", "\"tcp\""]);
    refuses(MULTICAST, 4, &["network.groups: missing"]);
    refuses(&format!("{MULTICAST}groups = []"), 7, &["network.groups", "one or two"]);
    refuses(&format!("{MULTICAST}groups = [\"10.0.0.1:9\"]"), 7, &["10.0.0.1:9 is no multicast address"]);
    refuses(&format!("{MULTICAST}groups = \"239.0.0.1:9\""), 7, &["\"239.0.0.1:9\" was found", "a list"]);
    let group = "\"239.0.0.1:9\"";
    refuses(&format!("{MULTICAST}groups = [{group}, {group}]"), 7, &["there twice"]);
    refuses(&format!("{MULTICAST}groups = [{group}, \"239.0.0.2:9\", \"239.0.0.3:9\"]"), 7, &["not 3 groups"]);
    refuses(&format!("{MULTICAST}groups = [\"[ff15::1]:9\"]"), 7, &["family"]);
    let user = |name: &str, password: &str| format!("[[user]]\nname = \"{name}\"\npassword = \"{password}\"\n");
    refuses(&format!("{UDP}{}", user("", "x")), 8, &["user.name", "1 to 6"]);
    refuses(&format!("{UDP}{}", user("a", "longer than ten")), 9, &["user.password", "at most 10"]);
    assert!(
        !refused(&format!("{UDP}{}", user("a", "longer than ten"))).contains("longer than"),
        "a password is not shown"
    );
    refuses(&format!("{UDP}{}{}", user("a", "x"), user("a", "y")), 7, &["\"a\" is there twice"]);
    refuses(&format!("{UDP}[[user]]\nname = \"a\"\n"), 7, &["user.password: missing"]);
    refuses(&format!("[stream]\ndirectory = \"d\"\n{}", user("a", "x")), 3, &["user", "permissions"]);
}

#[test]
fn tcp_carries_stream_or_rewind() {
    let address = |text: &str| Some(text.parse().unwrap());
    for (text, by_packets, rewind) in [
        (UDP, true, None),
        (&format!("{UDP}rewind = \"127.0.0.1:3\""), true, address("127.0.0.1:3")),
        (TCP, false, address("127.0.0.1:2")),
        ("[stream]\ndirectory = \"d\"\n[network]\ncommand = \"127.0.0.1:1\"\nrewind = \"127.0.0.1:3\"", false, None),
    ] {
        let (_, stream) = parse(text);
        assert_eq!((stream.packets.is_some(), stream.tcp.map(|tcp| tcp.rewind)), (by_packets, rewind), "{text}");
    }
}

#[test]
fn frame_limit_follows_transport() {
    assert_eq!(parse("[stream]\ndirectory = \"d\"").1.frame_length_max, 64 << 10);
    assert_eq!(parse(UDP).1.frame_length_max, 1_376);
    assert_eq!(parse(TCP).1.frame_length_max, 65_000);
    let stated = |text: &str, mtu: &str| parse(&text.replace("directory", &format!("mtu = {mtu}\ndirectory"))).1;
    for (text, mtu, frame, packet) in [
        ("[stream]\ndirectory = \"d\"", "9_000", 8_876, None),
        (UDP, "1_500", 1_376, Some(1_400)),
        (UDP, "9_000", 8_876, Some(8_904)),
        (MULTICAST_GROUP, "65_535", 65_411, Some(65_440)),
        (TCP, "9_000", 8_876, None),
        (TCP, "65_535", 65_000, None),
    ] {
        let options = stated(text, mtu);
        let found = options.packets.as_ref().map(|packets| packets.packet_length_max);
        assert_eq!((options.frame_length_max, found), (frame, packet), "{text} {mtu}");
    }
    let shorter = UDP.replace("[network]", "[network]\npacket_length_max = 1_000");
    assert_eq!(stated(&shorter, "9_000").frame_length_max, 976);
    refuses(
        &UDP.replace("directory", "mtu = 1_500\ndirectory")
            .replace("[network]", "[network]\npacket_length_max = 1_401"),
        6,
        &["network.packet_length_max", "an mtu of 1500", "at most 1400"],
    );
    let longer = "[network]\npacket_length_max = 9000";
    assert_eq!(
        parse(&UDP.replace("[network]", longer).replace("directory", "frame_length_max = 8960\ndirectory"))
            .1
            .frame_length_max,
        8_960
    );
}

#[test]
fn message_limit_follows_small_window() {
    let (_, options) = parse("[stream]\ndirectory = \"orders\"\nwindow = \"8 MiB\"");
    assert_eq!(options.window_bytes, 8 << 20);
    assert!((4_100_000..4 << 20).contains(&options.message_length_max), "{}", options.message_length_max);
}
