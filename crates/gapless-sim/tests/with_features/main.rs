//! What only a build with features can show: the simulator finds the defects that are planted in a member and its service.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod mutants_are_caught;
