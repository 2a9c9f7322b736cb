//! Ring and window between two processes.
//!
//! | module | what lives there |
//! |---|---|
//! | [`sending`] | the first process |
//! | [`partner`] | the second process: reads and measures, or echoes |
//! | [`endpoints`] | rings and windows, opened from both sides |

pub mod endpoints;
pub mod partner;
pub mod sending;
