//! One program, because linking a program for each promise costs more than running them all.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod counters_file_damage;
mod counters_files;
mod failing_agent_is_named;
mod parked_threads_wake_up;
mod thread_plans;
mod wall_clock_jumps;
