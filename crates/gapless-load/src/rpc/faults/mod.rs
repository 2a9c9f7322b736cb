//! Load of `gapless bench rpc faults`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`calling`] | the calling end of Gapless |
//! | [`traffic`] | callers without a pause, and their observations |
//! | [`serving`] | the process that serves |
//! | [`content`] | content of a request and its answer |

pub mod calling;
pub mod content;
pub mod serving;
pub mod traffic;
