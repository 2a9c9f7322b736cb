//! Tests of every key, and of every refusal with its line.

use super::*;

const EXAMPLE: &str = include_str!("../../../../docs/guides/cluster.toml");
const THREE: &str = "[cluster]\nname = \"c\"\nmember = 1\n[stream]\ndirectory = \"d\"\n\
                     [[member]]\nid = 3\naddresses = [\"h3:1\"]\n[[member]]\nid = 1\naddresses = [\"127.0.0.1:1\"]\n\
                     [[member]]\nid = 2\naddresses = [\"h-2.example:1\", \"[::1]:2\"]\n";

#[track_caller]
fn refuses(text: &str, line: usize, words: &[&str]) {
    let found = match ClusterConfig::parse(text, "c.toml") {
        Err(StreamError::Config(ConfigError::Refused { place, reason })) => format!("{place}: {reason}"),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("the text was accepted: {text}"),
    };
    assert!(found.starts_with(&format!("c.toml:{line}: ")), "line {line}: {found}");
    assert!(words.iter().all(|word| found.contains(word)), "{words:?}: {found}");
    assert!(!found.contains('\n'), "one line: {found}");
}

#[test]
fn members_are_sorted_by_number() {
    let config = ClusterConfig::parse(THREE, "c.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.members.iter().map(|each| each.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((config.voters(), config.own().id, config.incarnation), (3, 1, 1));
    assert_eq!(config.event_stream_options().tier, Tier::Quorum);
    assert_eq!(config.others().map(|each| each.id).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(config.members[1].addresses, ["h-2.example:1", "[::1]:2"]);
    assert_eq!((config.election, config.discovery, config.tls), (ElectionConfig::default(), None, None));
    assert!(config.members.iter().all(|each| each.kind == MemberKind::Full));
}

#[test]
fn bad_member_number_is_refused() {
    for (key, line) in [("member = 1", 3), ("id = 3", 7)] {
        let name = key.split(' ').next().unwrap_or_default();
        refuses(&THREE.replacen(key, &format!("{name} = {}", NUMBER_MAX + 1), 1), line, &[&NUMBER_MAX.to_string()]);
    }
    let most = THREE.replace("id = 3", &format!("id = {NUMBER_MAX}"));
    assert!(ClusterConfig::parse(&most, "c.toml").is_ok());
}

#[test]
fn warning_counts_failures() {
    let of = |text: &str| ClusterConfig::parse(text, "c.toml").unwrap_or_else(|error| panic!("{error}")).warning();
    assert_eq!(of(THREE), None);
    let learner = format!("{THREE}kind = \"learner\"\n");
    assert!(of(&learner).is_some_and(|text| text.contains("two members vote") && text.contains("--force-single")));
    let witness = format!("{THREE}kind = \"witness\"\n");
    assert_eq!(of(&witness), None);
    let alone =
        "[cluster]\nname = \"c\"\nmember = 1\n[stream]\ndirectory = \"d\"\n[[member]]\nid = 1\naddresses = [\"h:1\"]\n";
    assert!(of(alone).is_some_and(|text| text.contains("one member votes")));
}

#[test]
fn shared_memory_excludes_tls() {
    let shared = THREE.replace("\"[::1]:2\"", "\"shm:/run/c/2\"");
    let config = ClusterConfig::parse(&shared, "c.toml").unwrap_or_else(|error| panic!("{error}"));
    let member = &config.members[1];
    assert_eq!(member.shared_memory_path(), Some("/run/c/2".into()));
    assert_eq!(member.network_addresses().collect::<Vec<_>>(), ["h-2.example:1"]);
    assert_eq!(config.own().shared_memory_path(), None);
    refuses(&shared.replace("/run/c/2", "run"), 14, &["member.addresses", "absolute path"]);
    refuses(&shared.replace("/run/c/2", &format!("/{}", "a".repeat(120))), 14, &["107 bytes"]);
    let tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\nauthority = \"a\"\n";
    refuses(&format!("{shared}{tls}"), 6, &["member 2", "shared memory", "TLS alone"]);
    refuses(&format!("{THREE}{tls}").replace("\"c\"\nmember", "\"a name\"\nmember"), 2, &["cluster.name", "DNS name"]);
}

#[test]
fn heartbeat_default_is_derived() {
    for (timeout, expected_ms) in [("300 ms", 100), ("60 s", 100), ("150 ms", 50), ("1 ms", 0)] {
        let text = format!("{THREE}[election]\ntimeout = \"{timeout}\"\n");
        let election = ClusterConfig::parse(&text, "c.toml").unwrap_or_else(|error| panic!("{error}")).election;
        assert_eq!(election.heartbeat_interval.as_millis(), expected_ms, "{timeout}");
        assert!(3 * election.heartbeat_interval <= election.timeout, "{timeout}");
    }
}

#[test]
fn guide_shows_every_key() {
    let config = ClusterConfig::parse(EXAMPLE, "cluster.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.election, ElectionConfig::default());
    assert_eq!((config.voters(), config.members.len(), config.incarnation), (3, 3, 1));
    assert_eq!(config.replication, ReplicationConfig::default());
    // Keys without a default are commented out; uncommented, they must be valid too.
    let uncommented: String =
        EXAMPLE.lines().map(|line| line.strip_prefix("#~ ").unwrap_or(line)).flat_map(|line| [line, "\n"]).collect();
    let uncommented = ["send", "dispatch", "replies"].iter().fold(uncommented, |text, thread| {
        text.replace(&format!("detached_{thread} = false"), &format!("detached_{thread} = true"))
    });
    assert_ne!(uncommented, EXAMPLE);
    let config = ClusterConfig::parse(&uncommented, "cluster.toml").unwrap_or_else(|error| panic!("{error}"));
    assert!(config.discovery.is_some() && config.tls.is_some());
    assert_eq!(config.clients.as_ref().map(|port| port.sessions.users.len()), Some(1));
    assert_eq!(config.event_stream_options().clients, config.clients);
    assert!(config.service.on_panic.is_some() && config.service.on_unhandled.is_some());
    assert!(config.service.snapshot_interval_frames.is_some());
    let options = config.event_stream_options();
    let masks =
        [config.replication.send_cpus, options.service_cpus, options.member_threads.sender_cpus, options.sync_cpus];
    assert_eq!(
        masks.map(|mask| mask.map(|mask| mask.to_string())),
        ["[2]", "[3]", "[4]", "[5]"].map(|mask| Some(mask.to_owned()))
    );
}

#[test]
fn thread_settings_are_applied() {
    let text = format!(
        "{THREE}[replication]\nspin = true\ndetached_replies = true\nreply_queue_depth = 7\nflush_on_commit = true\n"
    );
    let options =
        ClusterConfig::parse(&text, "c.toml").unwrap_or_else(|error| panic!("{error}")).event_stream_options();
    let threads = options.member_threads;
    assert!(
        threads.spins && threads.detached_sender && !threads.detached_service && options.persistence.flush_on_commit
    );
    assert_eq!(threads.send_queue_depth, 7);
}

#[test]
fn invalid_replication_is_refused() {
    let refuse = |text: &str, line, words: &[&str]| refuses(&format!("{THREE}[replication]\n{text}\n"), line, words);
    refuse("spin = 1", 16, &["replication.spin"]);
    refuse("send_cpus = \"1\"", 16, &["replication.send_cpus", "detached_send = true"]);
    refuse("dispatch_cpus = \"1\"", 16, &["detached_dispatch = true"]);
    refuse("reply_cpus = \"1\"", 16, &["detached_replies = true"]);
    refuse("detached_send = true\nsend_cpus = \"one\"", 17, &["replication.send_cpus"]);
    refuse("reply_queue_depth = 0", 16, &["replication.reply_queue_depth"]);
    refuse("threads = 3", 16, &["unknown", "spin, detached_send"]);
}

#[test]
fn errors_name_their_line() {
    let refused = |from: &str, to: &str, line, words: &[&str]| {
        assert!(THREE.contains(from), "{from}");
        refuses(&THREE.replacen(from, to, 1), line, words);
    };
    refused("name = \"c\"", "name = \"\"", 2, &["cluster.name", "1 to 64 bytes"]);
    refused("name = \"c\"", &format!("name = \"{}\"", "n".repeat(65)), 2, &["cluster.name"]);
    refused("name = \"c\"\n", "", 1, &["cluster.name", "missing"]);
    refused("member = 1\n", "", 1, &["cluster.member", "missing"]);
    refused("member = 1", "member = 0", 3, &["cluster.member", "0 was found"]);
    refused("member = 1", "member = 9", 3, &["no member 9", "1, 2, 3"]);
    refused("member = 1", "member = 1\nincarnation = 0", 4, &["cluster.incarnation"]);
    refused("member = 1", "member = 1\nmembers = 3", 4, &["unknown", "name, member, join, incarnation, tier"]);
    refused("id = 3", "id = 1", 6, &["two members 1"]);
    refused("id = 3", "id = -1", 7, &["id", "whole numbers"]);
    refused("id = 3\n", "", 6, &["id", "missing"]);
    refused("\"h3:1\"", "\"h3\"", 8, &["addresses", "\"h3\" was found", "host with a port"]);
    refused("\"h3:1\"", "\"h3:0\"", 8, &["addresses"]);
    refused("\"h3:1\"", "\"h 3:1\"", 8, &["addresses"]);
    refused("\"h3:1\"", "\"h3:70000\"", 8, &["addresses"]);
    refused("\"h3:1\"", "", 6, &["member 3 has no addresses", "[discovery]"]);
    refused("addresses = [\"h3:1\"]", "address = \"h3:1\"", 8, &["unknown", "id, addresses, kind"]);
    refused("id = 3", "id = 3\nkind = \"primary\"", 8, &["kind", "\"full\", \"witness\", \"learner\""]);
    let near = format!("{THREE}[election]\ntimeout = \"50 ms\"\nheartbeat_interval = \"17 ms\"\n");
    refuses(&near, 16, &["election.timeout", "three times"]);
    refuses(&format!("{THREE}[election]\ntimeout = \"2 min\"\n"), 16, &["election.timeout", "1 ms to 1 min"]);
    refuses(&format!("{THREE}[election]\nheartbeats = 3\n"), 16, &["unknown", "timeout, heartbeat_interval"]);
    refuses(&format!("{THREE}[discovery]\ngroup = \"239.0.0.1:5\"\n"), 15, &["discovery.interface", "missing"]);
    refuses(&format!("{THREE}[discovery]\ninterface = \"lo\"\n"), 15, &["discovery.group", "missing"]);
    refuses(&format!("{THREE}[discovery]\ninterface = \"lo\"\ngroup = \"10.0.0.1:5\"\n"), 17, &["multicast"]);
    refuses(&format!("{THREE}[tls]\nkey = \"k\"\ncertificate = \"c\"\n"), 15, &["tls.authority", "missing"]);
    refuses(&format!("{THREE}[tls]\nkey = \"\"\ncertificate = \"c\"\nauthority = \"a\"\n"), 16, &["tls.key"]);
    refuses(&format!("{THREE}[clients]\naddress = \"0.0.0.0:1\"\n"), 16, &["clients.address", "of this machine"]);
    refuses(&format!("{THREE}[clients]\naddress = \"192.0.2.1:0\"\n"), 16, &["clients.address"]);
    refuses(&format!("{THREE}[clients]\nport = 1\n"), 16, &["unknown"]);
    refuses(&format!("{THREE}[clients]\nconnections_max = 1\n"), 15, &["clients.address", "missing"]);
    let clients = format!("{THREE}[clients]\naddress = \"192.0.2.1:1\"\n");
    refuses(&format!("{clients}username = \"u\"\n"), 15, &["clients.password", "missing"]);
    refuses(&format!("{clients}password = \"p\"\n"), 15, &["clients.username", "missing"]);
    refuses(&format!("{clients}username = \"\"\npassword = \"p\"\n"), 17, &["clients.username", "1 to 6"]);
    refuses(&format!("{clients}username = \"seventy\"\npassword = \"p\"\n"), 17, &["clients.username"]);
    refuses(&format!("{clients}connections_max = 0\n"), 17, &["clients.connections_max"]);
    let witnesses = THREE.replace("[\"h3:1\"]\n", "[\"h3:1\"]\nkind = \"witness\"\n");
    let witnesses = witnesses.replace("[\"127.0.0.1:1\"]\n", "[\"127.0.0.1:1\"]\nkind = \"learner\"\n");
    refuses(&format!("{witnesses}kind = \"witness\"\n"), 6, &["nobody could lead"]);
    refuses("[cluster]\nname = \"c\"\nmember = 1\n[stream]\ndirectory = \"d\"\n", 1, &["member: missing"]);
    refused("member = 1", "member = 1\ntier = \"journal\"", 4, &["cluster.tier", "\"quorum\", \"quorum-sync\""]);
    refused("directory = \"d\"", "directory = \"d\"\ntier = \"sync\"", 6, &["stream.tier", "cluster.tier"]);
    refused("directory = \"d\"", "directory = \"d\"\nwindow = 3", 6, &["stream.window"]);
}

#[test]
fn others_may_be_discovered() {
    let text = format!("{THREE}[discovery]\ninterface = \"lo\"\ngroup = \"239.0.0.1:5\"\n");
    let text = text.replace("addresses = [\"h3:1\"]\n", "");
    let config = ClusterConfig::parse(&text, "c.toml").unwrap_or_else(|error| panic!("{error}"));
    assert!(config.members[2].addresses.is_empty() && config.discovery.is_some());
    refuses(&text.replace("addresses = [\"127.0.0.1:1\"]\n", ""), 6, &["member 1 has no addresses"]);
}
