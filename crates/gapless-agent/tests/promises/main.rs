//! Promises of agents, their threads, plans, clocks and counters: one program, with a module for each promise, because
//! linking a program for each costs more than running them all.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_failing_agent_is_named;
mod a_jump_of_the_wall_clock_expires_nothing;
mod a_parked_thread_never_misses_a_wake_up;
mod counters_outlive_nobody_and_lie_to_nobody;
mod damage_to_a_counters_file_harms_nobody_who_counts;
mod the_plan_counts_spinning_threads_against_the_cores;
