//! What messages promise: one program, with a module for each promise.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod any_bytes_are_a_message_or_an_error;
mod any_message_may_grow;
mod every_change_of_a_type_is_noticed;
mod every_value_comes_back;
mod functions_are_served_and_called;
mod old_and_new_programs_understand_each_other;

use gapless_rpc::Message;

/// A message's bytes.
fn encoded<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    bytes
}
