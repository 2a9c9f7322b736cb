//! One suite over every transport: the same application sees the same stream over each.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod memory;
mod relayed;
mod shared_memory;
mod suite;
mod tcp;
mod udp;
mod world;
