//! Logs that are written by processes which nobody can ask to open another file: they hold a descriptor for appending.
//!
//! A log has *positions*, bytes since it was first written. What is before the file's beginning stands in `NAME.log.1`,
//! `NAME.log.2` and so on, the newest first, or is gone. `NAME.log.begin` says at which position the file begins now.
//!
//! | module | what lives there |
//! |---|---|
//! | `keeper` | [`LogKeeper`]: the thread that keeps logs below their limit |
//! | `rotation` | the beginning of one log becomes `NAME.log.1` |
//! | `follower` | [`LogFollower`]: reads a log on from a position, also while it is rotated |
//! | `positions` | where a log begins, and the lock under which that changes |

mod follower;
mod keeper;
mod positions;
mod rotation;

pub use follower::{LogFollower, Piece};
pub use keeper::{LogFound, LogKeeper};
pub use positions::LOGS_KEPT_MAX;
