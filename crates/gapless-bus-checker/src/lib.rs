//! What callers of a command bus were told, compared with what its journal says. For tests: it shares no code with the bus, decodes transactions by
//! their documented layout, and reads nothing but the journal.
//!
//! | module | what lives there |
//! |---|---|
//! | [`told`] | [`Told`]: what callers were told, held against a history |
//! | [`history`] | [`History`]: the transactions of a journal, and what must hold of any |
//! | [`transaction`] | [`Transaction`]: the bytes of one |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod history;
pub mod told;
pub mod transaction;

pub use history::History;
pub use told::{Counts, Outcome, Told};
pub use transaction::{Answer, Decision, Event, Identity, Transaction};
