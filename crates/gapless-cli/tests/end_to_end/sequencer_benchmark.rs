#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process;
use crate::bench_process::{LongRun, processes_of, rows};
use crate::program::{names, run};
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::until_some;
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Datagrams, Interface, Segmentation, UdpOptions, UdpSocket};
use gapless_wire::soup::Field;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn report(words: &[&str]) -> Value {
    let words = [&["--quick", "--hlog", "out.hlog"], words].concat();
    let (report, table) = bench_process::report("sequencer", &words, &["out.hlog", "out.json"]);
    for words in ["CoralSequencer", "382 ns", "a short run"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    for row in rows(&report) {
        assert_eq!((&row["verified"], &row["lost"], &row["duplicated"]), (&true.into(), &0.into(), &0.into()), "{row}");
        assert!(row["peak_memory_bytes"].as_u64().unwrap() > 0, "{row}");
    }
    report
}

/// Transport, bytes, and whether packets may hold several messages.
fn shapes(report: &Value, mode: &str) -> Vec<(String, u64, Option<bool>)> {
    let of_mode = rows(report).iter().filter(|row| row["config"]["mode"] == mode);
    of_mode
        .map(|row| {
            let config = &row["config"];
            let transport = config["transport"].as_str().unwrap().to_owned();
            (transport, config["payload_bytes"].as_u64().unwrap(), config["batch_node"].as_bool())
        })
        .collect()
}

#[track_caller]
fn check_latencies(report: &Value) {
    for row in rows(report).iter().filter(|row| row["config"]["mode"] == "latency") {
        assert_eq!(row["latency_ns"]["count"], 2_000, "{row}");
        let slices = row["slices"].as_array().unwrap();
        let greatest: Vec<_> = slices.iter().map(|slice| slice["greatest_ns"].as_u64().unwrap()).collect();
        assert!(greatest.len() == 6 && greatest.is_sorted(), "{row}");
        assert!(row["floor_ratio"].is_number(), "{row}");
        let bytes = row["config"]["payload_bytes"].as_u64().unwrap();
        let (floor, added) = match row["config"]["transport"].as_str().unwrap() {
            "shared-memory" => ("shm_ping_pong", 64),
            "tcp" => ("tcp_round_trip", 64),
            _ => ("udp_round_trip", 86),
        };
        assert_eq!(row["floor_name"], floor);
        let is_it = |row: &Value| row["name"] == floor && row["payload_bytes"] == bytes + added;
        assert!(report["floor"].as_array().unwrap().iter().any(is_it), "{floor} of {bytes} + {added} bytes");
    }
}

#[track_caller]
fn check_throughputs(report: &Value, has_sequencer: bool) {
    for row in rows(report).iter().filter(|row| row["config"]["mode"] == "throughput") {
        assert_eq!(row["sent"], 15_000, "{row}");
        assert!(row["throughput_per_s"].as_f64().unwrap() > 0.0 && row["delivered_per_s"].as_f64().unwrap() > 0.0);
        let roles = row["roles"].as_array().unwrap();
        let named: Vec<_> = roles.iter().map(|role| role["role"].as_str().unwrap()).collect();
        assert_eq!(named, ["sequencer", "node 1", "node 2", "node 3"]);
        assert_eq!(roles[0]["handled"], 15_000, "{row}");
        assert_eq!(roles[0].get("cpu_ns_per_message").is_some(), has_sequencer, "{row}");
        for node in &roles[1..] {
            assert_eq!((&node["sent"], &node["handled"]), (&5_000.into(), &15_000.into()), "{row}");
        }
    }
}

#[test]
fn every_row_is_there_and_verified() {
    let report = report(&[]);
    let transports = ["shared-memory", "udp", "multicast", "tcp"];
    let expected: Vec<_> = transports
        .iter()
        .flat_map(|transport| [256, 1024].map(|bytes| ((*transport).to_owned(), bytes, None)))
        .collect();
    assert_eq!(shapes(&report, "latency"), expected);
    let shape = |transport: &str, bytes, batch| (transport.to_owned(), bytes, batch);
    let expected = [
        shape("shared-memory", 256, None),
        shape("shared-memory", 64, None),
        shape("multicast", 256, Some(true)),
        shape("multicast", 64, Some(true)),
        shape("multicast", 256, Some(false)),
        shape("multicast", 1312, Some(false)),
        shape("multicast", 1400, Some(false)),
        shape("multicast", 1400, Some(false)),
        shape("tcp", 256, None),
        shape("tcp", 64, None),
    ];
    assert_eq!(shapes(&report, "throughput"), expected);
    assert_eq!(
        shapes(&report, "rewind"),
        [shape("shared-memory", 64, None), shape("udp", 64, None), shape("tcp", 64, None)]
    );
    assert!(rows(&report).iter().all(|row| row["config"]["tier"] == "journal" && row["config"]["cpu"].is_string()));
    let stated = rows(&report).iter().filter(|row| row["config"]["mtu_bytes"] == 9_000).count();
    assert_eq!(stated, 1, "1,400 bytes in one packet");
    check_latencies(&report);
    check_throughputs(&report, true);
    for rewind in rows(&report).iter().filter(|row| row["config"]["mode"] == "rewind") {
        assert!(rewind["sent"].as_u64().unwrap() >= 20_000, "{rewind}");
        assert!(rewind["latency_before_ns"]["count"].as_u64().unwrap() > 0, "{rewind}");
    }
}

#[test]
fn options_select_rows() {
    let report = report(&["--only", "latency,throughput", "--transport", "udp", "--payload", "32,1400"]);
    let shape = |bytes, batch| ("udp".to_owned(), bytes, batch);
    assert_eq!(shapes(&report, "latency"), [shape(32, None), shape(1400, None)]);
    assert_eq!(shapes(&report, "throughput"), [shape(32, Some(true)), shape(1400, Some(true))]);
    let directory = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("--only rewind --stream .", "nothing is left"),
        ("--payload 8", "8"),
        ("--stream . --transport udp", "--transport"),
        ("--command 127.0.0.1:9001", "--request"),
        ("--stream . --username anna --password swordfish", "--username"),
        ("--stream . --request 127.0.0.1:9002", "--request"),
        ("--stream . --rewind 127.0.0.1:9003", "--rewind"),
        ("--username anna --password swordfish", "--command"),
        ("--command 127.0.0.1:9001 --request 127.0.0.1:9002 --username anna", "--password"),
        ("--command 127.0.0.1:9001 --request 127.0.0.1:9002 --username annabella --password x", "6"),
        ("--only speed", "latency, throughput, rewind"),
        ("--mtu 575", "576 to 65535"),
        ("--mtu jumbo", "number of bytes"),
        ("--quick --full", "--full"),
    ] {
        let line: Vec<&str> = ["bench", "sequencer"].into_iter().chain(words.split(' ')).collect();
        let error = run(directory.path(), &line).error(2);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn stated_mtu_is_that_of_every_row() {
    let mtus = ["1500", "65535"];
    let report = report(&["--payload", "1400", "--mtu", &mtus.join(","), "--transport", "shared-memory,udp,tcp"]);
    let of_mode = |mode: &str| rows(&report).iter().filter(|row| row["config"]["mode"] == mode).count();
    assert_eq!((of_mode("latency"), of_mode("throughput"), of_mode("rewind")), (6, 6, 6));
    for (index, row) in rows(&report).iter().enumerate() {
        assert_eq!(row["config"]["mtu_bytes"].to_string(), mtus[index % 2], "{row}");
    }
}

#[test]
fn rows_are_printed_when_measured() {
    let directory = tempfile::tempdir().unwrap();
    let words = "bench sequencer --quick --only latency --transport tcp,udp --payload 64 --json -";
    let words: Vec<&str> = words.split(' ').collect();
    let ended = run(directory.path(), &words);
    let lines = &ended.stderr;
    for transport in ["tcp", "udp"] {
        assert!(lines.contains(&format!("latency {transport} 64 B: p50")), "{lines}");
    }
    serde_json::from_str::<Value>(&ended.good()).unwrap();
}

#[test]
fn nodes_and_tier_are_as_requested() {
    for (tier, nodes) in [("memory", 1), ("sync", 2)] {
        let count = nodes.to_string();
        let words = [
            "--only",
            "latency,throughput",
            "--transport",
            "tcp",
            "--payload",
            "64",
            "--tier",
            tier,
            "--nodes",
            &count,
        ];
        let report = report(&words);
        assert_eq!(rows(&report).len(), 2, "{report:#}");
        assert!(rows(&report).iter().all(|row| row["config"]["tier"] == tier && row["config"]["transport"] == "tcp"));
        let throughput = rows(&report).iter().find(|row| row["config"]["mode"] == "throughput").unwrap();
        assert_eq!((&throughput["config"]["nodes"], &throughput["sent"]), (&nodes.into(), &(5_000 * nodes).into()));
        assert_eq!(throughput["roles"].as_array().unwrap().len(), 1 + nodes, "{throughput:#}");
    }
}

#[test]
fn late_joiner_by_packets_is_rewound() {
    let report = report(&["--only", "rewind", "--transport", "udp", "--rewind-frames", "30000"]);
    let [row] = rows(&report) else { panic!("{report}") };
    assert_eq!((&row["config"]["transport"], &row["config"]["rewind"]), (&"udp".into(), &"tcp".into()), "{row}");
    assert!(row["throughput_per_s"].as_f64().unwrap() > 0.0, "{row}");
    let roles = row["roles"].as_array().unwrap();
    let late = roles.iter().find(|role| role["role"] == "late node").unwrap();
    let (handled, rewound) = (late["handled"].as_u64().unwrap(), late["rewound"].as_u64().unwrap());
    // A message sent during the rewind arrives in packets.
    assert!(handled >= 30_000 && rewound > 15_000, "{late}");
    for latency in ["latency_ns", "latency_before_ns"] {
        assert!(row[latency]["count"].as_u64().unwrap() > 0, "{latency}: {row}");
    }
}

fn stream(directory: &Path, packets: Option<&PacketNetwork>) -> EventStream {
    let mut options = EventStreamOptions::in_directory(directory);
    options.window_bytes = 8 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    options.packets = packets.cloned();
    EventStream::start(&options).unwrap()
}

fn network(group: Option<SocketAddr>) -> PacketNetwork {
    let open = || UdpSocket::open(&UdpOptions::at(SocketAddr::new(LOOPBACK, 0))).unwrap();
    let (command, request) = (open(), open());
    let mut network = PacketNetwork::udp(command.local_address(), request.local_address());
    network.carrier =
        Carrier::Udp { interface: Interface::Address(LOOPBACK), hops: 0, segmentation: Segmentation::Auto };
    network.groups = group.into_iter().collect();
    network
}

#[test]
fn running_stream_by_shared_memory() {
    let directory = tempfile::tempdir().unwrap();
    let running = stream(directory.path(), None);
    // Messages of earlier runs are not counted.
    for _ in 0..2 {
        let report = report(&["--stream", directory.path().to_str().unwrap()]);
        assert_eq!(rows(&report).len(), 4);
        assert!(rows(&report).iter().all(|row| row["config"]["sequencer"] == "running"));
        check_latencies(&report);
        check_throughputs(&report, false);
    }
    running.stop().unwrap();
}

#[test]
fn running_stream_by_packets() {
    let process = std::process::id();
    let group = SocketAddr::new(Ipv4Addr::new(239, 254, process as u8, (process >> 8) as u8).into(), 23_457);
    for group in [None, Some(group)] {
        let directory = tempfile::tempdir().unwrap();
        let network = network(group);
        let running = stream(directory.path(), Some(&network));
        let (command, request) = (network.command.to_string(), network.request.to_string());
        let mut words = vec!["--command", &command, "--request", &request];
        let group = group.map(|group| group.to_string());
        if let Some(group) = &group {
            words.extend(["--group", group, "--interface", "127.0.0.1"]);
        }
        let report = report(&words);
        let transport = if group.is_some() { "multicast" } else { "udp" };
        assert_eq!(rows(&report).len(), 4);
        assert!(rows(&report).iter().all(|row| row["config"]["transport"] == transport));
        check_latencies(&report);
        check_throughputs(&report, false);
        running.stop().unwrap();
    }
}

#[test]
fn running_stream_by_password() {
    let directory = tempfile::tempdir().unwrap();
    let mut network = network(None);
    let (username, password) = (Field::new("anna").unwrap(), Field::new("swordfish").unwrap());
    network.sessions.users = vec![Credentials { username, password }];
    let running = stream(directory.path(), Some(&network));
    let place = format!("--command {} --request {} --payload 64", network.command, network.request);
    let place: Vec<&str> = place.split(' ').collect();
    let user = ["--username", "anna", "--password", "swordfish"];
    let report = report(&[place.as_slice(), &user].concat());
    assert_eq!(rows(&report).len(), 2);
    for user in
        [&[][..], &["--username", "anna", "--password", "trout"], &["--username", "bert", "--password", "swordfish"]]
    {
        let words = [&["bench", "sequencer", "--quick"], place.as_slice(), user].concat();
        let released_sequence = running.released_sequence();
        let error = run(Path::new("."), &words).error(1);
        assert!(error.contains("NotAuthorized: username and password are not known here"), "{error}");
        assert_eq!(running.released_sequence(), released_sequence, "nothing came into the stream");
    }
    running.stop().unwrap();
}

fn processes_in(directory: &Path) -> Vec<Pid> {
    processes_of(&["sequencer-process", directory.to_str().unwrap()])
}

fn long_run(part: &str, processes: usize, directory: &Path) -> LongRun {
    let directory_text = directory.to_str().unwrap();
    // One message in flight, so that the disk is not filled.
    let run = LongRun::start(
        directory,
        &[
            &["sequencer", "--only", part, "--transport", "shared-memory", "--payload", "256"][..],
            &["--messages", "1500000"],
            &["--throughput-messages", "100000000", "--window", "1", "--log-location", directory_text],
        ]
        .concat(),
    );
    until_some("its processes", || (processes_in(directory).len() == processes).then_some(()));
    run
}

#[test]
fn interrupt_leaves_nothing() {
    for (part, processes) in [("latency", 2), ("throughput", 4)] {
        let directory = tempfile::tempdir().unwrap();
        let run = long_run(part, processes, directory.path());
        for process in processes_in(directory.path()) {
            let _ = kill_process(process, Signal::INT);
        }
        kill_process(run.pid(), Signal::INT).unwrap();
        let table = run.end().interrupted();
        assert!(table.contains("interrupted"), "{table}");
        assert_eq!(processes_in(directory.path()), []);
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    }
}

#[test]
fn killed_process_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let run = long_run("latency", 2, directory.path());
    let processes = processes_in(directory.path());
    kill_process(processes[0], Signal::KILL).unwrap();
    let error = run.end().error(1);
    assert!(error.contains("ended too early") && error.contains("signal: 9"), "{error}");
    assert_eq!(processes_in(directory.path()), []);
    assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
}

#[test]
fn no_process_outlives_the_benchmark() {
    let directory = tempfile::tempdir().unwrap();
    drop(long_run("throughput", 4, directory.path()));
    until_some("the end of its processes", || processes_in(directory.path()).is_empty().then_some(()));
}
