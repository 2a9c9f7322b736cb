//! [`Order`]: what the supervisor's thread says to the watcher; [`Report`]: what that one says.

use crate::config::process::PingConfig;
use crate::copy_name::CopyName;
use crate::supervision::event::Event;
use std::collections::BTreeMap;

/// What is to be found out of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which start of it.
    pub incarnation: u64,
    /// Its process.
    pub process_id: u32,
    /// When it serves this route.
    pub ready: Option<String>,
    /// Whether it answers.
    pub ping: Option<PingConfig>,
    /// It is to finish what it serves, and to take nothing new.
    pub is_to_drain: bool,
}

/// By copies.
pub type Wishes = BTreeMap<CopyName, Wish>;

/// What the watcher is told.
#[derive(Debug)]
pub enum Order {
    /// These, and no others any more.
    Watch(Wishes),
    /// What is served may have changed.
    Changed,
    /// A question has ended.
    Answered {
        /// Which.
        question: u64,
        /// How.
        answer: Answer,
    },
    /// There is nothing more to do.
    End,
}

/// How a question has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The copy has said something.
    Said,
    /// It has not, in its time.
    Nothing,
    /// It could not be asked: it is gone, or takes nothing.
    NotAsked,
}

/// What the watcher tells.
#[derive(Debug)]
pub enum Report {
    /// Something has happened to a copy.
    Happened(Event),
    /// A copy has finished what it serves; or the domain cannot be looked at, so that nobody can tell it to.
    Drained {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// The domain cannot be looked at, or can again.
    Problem(Option<String>),
}
