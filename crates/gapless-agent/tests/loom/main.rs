//! Interleavings of each ordering argument. Runs only under loom: `RUSTFLAGS="--cfg loom" cargo test -p gapless-agent
//! --release --test loom`.

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test")]

mod loom_announcements;
mod loom_latch;
mod loom_parking;
mod word;
