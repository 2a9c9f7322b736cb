//! [`ReleasedState`]: identifiers of commands, which every member derives from released transactions. Only the writer
//! folds aggregates.

use crate::identifiers::{IdentifierLimits, IdentifierLog};
use crate::transaction::RecordedEvents;
use gapless_agent::fault::mutant;
use gapless_wire::fields::FieldReader;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const MAGIC: [u8; 8] = *b"GAPCQRS\x01";

pub(crate) struct ReleasedState {
    identifiers: IdentifierLog,
    version: u32,
    handover: Arc<IdentifierHandover>,
    bytes: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct IdentifierHandover {
    state: Mutex<IdentifierHandoverState>,
    /// Written with `state` locked.
    is_wanted: AtomicBool,
}

#[derive(Default)]
enum IdentifierHandoverState {
    #[default]
    Nothing,
    /// Identifiers up to this sequence.
    Wanted(u64),
    /// Output of [`IdentifierLog::write`], and the service's version.
    Given(Vec<u8>, u32),
}

impl IdentifierHandover {
    /// Requests a handover: the writer leads after `sequence`.
    pub fn request(&self, sequence: u64) {
        self.set(IdentifierHandoverState::Wanted(sequence));
    }

    /// Withdraws the request: the writer leads no more.
    pub fn withdraw(&self) {
        self.set(IdentifierHandoverState::Nothing);
    }

    /// Takes the handover, once: encoded identifiers, and the service's version.
    pub fn take(&self) -> Option<(Vec<u8>, u32)> {
        let mut state = self.lock();
        match std::mem::take(&mut *state) {
            IdentifierHandoverState::Given(bytes, version) => Some((bytes, version)),
            other => {
                *state = other;
                None
            }
        }
    }

    fn set(&self, wanted: IdentifierHandoverState) {
        let mut state = self.lock();
        // Relaxed: the request is read with the lock held, and a thread that misses the flag is woken and reads it
        // again.
        self.is_wanted.store(matches!(wanted, IdentifierHandoverState::Wanted(_)), Ordering::Relaxed);
        *state = wanted;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IdentifierHandoverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReleasedState {
    pub fn new(limits: IdentifierLimits, handover: Arc<IdentifierHandover>) -> Self {
        Self { identifiers: IdentifierLog::new(limits), version: 1, handover, bytes: Vec::new() }
    }

    /// Applies a released transaction.
    ///
    /// # Errors
    /// The events do not decode.
    #[inline]
    pub fn apply(&mut self, sequence: u64, time_ns: u64, answer: &[u8], changes: &[u8]) -> Result<(), String> {
        if changes.is_empty() {
            return Ok(());
        }
        let events = RecordedEvents::read(sequence, changes).map_err(|error| error.to_string())?;
        if let Some(identity) = events.identity() {
            self.identifiers.remember(identity, time_ns, answer);
        }
        Ok(())
    }

    /// Sets the version as which the service acts.
    pub const fn become_version(&mut self, version: u32) {
        self.version = version;
    }

    /// Called when everything up to `last_sequence` is applied.
    #[inline]
    pub fn between_batches(&mut self, last_sequence: u64) {
        if self.handover.is_wanted.load(Ordering::Relaxed) {
            self.hand_over(last_sequence);
        }
    }

    #[cold]
    fn hand_over(&mut self, last_sequence: u64) {
        let mut state = self.handover.lock();
        if matches!(*state, IdentifierHandoverState::Wanted(sequence) if sequence <= last_sequence) {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            self.identifiers.write(&mut bytes);
            *state = IdentifierHandoverState::Given(bytes, self.version);
            self.handover.is_wanted.store(false, Ordering::Relaxed);
        }
    }

    pub fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&MAGIC);
        if mutant("drop_identifiers") {
            state.extend_from_slice(&[0; 8]);
            return;
        }
        self.identifiers.write(state);
    }

    pub fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let bytes = state.strip_prefix(&MAGIC).ok_or("it is no snapshot of a command bus")?;
        let mut fields = FieldReader::new(bytes);
        self.identifiers.read(&mut fields).map_err(|error| error.to_string())?;
        match fields.rest() {
            [] => Ok(()),
            rest => Err(format!("{} bytes stand behind it", rest.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identifiers::IdentifierLookup;
    use crate::transaction::{CommandIdentity, write_head};

    const IDENTITY: CommandIdentity = CommandIdentity { identifier: 9, hash: 90 };

    #[test]
    fn snapshot_and_writer_get_identifiers() {
        let handover = Arc::new(IdentifierHandover::default());
        let mut released = ReleasedState::new(IdentifierLimits::default(), Arc::clone(&handover));
        let mut changes = Vec::new();
        write_head(&mut changes, Some(IDENTITY), &[]);
        released.apply(1, 10, b"answer", &changes).unwrap();
        released.apply(2, 20, b"other", &[]).unwrap();
        assert!(released.apply(3, 30, b"", &[7]).is_err());
        released.become_version(2);
        handover.request(2);
        released.between_batches(1);
        assert!(handover.take().is_none());
        released.between_batches(2);
        let (bytes, version) = handover.take().unwrap();
        assert_eq!(version, 2);
        assert!(handover.take().is_none());
        let mut writers = crate::identifiers::Identifiers::new(IdentifierLimits::default());
        writers.read(&mut FieldReader::new(&bytes)).unwrap();
        assert_eq!(writers.find(IDENTITY, 30), IdentifierLookup::Same(b"answer"));

        let (mut state, mut again) = (Vec::new(), Vec::new());
        released.snapshot(&mut state);
        let mut restored = ReleasedState::new(IdentifierLimits::default(), Arc::default());
        restored.restore(&state).unwrap();
        restored.snapshot(&mut again);
        assert_eq!(state, again);
        assert!(restored.restore(&state[1..]).is_err() && restored.restore(&[&state[..], &[0]].concat()).is_err());
        handover.request(5);
        handover.withdraw();
        released.between_batches(5);
        assert!(handover.take().is_none());
    }
}
