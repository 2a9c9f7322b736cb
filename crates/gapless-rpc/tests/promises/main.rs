#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod all_message_kinds_pass;
mod call_options_replace_defaults;
mod callers_receive_notices;
mod calls_await_their_route;
mod calls_from_wakers;
mod cancelled_calls_are_counted;
mod errors_name_their_route;
mod examples_run;
mod forwards_count_as_begun;
mod handlers_await_cancellation;
mod local_equals_remote_calls;
mod local_queues_spill;
mod long_texts_are_cut;
mod messages;
mod mixed_calls_are_joined;
mod panics_are_isolated;
mod payload_limit_is_16_mib;
mod queries_are_not_counted;
mod relays;
mod route_states_change_remotely;
mod sends_are_counted;
mod server_interceptors_run;
mod tasks_serve_processes;
mod urgent_calls_go_first;
