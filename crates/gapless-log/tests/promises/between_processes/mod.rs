//! Each test starts this program again as the other process, with its role in the environment and the memory as a path
//! or an inherited descriptor.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corrupt_ring_is_contained;
mod killed_writer_is_atomic;
mod messages;
mod peer;
mod ring_carries_frames;
mod window_reader_sees_frames;

/// Does nothing in the test run itself.
#[test]
fn peer_entry() {
    match std::env::var(peer::PART).as_deref() {
        Ok("publish") => ring_carries_frames::publish(),
        Ok("echo") => ring_carries_frames::echo(),
        Ok("publish for ever") => killed_writer_is_atomic::publish_for_ever(),
        Ok("stop in mid-write") => killed_writer_is_atomic::stop_in_mid_write(),
        Ok("scribble") => corrupt_ring_is_contained::scribble(),
        Ok("read the window") => window_reader_sees_frames::read(),
        Ok(part) => panic!("no such part: {part}"),
        Err(_) => {}
    }
}
