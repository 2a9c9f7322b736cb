//! Logs of processes that hold a descriptor for appending and cannot be asked to reopen it.
//!
//! A log has *positions*, in bytes since its first write. Bytes before the beginning of the file are in `NAME.log.1`,
//! `NAME.log.2` and so on, newest first, or gone. `NAME.log.begin` has the position at which the file begins.

mod follower;
mod keeper;
mod positions;
mod rotation;

pub use follower::{LogFollower, LogPiece};
pub use keeper::{LogFinding, LogKeeper};
pub use positions::LOGS_KEPT_MAX;
