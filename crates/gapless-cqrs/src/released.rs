//! [`Released`]: what is made of the stream's released transactions on every member alike: the identifiers of commands. Never aggregates: these
//! are folded from the stream, by the writer alone.

use crate::identifiers::{IdentifierLimits, IdentifierLog};
use crate::transaction::RecordedEvents;
use gapless_agent::fault::mutant;
use gapless_wire::fields::FieldReader;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first bytes of its snapshot.
const MAGIC: [u8; 8] = *b"GAPCQRS\x01";

/// See the head of the file.
pub(crate) struct Released {
    identifiers: IdentifierLog,
    /// What the service acts as.
    version: u32,
    handover: Arc<Handover>,
    /// The bytes of a handover, kept for the next one.
    bytes: Vec<u8>,
}

/// How the writer gets the identifiers when it begins to lead.
#[derive(Default)]
pub(crate) struct Handover {
    state: Mutex<HandoverState>,
    /// Whether something is wanted. Written with `state` locked.
    is_wanted: AtomicBool,
}

#[derive(Default)]
enum HandoverState {
    #[default]
    Nothing,
    /// The writer wants them as they are behind this sequence number.
    Wanted(u64),
    /// As [`IdentifierLog::write`] has written them, and the version that the service acts as.
    Given(Vec<u8>, u32),
}

impl Handover {
    /// The writer leads from behind that sequence number on.
    pub fn want(&self, sequence: u64) {
        self.set(HandoverState::Wanted(sequence));
    }

    /// The writer leads no more.
    pub fn withdraw(&self) {
        self.set(HandoverState::Nothing);
    }

    /// What was wanted, once: the bytes of the identifiers, and the version that the service acts as.
    pub fn take(&self) -> Option<(Vec<u8>, u32)> {
        let mut state = self.lock();
        match std::mem::take(&mut *state) {
            HandoverState::Given(bytes, version) => Some((bytes, version)),
            other => {
                *state = other;
                None
            }
        }
    }

    fn set(&self, wanted: HandoverState) {
        let mut state = self.lock();
        // Relaxed: what is wanted is read behind the lock; the thread that misses it is woken, and looks again.
        self.is_wanted.store(matches!(wanted, HandoverState::Wanted(_)), Ordering::Relaxed);
        *state = wanted;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HandoverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Released {
    pub fn new(limits: IdentifierLimits, handover: Arc<Handover>) -> Self {
        Self { identifiers: IdentifierLog::new(limits), version: 1, handover, bytes: Vec::new() }
    }

    /// A transaction is released.
    ///
    /// # Errors
    /// Its bytes are none.
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

    /// The service acts as this version from now on.
    pub const fn become_version(&mut self, version: u32) {
        self.version = version;
    }

    /// Everything up to that sequence number is applied.
    #[inline]
    pub fn between_batches(&mut self, last_sequence: u64) {
        if self.handover.is_wanted.load(Ordering::Relaxed) {
            self.hand_over(last_sequence);
        }
    }

    #[cold]
    fn hand_over(&mut self, last_sequence: u64) {
        let mut state = self.handover.lock();
        if matches!(*state, HandoverState::Wanted(sequence) if sequence <= last_sequence) {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            self.identifiers.write(&mut bytes);
            *state = HandoverState::Given(bytes, self.version);
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

    /// # Errors
    /// What is wrong with the bytes.
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
    use crate::identifiers::Remembered;
    use crate::transaction::{CommandIdentity, write_head};

    const IDENTITY: CommandIdentity = CommandIdentity { identifier: 9, hash: 90 };

    #[test]
    fn a_snapshot_has_the_identifiers_and_the_writer_gets_them() {
        let handover = Arc::new(Handover::default());
        let mut released = Released::new(IdentifierLimits::default(), Arc::clone(&handover));
        let mut changes = Vec::new();
        write_head(&mut changes, Some(IDENTITY), &[]);
        released.apply(1, 10, b"answer", &changes).unwrap();
        released.apply(2, 20, b"other", &[]).unwrap();
        assert!(released.apply(3, 30, b"", &[7]).is_err());
        released.become_version(2);
        handover.want(2);
        released.between_batches(1);
        assert!(handover.take().is_none());
        released.between_batches(2);
        let (bytes, version) = handover.take().unwrap();
        assert_eq!(version, 2);
        assert!(handover.take().is_none());
        let mut writers = crate::identifiers::Identifiers::new(IdentifierLimits::default());
        writers.read(&mut FieldReader::new(&bytes)).unwrap();
        assert_eq!(writers.find(IDENTITY, 30), Remembered::Same(b"answer"));

        let (mut state, mut again) = (Vec::new(), Vec::new());
        released.snapshot(&mut state);
        let mut restored = Released::new(IdentifierLimits::default(), Arc::default());
        restored.restore(&state).unwrap();
        restored.snapshot(&mut again);
        assert_eq!(state, again);
        assert!(restored.restore(&state[1..]).is_err() && restored.restore(&[&state[..], &[0]].concat()).is_err());
        handover.want(5);
        handover.withdraw();
        released.between_batches(5);
        assert!(handover.take().is_none());
    }
}
