//! Agents, thread plans, idle strategies, affinity, clocks and counters.

pub mod fault;
