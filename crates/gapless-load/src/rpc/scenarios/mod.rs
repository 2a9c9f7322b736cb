//! Load of `gapless bench rpc scenarios`.

pub mod load;
pub mod probe;
