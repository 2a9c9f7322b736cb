//! `descriptor_limit_reason`: the text for a message that arrived without its descriptors.

use rustix::process::{Resource, getrlimit};

/// Reason for missing descriptors: this process may open no more.
pub fn descriptor_limit_reason() -> String {
    let most = getrlimit(Resource::Nofile).current;
    let most = most.map(|most| format!(", it may have {most} (`ulimit -n`)")).unwrap_or_default();
    format!("this process has no room for the descriptors that were sent to it{most}")
}
