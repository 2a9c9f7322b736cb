//! Controlling a stream from another process: the client's side.

pub mod controller;
pub mod status_feed;

pub use controller::{ControlResult, Controller, WaitReporter};
pub use status_feed::{NodeReading, StatusFeed, StatusReading};
