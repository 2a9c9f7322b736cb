//! Methods of [`CommandWriter`] that its host calls around [`CommandWriter::run`]: leadership, loads, waiting commands.

use super::cache::{AggregateLoad, DueSnapshot, LoadedAggregate};
use super::decision_models::{LoadedModel, ModelLoad};
use super::{CommandStamp, CommandWriter};
use crate::store::IndexKey;
use gapless_wire::fields::{FieldError, FieldReader};
use std::time::Instant;

/// Leadership.
impl CommandWriter {
    /// Prepares to lead: all events after `last_sequence` will be decided here.
    pub fn prepare_to_lead(&mut self, last_sequence: u64) {
        if self.model.decision_models.has_any() {
            self.decision_models.begin_after(last_sequence);
        }
    }

    /// Whether any aggregates are in memory. They may have changed while another member led.
    pub const fn has_aggregates(&self) -> bool {
        self.cache.len() > 0
    }

    /// Drops the aggregates with these keys, because another leader has changed them.
    pub fn drop_aggregates(&mut self, keys: impl IntoIterator<Item = IndexKey>) {
        keys.into_iter().for_each(|key| self.cache.drop_key(key));
    }

    /// Drops all aggregates. They are returned, so that the caller can drop them on another thread.
    pub fn drop_all_aggregates(&mut self) -> impl Send + use<> {
        self.cache.clear()
    }

    /// Begins to lead after `last_sequence`, as that version, with the identifiers of all commands before.
    ///
    /// # Errors
    /// The identifiers do not decode.
    pub fn begin_to_lead(&mut self, last_sequence: u64, identifiers: &[u8], version: u32) -> Result<(), FieldError> {
        self.identifiers.read(&mut FieldReader::new(identifiers))?;
        self.become_version(version);
        self.cache.lead_after(last_sequence);
        Ok(())
    }

    /// Stops leading. Events after `indexed` may be truncated: their aggregates are dropped, and all loads.
    pub fn stop_leading(&mut self, indexed: u64) {
        self.cache.drop_after(indexed);
        self.decision_models.clear();
    }
}

/// One command, from its start to its end or deferral.
impl CommandWriter {
    /// Begins a command, after evictions: events up to `indexed` can be found by the index.
    #[inline]
    pub fn begin_command(&mut self, stamp: &CommandStamp, indexed: u64) {
        self.decision_models.evict_excess(indexed);
        self.cache.evict_excess(indexed);
        self.cache.begin(stamp.session, stamp.number);
    }

    /// Ends the command that has run: waiting commands of the same aggregates may follow.
    #[inline]
    pub fn end_command(&mut self, stamp: &CommandStamp) {
        self.decision_models.release_states(stamp.session);
        self.cache.end();
    }

    /// Defers the command that has run: it waits for the load of an aggregate or of a decision model.
    #[cold]
    pub fn defer_command(&mut self, stamp: &CommandStamp) {
        // Ahead of later commands of its session, even if it waits only for a decision model.
        self.cache.record_arrival();
        self.decision_models.hold_states(stamp.session);
        if !self.decision_models.wait(stamp.session) {
            self.cache.wait();
        }
    }

    /// Keeps the queue position of a command that is not run now, because an earlier one of its session waits. `bytes`
    /// may be a prefix of the command.
    #[cold]
    pub fn keep_queue_position(&mut self, session: u64, number: u64, bytes: &[u8]) {
        self.cache.begin(session, number);
        self.queue_unrun(bytes);
    }
}

/// Waiting commands.
impl CommandWriter {
    /// Next session whose waiting command may be sent again.
    #[inline]
    pub fn next_ready_session(&mut self) -> Option<u64> {
        let ready = self.cache.ready_sessions().pop();
        ready.or_else(|| self.decision_models.ready_sessions().pop())
    }

    /// Removes the waiting commands of a session that is closed.
    pub fn remove_session(&mut self, session: u64) {
        self.decision_models.release_states(session);
        self.cache.remove_session(session);
    }

    /// Ends the turns of sessions that do not come. Returns whether any commands wait.
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

/// Loads and snapshots.
impl CommandWriter {
    /// Numbers of aggregates: those in memory or being loaded, and those being loaded.
    #[inline]
    pub const fn aggregate_counts(&self) -> (usize, usize) {
        (self.cache.len(), self.cache.loading())
    }

    /// Loads of aggregates that were added since the last call; to be drained.
    pub const fn aggregate_loads(&mut self) -> &mut Vec<AggregateLoad> {
        self.cache.loads()
    }

    /// Loads of decision models that were added since the last call; to be drained.
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

    /// States that are to be written to files since the last call; to be drained.
    #[inline]
    pub const fn due_snapshots(&mut self) -> &mut Vec<DueSnapshot> {
        self.cache.snapshots()
    }
}
