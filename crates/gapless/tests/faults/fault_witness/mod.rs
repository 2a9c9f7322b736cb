#![allow(dead_code, reason = "each of the tests that share this uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

pub mod bank;
pub mod process;
pub mod state_bank;
pub mod witness;
