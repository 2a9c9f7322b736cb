pub mod endpoints;
pub mod partner;
pub mod sending;
