//! Rings and windows between real processes. Each test starts this program again as the other process, with its role in
//! the environment and the memory as a path or an inherited descriptor.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod a_killed_writer_leaves_nothing_half_visible;
mod a_mad_process_spoils_only_its_own_ring;
mod a_ring_carries_every_frame;
mod a_windows_reader_sees_every_frame_or_is_told;
mod messages;
mod peer;

/// Entry of the other process; does nothing in the test run itself.
#[test]
fn peer_entry() {
    match std::env::var(peer::PART).as_deref() {
        Ok("publish") => a_ring_carries_every_frame::publish(),
        Ok("echo") => a_ring_carries_every_frame::echo(),
        Ok("publish for ever") => a_killed_writer_leaves_nothing_half_visible::publish_for_ever(),
        Ok("stop in mid-write") => a_killed_writer_leaves_nothing_half_visible::stop_in_mid_write(),
        Ok("scribble") => a_mad_process_spoils_only_its_own_ring::scribble(),
        Ok("read the window") => a_windows_reader_sees_every_frame_or_is_told::read(),
        Ok(part) => panic!("no such part: {part}"),
        Err(_) => {}
    }
}
