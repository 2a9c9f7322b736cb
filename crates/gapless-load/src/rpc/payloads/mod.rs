//! Load of `gapless bench rpc payloads`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`cycles`] | cycles of calls, timed |
//! | [`bare`] | the same payloads through channels of the standard library |
//! | [`served`] | the serving end |
//! | [`content`] | content of a payload |

pub mod bare;
pub mod content;
pub mod cycles;
pub mod served;
