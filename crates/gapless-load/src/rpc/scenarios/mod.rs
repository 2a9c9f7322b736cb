//! Load of `gapless bench rpc scenarios`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`probe`] | lone calls |
//! | [`load`] | callers and workers without a pause |

pub mod load;
pub mod probe;
