//! `RUSTFLAGS="--cfg loom" cargo test -p gapless-log --release --test loom`.

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;

mod loom_calls;
mod loom_gating;
mod loom_lapping;
mod loom_parking;
mod loom_publication;
mod loom_release;
mod loom_truncation;
mod loom_whole_calls;
