//! Before its stop signal, an instance finishes its calls, for at most half of its grace period.

use super::persistence::key;
use super::service::SupervisorDriver;
use super::watched_instance::{PendingDrain, WatchedInstance};
use crate::clock::now_ns;
use crate::config::process::StopSignal;
use crate::instance_name::InstanceName;
use crate::process_facts::session;
use crate::supervision::event::ProcessAction;
use gapless_rpc::domain::read_domain;
use std::collections::BTreeSet;

impl SupervisorDriver {
    /// Processes that serve routes (have counters in the domain), if any of the actions is a graceful stop; otherwise
    /// empty.
    pub fn serving_processes(&self, actions: &[ProcessAction]) -> BTreeSet<u32> {
        let stops = |action: &ProcessAction| matches!(action, ProcessAction::Stop { signal, .. } if *signal != StopSignal::Kill);
        if !actions.iter().any(stops) || !self.config.domain.is_dir() {
            return BTreeSet::new();
        }
        let read = read_domain(&self.config.domain);
        let instances = read.inspect_err(|error| tracing::warn!("{error}")).unwrap_or_default().instances;
        // Routes of an instance's descendants count as its own.
        let with_leader = |pid: u32| [Some(pid), session(pid)].into_iter().flatten();
        instances.into_iter().flat_map(|instance| with_leader(instance.process_id)).collect()
    }

    /// Stops an instance: after a drain if it serves routes, else at once; survivors are killed at `kill_at_ns`. No
    /// signal is repeated after a previous supervisor's.
    pub fn stop(&mut self, instance: &InstanceName, signal: StopSignal, kill_at_ns: u64, serving: &BTreeSet<u32>) {
        let Some(watched) = self.watched.get_mut(instance) else { return };
        watched.kill_descendants_at_ns = if signal == StopSignal::Kill { 0 } else { kill_at_ns };
        let notes = self.notes.get(&key(instance));
        if notes.is_some_and(|notes| notes.signalled_incarnation == watched.incarnation) {
            return;
        }
        let is_serving = watched.process_id.is_some_and(|pid| serving.contains(&pid));
        if is_serving && signal != StopSignal::Kill {
            let until_ns = now_ns() + kill_at_ns.saturating_sub(now_ns()) / 2;
            watched.draining = Some(PendingDrain { signal, until_ns });
        } else {
            watched.signal(signal);
        }
    }

    /// Signals an instance after its drain, which has completed or cannot be observed.
    pub fn note_drained(&mut self, instance: &InstanceName, incarnation: u64) {
        self.watched
            .get_mut(instance)
            .filter(|watched| watched.incarnation == incarnation)
            .map(WatchedInstance::signal_drained);
    }

    /// Ends all drains, as unobservable.
    pub fn give_up_draining(&mut self) {
        self.watched.values_mut().for_each(WatchedInstance::signal_drained);
    }
}
