//! What calls inside one process promise to whoever uses the crate.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_call_waits_for_its_route;
mod a_caller_is_told_unasked;
mod a_handler_awaits_its_cancellation;
mod a_panic_harms_nobody_else;
mod calls_are_the_same_here_as_elsewhere;
mod questions_are_no_calls;
mod tasks_serve_other_processes;
mod the_examples_do_what_they_say;
mod urgent_calls_are_let_in_first;
mod what_has_no_room_waits_on_disk;
mod what_is_given_up_is_counted;
