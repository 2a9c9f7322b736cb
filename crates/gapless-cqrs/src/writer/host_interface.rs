//! Methods of `CommandWriter` that its host calls around `CommandWriter::run`: leadership, loads, waiting commands.

use super::cache::{AggregateLoad, DueSnapshot, LoadedAggregate};
use super::decision_models::{LoadedModel, ModelLoad};
use super::{CommandStamp, CommandWriter};
use crate::store::IndexKey;
use gapless_wire::fields::{FieldError, FieldReader};
use std::time::Instant;

impl CommandWriter {
    /// All events after `last_sequence` will be decided here.
    pub fn prepare_to_lead(&mut self, last_sequence: u64) {
        if self.model.decision_models.has_any() {
            self.decision_models.begin_after(last_sequence);
        }
    }

    /// Aggregates in memory may have changed while another member led.
    pub const fn has_aggregates(&self) -> bool {
        self.cache.len() > 0
    }

    /// Drops aggregates that another leader has changed.
    pub fn drop_aggregates(&mut self, keys: impl IntoIterator<Item = IndexKey>) {
        keys.into_iter().for_each(|key| self.cache.drop_key(key));
    }

    /// Drops all aggregates; returned, to be dropped on another thread.
    pub fn drop_all_aggregates(&mut self) -> impl Send + use<> {
        self.cache.clear()
    }

    /// `identifiers` are those of all commands up to `last_sequence`.
    ///
    /// # Errors
    /// The identifiers do not decode.
    pub fn begin_to_lead(&mut self, last_sequence: u64, identifiers: &[u8], version: u32) -> Result<(), FieldError> {
        self.identifiers.read(&mut FieldReader::new(identifiers))?;
        self.become_version(version);
        self.cache.lead_after(last_sequence);
        Ok(())
    }

    /// Drops aggregates with events after `indexed`, which may be truncated, and all loads.
    pub fn stop_leading(&mut self, indexed: u64) {
        self.cache.drop_after(indexed);
        self.decision_models.clear();
    }
}

impl CommandWriter {
    /// Begins a command; the index has events up to `indexed`.
    #[inline]
    pub fn begin_command(&mut self, stamp: &CommandStamp, indexed: u64) {
        self.decision_models.evict_excess(indexed);
        self.cache.evict_excess(indexed);
        self.cache.begin(stamp.session, stamp.number);
    }

    /// Ends the command that has run, so that waiting ones may follow.
    #[inline]
    pub fn end_command(&mut self, stamp: &CommandStamp) {
        self.decision_models.release_states(stamp.session);
        self.cache.end();
    }

    /// The command that has run waits for a load.
    #[cold]
    pub fn defer_command(&mut self, stamp: &CommandStamp) {
        // Ahead of later commands of its session, even if it waits only for a decision model.
        self.cache.record_arrival();
        self.decision_models.hold_states(stamp.session);
        if !self.decision_models.wait(stamp.session) {
            self.cache.wait();
        }
    }

    /// Keeps the place of a command behind an earlier one of its session; `bytes` may be a prefix.
    #[cold]
    pub fn keep_queue_position(&mut self, session: u64, number: u64, bytes: &[u8]) {
        self.cache.begin(session, number);
        self.queue_unrun(bytes);
    }
}

impl CommandWriter {
    /// Session whose waiting command may be sent again.
    #[inline]
    pub fn next_ready_session(&mut self) -> Option<u64> {
        let ready = self.cache.ready_sessions().pop();
        ready.or_else(|| self.decision_models.ready_sessions().pop())
    }

    /// Removes the commands of a closed session.
    pub fn remove_session(&mut self, session: u64) {
        self.decision_models.release_states(session);
        self.cache.remove_session(session);
    }

    /// Ends the turns of absent sessions; returns whether any commands wait.
    #[inline]
    pub fn expire_absent_sessions(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let Self { cache, decision_models, .. } = self;
        let has_waiters = cache.has_waiters();
        if has_waiters {
            cache.expire_waiters(now(), |session| decision_models.is_awaited_by(session));
        }
        has_waiters
    }
}

impl CommandWriter {
    /// Aggregates in memory or being loaded, and those being loaded.
    #[inline]
    pub const fn aggregate_counts(&self) -> (usize, usize) {
        (self.cache.len(), self.cache.loading())
    }

    /// Loads since the last call; to be drained.
    pub const fn aggregate_loads(&mut self) -> &mut Vec<AggregateLoad> {
        self.cache.loads()
    }

    /// Loads since the last call; to be drained.
    pub const fn model_loads(&mut self) -> &mut Vec<ModelLoad> {
        self.decision_models.loads()
    }

    /// Stores a loaded aggregate.
    pub fn store_aggregate(&mut self, loaded: LoadedAggregate) {
        self.cache.store_loaded(loaded, &self.model.aggregates);
    }

    /// Stores a loaded state of a decision model.
    pub fn store_model(&mut self, loaded: LoadedModel) {
        self.decision_models.store_loaded(&self.model.decision_models.all, loaded);
    }

    /// States since the last call; to be drained.
    #[inline]
    pub const fn due_snapshots(&mut self) -> &mut Vec<DueSnapshot> {
        self.cache.snapshots()
    }
}
