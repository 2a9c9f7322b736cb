#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::stream_process::{configured, sequencer, some_lines, status_when, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::turn_until;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn nodes(status: &Value) -> &[Value] {
    status["nodes"].as_array().unwrap()
}

fn is_shown_over(transport: &str) {
    let directory = configured(transport);
    let here = directory.path();
    let file = std::fs::read_to_string(here.join("stream.toml")).unwrap();
    let is_local = transport == "shared-memory";
    let as_user = |name: &str| {
        let node = if is_local { String::new() } else { format!("[node]\nusername = \"{name}\"\n") };
        std::fs::write(here.join("stream.toml"), format!("{file}{node}")).unwrap();
    };
    as_user("berta");
    let _running = sequencer(here);
    let lines = some_lines(2_000);
    write_lines(here, "lines", &lines);
    let mut tail = Process::start(&mut stream_command(here, "tail --raw --from first"));
    let met = tail.lines_in_background();
    status_when(here, "the reader", |status| nodes(status).len() == 1);
    as_user("anna");
    let mut publish =
        Process::start(stream_command(here, "publish --rate 2000").stdin(Stdio::piped()).stderr(Stdio::null()));
    let mut input = publish.input();
    let is_seen = Arc::<AtomicBool>::default();
    let writer = std::thread::spawn({
        let (is_seen, lines) = (Arc::clone(&is_seen), lines.clone());
        move || {
            let unseen = lines.iter().cycle().take_while(|_| !is_seen.load(Ordering::Relaxed));
            let written = unseen.inspect(|line| writeln!(input, "{line}").unwrap()).count();
            (input, written)
        }
    });

    let status = status_when(here, "two nodes that move", |status| {
        let is_fast = |node: &Value| node["read_per_s"].as_f64().is_some_and(|rate| rate > 1.0);
        nodes(status).len() == 2
            && nodes(status).iter().all(is_fast)
            && nodes(status).iter().any(|node| node["published_per_s"].as_f64().is_some_and(|rate| rate > 1.0))
    });
    for node in nodes(&status) {
        assert_eq!(node["transport"], transport, "{status}");
        assert_eq!((node["process"].is_number(), node["address"].is_string()), (is_local, !is_local), "{status}");
    }
    let mut names: Vec<&str> = nodes(&status).iter().map(|node| node["node"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, if is_local { ["gapless", "gapless"] } else { ["anna", "berta"] }, "{status}");
    is_seen.store(true, Ordering::Relaxed);
    let (input, written) = writer.join().unwrap();

    for line in lines.iter().cycle().take(written) {
        assert_eq!(&met.recv().unwrap(), line);
    }
    let status = status_when(here, "both live at the end", |status| {
        let end = status["last_sequence"].as_u64().unwrap() + 1;
        let is_there = |node: &Value| {
            node["state"] == "live" && node["position"] == end && node["lag_frames"] == 0 && node["in_flight"] == 0
        };
        end > written as u64 && nodes(status).len() == 2 && nodes(status).iter().all(is_there)
    });
    let published: Vec<u64> = nodes(&status).iter().map(|node| node["frames_published"].as_u64().unwrap()).collect();
    assert!(
        published.iter().any(|frames| *frames >= written as u64) && published.contains(&0),
        "one publishes: {status}"
    );
    assert!(nodes(&status).iter().all(|node| node["frames_asked_again"].is_u64()), "{status}");
    assert!(nodes(&status).iter().all(|node| node["frames_sent_again"].is_u64()), "{status}");

    let text = stream(here, "status").good();
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("node ")).collect();
    assert!(table.len() == 3 && table[1..].iter().all(|row| row.contains(transport) && row.contains("live")), "{text}");

    tail.kill();
    drop(input);
    assert_eq!(publish.wait().code(), Some(0));
    status_when(here, "no node", |status| nodes(status).is_empty());
}

#[test]
fn over_shared_memory() {
    is_shown_over("shared-memory");
}

#[test]
fn over_udp() {
    is_shown_over("udp");
}

#[test]
fn over_multicast() {
    is_shown_over("multicast");
}

#[test]
fn over_tcp() {
    is_shown_over("tcp");
}

#[test]
fn stuck_node_lags() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let lines = some_lines(20_000);
    write_lines(here, "lines", &lines);
    let _running = sequencer(here);
    let _stuck = Process::start(&mut stream_command(here, "tail --from first"));
    status_when(here, "the tail", |status| nodes(status).len() == 1);
    stream(here, "publish lines").good();
    let status = status_when(here, "the node lags", |status| {
        nodes(status).len() == 1 && nodes(status)[0]["lag_frames"].as_u64().is_some_and(|lag| lag > 1_000)
    });
    let (end, node) = (status["last_sequence"].as_u64().unwrap() + 1, &nodes(&status)[0]);
    assert_eq!(node["position"].as_u64().unwrap() + node["lag_frames"].as_u64().unwrap(), end, "{status}");
}

#[test]
fn many_nodes_take_several_pages() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let mut tails: Vec<Process> =
        (0..4).map(|_| Process::start(&mut stream_command(here, "tail --from first"))).collect();
    tails.iter_mut().for_each(|tail| assert!(tail.line().contains("feed-began")));
    let socket = here.join("stream/stream.socket");
    let connections: Vec<_> = (0..260).map(|_| program_connection(&socket)).collect();
    let status = status_when(here, "all of them", |status| nodes(status).len() == 264);
    let numbers: Vec<u64> = nodes(&status).iter().map(|node| node["connection"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "each once: {numbers:?}");
    drop(connections);
    status_when(here, "the tails alone", |status| nodes(status).len() == 4);
}

/// Publisher with small rings that sends nothing but a hello.
fn program_connection(socket: &Path) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
    let connection =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&connection, &SocketAddrUnix::new(socket).unwrap()).unwrap();
    let mut hello = Vec::from(*b"GAPHELO\x02");
    hello.extend([4096u32.to_le_bytes(), 4096u32.to_le_bytes()].concat());
    hello.resize(88, 0);
    rustix::net::send(&connection, &hello, SendFlags::NOSIGNAL).unwrap();
    let (length, _) = rustix::net::recv(&connection, &mut [0u8; 256], RecvFlags::empty()).unwrap();
    assert_eq!(length, 80, "a welcome");
    connection
}

#[test]
fn watch_runs_until_interrupted() {
    let directory = configured("udp");
    let here = directory.path();
    let _running = sequencer(here);
    let _tail = Process::start(&mut stream_command(here, "tail --from first"));
    let mut watch = Process::start(stream_command(here, "status --watch").stderr(Stdio::inherit()));
    turn_until("the node is shown", || watch.line().contains(" udp "));
    watch.interrupt();
    assert_eq!(watch.wait().code(), Some(0));
}
