//! Control of a stream from outside of its process: the asking side.
//!
//! | module | what lives there |
//! |---|---|
//! | [`controller`] | [`Controller`]: one request and its answer |
//! | [`status_feed`] | [`StatusFeed`]: reading the state again and again |

pub mod controller;
pub mod status_feed;

pub use controller::{Controlled, Controller, Tell};
pub use status_feed::{NodeReading, StatusFeed, StatusReading};
