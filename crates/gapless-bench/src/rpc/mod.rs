//! `gapless bench rpc …`: calls, next to those of other systems.
//!
//! | module | what lives there |
//! |---|---|
//! | [`curve`] | calls a second and their cost against the size of the payload |
//! | [`faults`] | calls while processes are killed, next to a killed broker |
//! | [`payloads`] | calls a second by the size of what travels |
//! | [`scenarios`] | a process under load, and a lone call at the same time |
//! | `rpc_under_test` | the processes of one system under test: its broker, its server, callers that only are connected |

pub mod curve;
pub mod faults;
pub mod payloads;
mod rpc_under_test;
pub mod scenarios;

use gapless_load::rpc::{NAME, check_interrupted, failed};
