//! A sequencer and two nodes, each a process, in network namespaces joined by a pair of virtual interfaces. The link is
//! cut repeatedly while messages flow, also for longer than a node waits for its sequencer. Every node reads the same
//! gapless stream, over UDP and over TCP, with its own messages once and in order; also if packets are rejected by ICMP
//! instead of lost.
//!
//! Everything runs in a user namespace, which the kernel removes with the last process in it. No privilege is needed
//! where users may create such namespaces, and nothing is left over. Elsewhere the test reports that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod namespaces;
mod parts;

use self::namespaces::{Link, missing};
use self::parts::TestProcess;
use gapless_testkit::scenarios::Module;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// First argument of the process inside the namespaces; its transport follows.
const INSIDE: &str = "cut_link_is_recovered::inside";
/// First argument of the sequencer and the nodes, see [`TestProcess`].
const PART: &str = "cut_link_is_recovered::part";
const PATIENCE: Duration = Duration::from_secs(120);
/// Durations of the cuts: within a node's timeout of 2 s, and beyond it.
const CUTS: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(3_000), Duration::from_millis(50)];
/// Time for which UDP packets are rejected, including hellos: longer than the feed continues until the sequencer drops
/// the node, 2 s, plus the node's timeout, 2 s.
const PROHIBITED: Duration = Duration::from_millis(5_500);
/// Number of messages of each node that must have been sent before the first cut, and between two.
const MESSAGES_BETWEEN: u64 = 200;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("over_udp", || inside_namespaces("udp")).scenario("over_tcp", || {
        inside_namespaces("tcp");
    })
}

/// Runs a part of a scenario if this process was started as one, and does not return then.
pub fn play_a_part_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, PART, name, transport, directory] => parts::play(name, transport, directory.as_ref()),
        [_, INSIDE, transport] => {
            // A hanging process ends with this one.
            std::thread::spawn(|| {
                std::thread::sleep(3 * PATIENCE);
                eprintln!("it hangs");
                std::process::exit(1);
            });
            the_link_is_cut(transport);
        }
        _ => return,
    }
    std::process::exit(0);
}

/// The scenario, in a process of its own inside the namespaces.
fn inside_namespaces(transport: &str) {
    if let Some(reason) = missing() {
        println!("SKIPPED: {reason}");
        return;
    }
    let mut command = namespaces::inside(&std::env::current_exe().unwrap());
    let status = command.args([INSIDE, transport]).status().unwrap();
    assert!(status.success(), "inside the namespaces it has failed: {status}");
}

fn the_link_is_cut(transport: &str) {
    let directory = tempfile::tempdir().unwrap();
    let link = Link::new();
    let part = |name: &str, command: Command| TestProcess::start(name, command, transport, directory.path());
    let mut sequencer = part("sequencer", link.on_left());
    assert_eq!(sequencer.line(), "running");
    // One next to the sequencer, one across the link, which starts before the link is up: without a route.
    link.set(false);
    let mut nodes = [part("node-near", link.on_left()), part("node-far", link.on_right())];
    assert_eq!(nodes[1].line(), "0");
    link.set(true);
    let begun = Instant::now();
    for (number, time) in CUTS.into_iter().enumerate() {
        // The far node prints how many of its own messages have come back through the link.
        let due = (number as u64 + 1) * MESSAGES_BETWEEN;
        while nodes[1].count() < due {
            nodes[1].line();
            assert!(begun.elapsed() < PATIENCE, "{} of {due} have come back", nodes[1].count());
        }
        link.set(false);
        std::thread::sleep(time);
        link.set(true);
    }
    if transport == "udp" {
        // ICMP reports the rejected packets to the far node's socket; that ends nothing.
        link.prohibit(true);
        std::thread::sleep(PROHIBITED);
        // A new address of its host is no reason to stop either.
        link.move_right();
        link.prohibit(false);
        let due = nodes[1].count() + MESSAGES_BETWEEN;
        while nodes[1].count() < due {
            nodes[1].line();
            assert!(begun.elapsed() < PATIENCE, "{} of {due} have come back", nodes[1].count());
        }
    }
    nodes.iter_mut().for_each(TestProcess::let_go);
    // Result of each node: number of messages, last sequence, a checksum over all of them, and the number of lost
    // connections.
    let ends: Vec<String> = nodes.iter_mut().map(|node| node.end()).collect();
    println!("{transport}: {ends:?}");
    let [(near, near_losses), (far, far_losses)] = [0, 1].map(|node| ends[node].rsplit_once(' ').unwrap());
    assert_eq!(near, far, "{transport}: the nodes have met different streams");
    assert_eq!(near_losses, "0", "{transport}: the near node has no part in it");
    assert_ne!(far_losses, "0", "{transport}: the longest cut is longer than the far node waits");
    sequencer.let_go();
    let last = sequencer.end();
    assert_eq!(Some(last.as_str()), near.split(' ').nth(1), "{transport}: they have met all of it");
    drop((nodes, sequencer));
    drop(link);
}

/// Runs a command, with output only if it fails.
fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
