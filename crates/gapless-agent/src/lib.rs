//! Agents, thread plans, idle strategies, affinity, clocks and counters
