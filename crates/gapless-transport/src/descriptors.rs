//! [`none_left`]: a message has come without the descriptors that were sent with it.

use rustix::process::{Resource, getrlimit};

/// That the kernel could not hand over what was sent, in words: this process may open no more.
pub fn none_left() -> String {
    let most = getrlimit(Resource::Nofile).current;
    let most = most.map(|most| format!(", it may have {most} (`ulimit -n`)")).unwrap_or_default();
    format!("this process has no room for the descriptors that were sent to it{most}")
}
