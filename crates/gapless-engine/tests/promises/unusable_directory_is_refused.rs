//! A full disk stops the host with an error that names it, and loses nothing acknowledged. All tests but the last need
//! the right to mount a tmpfs.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_engine::{EngineError, ServiceHost, ServiceHostOptions};
use gapless_testkit::folder::SmallDisk;
use gapless_transport::Tier;
use std::time::{Duration, Instant};

fn refused(options: ServiceHostOptions) -> EngineError {
    ServiceHost::start(Adder::default(), options).err().expect("a refusal")
}

#[test]
fn full_disk_stops_without_loss() {
    for (tier, snapshot_interval_frames) in [(Tier::Journal, None), (Tier::Sync, None), (Tier::Journal, Some(200))] {
        let Some(disk) = SmallDisk::new(900) else { return };
        let durable = || ServiceHostOptions { tier, snapshot_interval_frames, ..options(&disk.path) };
        let host = start(durable());
        let mut client = connect(&disk.path);
        let key = client.open_session(5, 8).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut acknowledged = 0;
        let mut payload = [0u8; 2000];
        payload[0] = 1;
        let said = loop {
            while client.can_send(key) {
                send(&mut client, key, ADD, &payload);
            }
            client
                .poll(64, |incoming| {
                    if let gapless_client::Incoming::Reply { reply, .. } = incoming {
                        acknowledged += 1;
                        assert_eq!(reply.payload, u64::to_le_bytes(acknowledged));
                    }
                })
                .unwrap();
            if let Some(failure) = host.failure() {
                break failure.to_string();
            }
            assert!(Instant::now() < deadline, "the full disk is not detected");
        };
        assert!(said.contains("no space") || said.contains("No space"), "{said}");
        assert!(said.contains(&disk.path.display().to_string()), "the place is named: {said}");
        assert!(acknowledged > 100, "{acknowledged}");
        assert!(host.stop().is_err());

        disk.remount("size=4000k");
        let host = start(durable());
        client.reconnect().unwrap();
        while client.in_flight(key) > 0 {
            client
                .poll(64, |incoming| {
                    if let gapless_client::Incoming::Reply { reply, first, .. } = incoming {
                        acknowledged += u64::from(first);
                        assert_eq!(reply.payload, u64::to_le_bytes(acknowledged));
                    }
                })
                .unwrap();
            client.wait(Duration::from_millis(10)).unwrap();
            assert!(Instant::now() < deadline, "commands have no reply");
        }
        assert_eq!(add(&mut client, key, 1), acknowledged + 1);
        host.stop().unwrap();
    }
}

#[test]
fn read_only_disk_is_an_error() {
    let Some(disk) = SmallDisk::new(2000) else { return };
    let host = start(options(&disk.path));
    let mut client = connect(&disk.path);
    let key = client.open_session(5, 8).unwrap();
    assert_eq!(add(&mut client, key, 1), 1);
    host.stop().unwrap();
    disk.remount("ro");
    for place in [disk.path.clone(), disk.path.join("elsewhere")] {
        let said = refused(options(&place)).to_string();
        assert!(said.contains("read-only") || said.contains("Read-only"), "{said}");
        assert!(said.contains(&disk.path.display().to_string()), "the place is named: {said}");
    }
    disk.remount("rw");
    let host = start(options(&disk.path));
    client.reconnect().unwrap();
    assert_eq!(add(&mut client, key, 1), 2);
    host.stop().unwrap();
}

#[test]
fn used_directory_names_its_holder() {
    let directory = tempfile::tempdir().unwrap();
    let host = start(options(directory.path()));
    let mut client = connect(directory.path());
    let key = client.open_session(5, 8).unwrap();
    let said = refused(options(directory.path())).to_string();
    assert!(said.contains(&std::process::id().to_string()), "the holder is named: {said}");
    assert!(said.contains(&directory.path().display().to_string()), "the place is named: {said}");
    assert_eq!(add(&mut client, key, 1), 1, "the holder goes on");
    host.stop().unwrap();
}
