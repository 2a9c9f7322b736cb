//! The state of a service, written and read by serde: [`trait@State`], its version in each snapshot, and a test for equal
//! bytes in all processes.

/// Derives the state of a service from a struct or an enum that serde can write and read.
///
/// ```
/// use gapless::state::{self, State};
/// use serde::{Deserialize, Serialize};
/// use std::collections::BTreeMap;
///
/// #[derive(Debug, Default, PartialEq, Serialize, Deserialize, State)]
/// struct Ledger {
///     balances: BTreeMap<u64, u64>,
/// }
///
/// let mut snapshot = Vec::new();
/// state::write(&Ledger::default(), &mut snapshot);
/// assert_eq!(state::read(&snapshot), Ok(Ledger::default()));
/// ```
pub use gapless_macros::FaceState as State;
pub use gapless_message::state::{Deterministic, OldState, State, StateError, check_in_two_processes, read, write};
