//! The `gapless` program.
fn main() {}
