//! Controlling a stream from another process: the client's side.
//!
//! | module | what lives there |
//! |---|---|
//! | [`controller`] | [`Controller`]: one request and its answer |
//! | [`status_feed`] | [`StatusFeed`]: repeated reading of the state |

pub mod controller;
pub mod status_feed;

pub use controller::{ControlResult, Controller, WaitReporter};
pub use status_feed::{NodeReading, StatusFeed, StatusReading};
