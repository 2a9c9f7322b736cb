//! Messages between the threads: [`Order`] to the watcher, [`Report`] from it.

use crate::config::process::PingConfig;
use crate::copy_name::CopyName;
use crate::supervision::event::Event;
use std::collections::BTreeMap;

/// Observations wanted of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub incarnation: u64,
    pub process_id: u32,
    /// Report readiness once it serves this route.
    pub ready: Option<String>,
    pub ping: Option<PingConfig>,
    pub is_to_drain: bool,
}

pub type Wishes = BTreeMap<CopyName, Wish>;

#[derive(Debug)]
pub enum Order {
    /// Replaces the set of watched instances.
    Watch(Wishes),
    /// The served routes may have changed.
    Changed,
    Answered {
        question: u64,
        answer: Answer,
    },
    /// End the thread.
    End,
}

/// End of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Any reply of the instance.
    Said,
    /// Timeout.
    Nothing,
    /// Not delivered: the instance is gone, or takes no calls.
    NotAsked,
}

#[derive(Debug)]
pub enum Report {
    Happened(Event),
    /// An instance has finished its calls, or drains cannot be observed because the domain cannot be watched.
    Drained {
        copy: CopyName,
        incarnation: u64,
    },
    /// Reason for which the domain cannot be watched; `None` once it can be again.
    Problem(Option<String>),
}
