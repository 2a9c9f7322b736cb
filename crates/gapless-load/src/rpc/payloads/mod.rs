//! Load of `gapless bench rpc payloads`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`cycles`] | cycles of calls, timed |
//! | [`served`] | the serving end |
//! | [`content`] | content of a payload |

pub mod content;
pub mod cycles;
pub mod served;
