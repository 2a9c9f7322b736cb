//! Promises of calls, tested inside one process.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod a_call_waits_for_its_route;
mod a_caller_is_told_unasked;
mod a_forward_has_begun_wherever_it_goes;
mod a_handler_awaits_its_cancellation;
mod a_panic_harms_nobody_else;
mod a_payload_has_up_to_16_mib;
mod a_route_is_changed_from_outside;
mod a_route_looks_at_its_calls;
mod calls_are_the_same_here_as_elsewhere;
mod calls_of_several_types_are_joined;
mod errors_name_their_route;
mod every_kind_of_message_goes_through_a_route;
mod messages;
mod options_are_the_call_s_or_the_caller_s;
mod queries_are_no_calls;
mod relays;
mod tasks_serve_other_processes;
mod the_examples_do_what_they_say;
mod urgent_calls_are_let_in_first;
mod wakers_and_ending_threads_call;
mod what_has_no_room_waits_on_disk;
mod what_is_given_up_is_counted;
mod what_is_sent_is_counted;
mod what_is_too_long_keeps_what_it_means;
