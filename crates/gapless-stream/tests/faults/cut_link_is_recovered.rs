//! A sequencer and two nodes, each a process, in network namespaces whose link is cut repeatedly, also for longer than
//! a node waits, or rejects packets by ICMP. Needs no privilege but a user namespace; without, the test reports that it
//! is skipped.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod namespaces;
mod parts;

use self::namespaces::{Link, missing};
use self::parts::TestProcess;
use gapless_testkit::scenarios::Module;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "cut_link_is_recovered::inside";
const PART: &str = "cut_link_is_recovered::part";
const PATIENCE: Duration = Duration::from_secs(120);
/// Within a node's timeout of 2 s, and beyond it.
const CUTS: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(3_000), Duration::from_millis(50)];
/// UDP packets, including hellos, are rejected for longer than the sequencer keeps the node, 2 s, plus the node's
/// timeout, 2 s.
const PROHIBITED: Duration = Duration::from_millis(5_500);
const MESSAGES_BETWEEN: u64 = 200;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("over_udp", || inside_namespaces("udp")).scenario("over_tcp", || {
        inside_namespaces("tcp");
    })
}

pub fn play_a_part_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, PART, name, transport, directory] => parts::play(name, transport, directory.as_ref()),
        [_, INSIDE, transport] => {
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
    // One next to the sequencer, one across the link, which starts without a route.
    link.set(false);
    let mut nodes = [part("node-near", link.on_left()), part("node-far", link.on_right())];
    assert_eq!(nodes[1].line(), "0");
    link.set(true);
    let begun = Instant::now();
    for (number, time) in CUTS.into_iter().enumerate() {
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
        // ICMP errors end nothing.
        link.prohibit(true);
        std::thread::sleep(PROHIBITED);
        // A new address ends nothing either.
        link.move_right();
        link.prohibit(false);
        let due = nodes[1].count() + MESSAGES_BETWEEN;
        while nodes[1].count() < due {
            nodes[1].line();
            assert!(begun.elapsed() < PATIENCE, "{} of {due} have come back", nodes[1].count());
        }
    }
    nodes.iter_mut().for_each(TestProcess::let_go);
    // The far node first, which still prints.
    let [far, near] = [1, 0].map(|node: usize| nodes[node].end());
    println!("{transport}: {near:?}, {far:?}");
    let [(near, near_losses), (far, far_losses)] = [&near, &far].map(|end| end.rsplit_once(' ').unwrap());
    assert_eq!(near, far, "{transport}: the nodes have met different streams");
    assert_eq!(near_losses, "0", "{transport}: the near node has no part in it");
    assert_ne!(far_losses, "0", "{transport}: the longest cut is longer than the far node waits");
    sequencer.let_go();
    let last = sequencer.end();
    assert_eq!(Some(last.as_str()), near.split(' ').nth(1), "{transport}: they have met all of it");
    drop((nodes, sequencer));
    drop(link);
}

fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
