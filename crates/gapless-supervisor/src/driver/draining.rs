//! Draining: an instance that serves routes finishes its calls before it gets its stop signal.
//!
//! It takes no new calls meanwhile. After half of its grace period it gets the signal regardless.

use super::journal::key;
use super::service::Driver;
use super::watched::{Draining, Watched};
use crate::clock::now_ns;
use crate::config::process::StopSignal;
use crate::copy_name::CopyName;
use crate::process_facts::session;
use crate::supervision::event::Action;
use gapless_rpc::domain::read_domain;
use std::collections::BTreeSet;

impl Driver {
    /// Processes that serve routes, if any of the actions is a graceful stop; otherwise empty. Served routes have
    /// counters in the domain.
    pub fn serving_processes(&self, actions: &[Action]) -> BTreeSet<u32> {
        let stops = |action: &Action| matches!(action, Action::Stop { signal, .. } if *signal != StopSignal::Kill);
        if !actions.iter().any(stops) || !self.config.domain.is_dir() {
            return BTreeSet::new();
        }
        let read = read_domain(&self.config.domain);
        let copies = read.inspect_err(|error| tracing::warn!("{error}")).unwrap_or_default().copies;
        // Routes of an instance's descendants count as its own.
        let with_leader = |pid: u32| [Some(pid), session(pid)].into_iter().flatten();
        copies.into_iter().flat_map(|copy| with_leader(copy.process_id)).collect()
    }

    /// Stops an instance: after a drain if it serves routes, else at once. Survivors are killed at `kill_at_ns`. No
    /// signal is sent if a previous supervisor has sent it.
    pub fn stop(&mut self, copy: &CopyName, signal: StopSignal, kill_at_ns: u64, serving: &BTreeSet<u32>) {
        let Some(watched) = self.watched.get_mut(copy) else { return };
        watched.kill_rest_at_ns = if signal == StopSignal::Kill { 0 } else { kill_at_ns };
        let notes = self.notes.get(&key(copy));
        if notes.is_some_and(|notes| notes.signalled_incarnation == watched.incarnation) {
            return;
        }
        let is_serving = watched.process_id.is_some_and(|pid| serving.contains(&pid));
        if is_serving && signal != StopSignal::Kill {
            let until_ns = now_ns() + kill_at_ns.saturating_sub(now_ns()) / 2;
            watched.draining = Some(Draining { signal, until_ns });
        } else {
            watched.signal(signal);
        }
    }

    /// Signals an instance after its drain, which has completed or cannot be observed.
    pub fn note_drained(&mut self, copy: &CopyName, incarnation: u64) {
        self.watched.get_mut(copy).filter(|watched| watched.incarnation == incarnation).map(Watched::signal_drained);
    }

    /// Ends all drains: their progress cannot be observed any more.
    pub fn give_up_draining(&mut self) {
        self.watched.values_mut().for_each(Watched::signal_drained);
    }
}
