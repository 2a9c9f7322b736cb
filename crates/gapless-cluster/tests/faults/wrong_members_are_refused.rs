#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::load::PublisherLoad;
use crate::processes::{self, Cluster, ClusterPlan, STEADY, THREE, streams};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("other_clusters_member_is_refused", other_clusters_member_is_refused)
        .scenario("second_process_is_refused", second_process_is_refused)
        .scenario("directory_and_port_are_exclusive", directory_and_port_are_exclusive)
        .with_choices("garbage_changes_nothing", garbage_changes_nothing)
}

fn begin(plan: ClusterPlan) -> (Cluster, PublisherLoad) {
    let mut cluster = Cluster::start(plan);
    cluster.leader();
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(100);
    (cluster, load)
}

fn end(mut cluster: Cluster, load: PublisherLoad) {
    load.wait_more(100);
    streams::check(&mut cluster, load);
}

fn elsewhere(cluster: &Cluster, member: usize) -> String {
    let own = cluster.address(member);
    let free = std::net::TcpListener::bind((own.ip(), 0)).unwrap().local_addr().unwrap();
    let directory = cluster.directory(member).display().to_string();
    let text = cluster.text(member).replace(&directory, &format!("{directory}-elsewhere"));
    text.replace(&format!("\"{own}\""), &format!("\"{free}\""))
}

fn other_clusters_member_is_refused() {
    let (cluster, load) = begin(THREE);
    let text = elsewhere(&cluster, 1).replace("\"faults\"", "\"another\"");
    let other = cluster.start_extra("another", &text);
    println!("{}", other.wait_log(&["cannot be connected", "cluster"]));
    load.wait_more(200);
    end(cluster, load);
}

fn second_process_is_refused() {
    let (cluster, load) = begin(THREE);
    let second = cluster.start_extra("second", &elsewhere(&cluster, 1));
    println!("{}", second.wait_log(&["cannot be connected"]));
    load.wait_more(200);
    end(cluster, load);
}

fn directory_and_port_are_exclusive() {
    let (cluster, load) = begin(THREE);
    let mut second = cluster.start_extra("second", &cluster.text(2));
    assert_eq!(second.wait_end().code(), Some(3));
    println!("{}", second.wait_log(&["member failed", "in use"]));
    let directory = cluster.directory(2).display().to_string();
    let text = cluster.text(2).replace(&directory, &format!("{directory}-elsewhere"));
    let mut third = cluster.start_extra("third", &text);
    assert_eq!(third.wait_end().code(), Some(3));
    println!("{}", third.wait_log(&["member failed", "in use"]));
    load.wait_more(100);
    end(cluster, load);
}

fn garbage_changes_nothing(random: &mut Random) {
    let (mut cluster, load) = begin(STEADY);
    cluster.keeps_leader("garbage", |cluster, _| {
        send_garbage(cluster, random);
        std::thread::sleep(Duration::from_millis(100));
        load.wait_more(100);
    });
    end(cluster, load);
}

fn send_garbage(cluster: &Cluster, random: &mut Random) {
    let mut idle = Vec::new();
    for round in 0..60 {
        let member = 1 + round % cluster.count();
        let mut stranger = TcpStream::connect(cluster.address(member)).unwrap();
        if round % 4 == 0 {
            idle.push(stranger);
            continue;
        }
        let bytes: Vec<u8> = (0..random.below(20_000)).map(|_| random.below(256) as u8).collect();
        let _ = stranger.write_all(&bytes);
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        stranger.set_read_timeout(Some(processes::PATIENCE)).unwrap();
        let ended = stranger.read_to_end(&mut Vec::new());
        let was_cut = ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(ended.is_ok() || was_cut, "member {member} keeps a stranger: {ended:?}");
    }
    for mut stranger in idle {
        stranger.set_read_timeout(Some(processes::PATIENCE)).unwrap();
        assert!(!matches!(stranger.read(&mut [0; 64]), Ok(1..)), "a silent stranger was answered");
    }
}
