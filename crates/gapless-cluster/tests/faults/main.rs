//! One program without a harness, see `gapless_testkit::scenarios`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod processes;

mod client_histories_are_linearizable;
mod copied_directory_is_detected;
mod damaged_members_are_refused;
mod failed_disk_stops_member;
mod killed_members_lose_nothing;
mod lagging_member_gets_state;
mod missed_messages_are_resent;
mod packet_loss_is_survived;
mod slow_members_are_tolerated;
mod wrong_clocks_are_tolerated;
mod wrong_members_are_refused;

use std::process::ExitCode;

fn main() -> ExitCode {
    processes::run_as_member_if_asked();
    packet_loss_is_survived::run_if_inside();
    gapless_testkit::scenarios::run(vec![
        copied_directory_is_detected::module(),
        damaged_members_are_refused::module(),
        failed_disk_stops_member::module(),
        killed_members_lose_nothing::module(),
        missed_messages_are_resent::module(),
        lagging_member_gets_state::module(),
        slow_members_are_tolerated::module(),
        wrong_clocks_are_tolerated::module(),
        wrong_members_are_refused::module(),
        client_histories_are_linearizable::module(),
        packet_loss_is_survived::module(),
    ])
}
