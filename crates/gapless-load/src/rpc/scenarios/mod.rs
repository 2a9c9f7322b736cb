pub mod load;
pub mod probe;
