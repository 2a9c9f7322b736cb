//! SBE message schemas to Rust: direct flyweights and indirect objects
