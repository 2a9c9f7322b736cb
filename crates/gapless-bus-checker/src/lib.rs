//! Compares outcomes reported to callers of a command bus with its journal. For tests: shares no code with the bus,
//! decodes transactions by their documented layout, and reads only the journal.
//!
//! | module | what lives there |
//! |---|---|
//! | [`reported_outcomes`] | [`ReportedOutcomes`]: outcomes reported to callers, checked against a history |
//! | [`history`] | [`History`]: transactions of a journal, and their invariants |
//! | [`transaction`] | [`Transaction`]: layout of one transaction |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod history;
pub mod reported_outcomes;
pub mod transaction;

pub use history::History;
pub use reported_outcomes::{OutcomeCounts, ReportedOutcome, ReportedOutcomes};
pub use transaction::{Answer, Decision, Event, Identity, Transaction};
