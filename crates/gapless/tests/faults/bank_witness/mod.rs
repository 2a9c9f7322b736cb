#![allow(dead_code, reason = "each of the tests that share this uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

pub mod answers;
pub mod direct;
pub mod model;
pub mod process;
pub mod tellers;
