//! A stream's file: a TOML text that knows the line of each of its keys. Programs that add tables of their own to such a
//! file read them by [`document`], too.
//!
//! | module | what lives there |
//! |---|---|
//! | [`document`] | a TOML text that knows the line of each of its keys |
//! | `units` | sizes and durations as people write them |

#[cfg(feature = "toml")]
pub mod document;
#[cfg(feature = "toml")]
mod units;
