//! The instances of a table: arrival, state changes and departure.

use super::RouteTable;
use super::keyed::KeyOwner;
use super::state::{AttachedInstance, InstanceState, TableState};
use crate::registry::Instance;
use gapless_agent::fault::crash_point;
use gapless_log::claim::ClaimState;
use gapless_log::{Bell, Region};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl RouteTable {
    #[cfg(test)]
    pub(crate) fn next_instance_number(&self) -> Option<u32> {
        let mut state = self.lock();
        state.last_number += 1;
        Some(state.last_number)
    }

    /// The instance may claim before it has answered.
    pub(crate) fn expect_instance(&self, number: u32) {
        // Not by `lock`: no task may be woken while the domain is locked.
        let mut state = self.state.lock().expect("nobody panics with the lock");
        state.last_number = state.last_number.max(number);
    }

    /// `identity` is the same for this instance in every calling process.
    pub(crate) fn add_instance(
        &self,
        (number, identity): (u32, u64),
        (bell, eventfd): (Region, OwnedFd),
        (instance_state, stands_for): (InstanceState, Arc<[Instance]>),
    ) {
        let (bell, eventfd) = (Bell::new(bell), Arc::new(eventfd));
        let mut state = self.lock();
        // A route served again has another bell.
        state.instances.retain(|instance| instance.number != number);
        state.keyed.forget(number);
        state.instances.push(AttachedInstance { number, identity, bell, eventfd, state: instance_state, stands_for });
        let taken_back = self.offer_to_relays(&mut state);
        state.wake_waiting();
        // Requests offered before it came are for it, too.
        state.ring(0);
        drop(state);
        taken_back.into_iter().for_each(|slot| self.notice(slot));
    }

    pub(crate) fn set_instance_state(&self, number: u32, to: InstanceState, stands_for: &Arc<[Instance]>) {
        let mut state = self.lock();
        for instance in state.instances.iter_mut().filter(|instance| instance.number == number) {
            (instance.state, instance.stands_for) = (to, Arc::clone(stands_for));
        }
        state.instances_changed();
        let taken_back = self.take_offers_back(&mut state);
        self.sweep(&mut state);
        state.wake_waiting();
        state.ring_all();
        drop(state);
        taken_back.into_iter().for_each(|slot| self.notice(slot));
    }

    /// The instance's requests are lost, but its process may still write.
    pub(crate) fn close_instance(&self, number: u32) {
        let mut state = self.lock();
        let closed: Vec<_> = state.instances.extract_if(.., |instance| instance.number == number).collect();
        state.keyed.forget(number);
        let needs_relay = state.instances_changed();
        let lost = self.lose(&mut state, number);
        if needs_relay {
            self.sweep(&mut state);
        }
        state.ring_all();
        drop(state);
        // The bell is dropped without the lock.
        drop(closed);
        lost.into_iter().for_each(|slot| self.notice(slot));
    }

    /// The instance's process is dead and writes no more.
    pub(crate) fn remove_instance(&self, number: u32) {
        let mut state = self.lock();
        state.instances.retain(|instance| instance.number != number);
        state.keyed.forget(number);
        state.dead.push(number);
        state.instances_changed();
        let lost = self.lose(&mut state, number);
        self.sweep(&mut state);
        // Slots that name the dead instance now will be given back, and no new ones ever name it.
        let is_named = |number: &u32| {
            (0..self.table.shape().slots()).any(|slot| self.table.claim(slot).load().holder() == *number)
        };
        state.dead.retain(is_named);
        state.wake_waiting();
        state.ring_all();
        drop(state);
        lost.into_iter().for_each(|slot| self.notice(slot));
    }

    /// Ends all requests that an instance has, and those that only it may take. Also returns slots that it had
    /// answered, because it may have died before the wake-up. Signal them without the lock.
    fn lose(&self, state: &mut TableState, number: u32) -> Vec<u32> {
        let mut ended = Vec::new();
        for slot in 0..self.table.shape().slots() {
            let claim = self.table.claim(slot);
            let is_lost = claim.revoke(number);
            let seen = claim.load();
            if is_lost || seen.state() == Some(ClaimState::Answered) && seen.holder() == number {
                ended.push(slot);
            }
        }
        crash_point("call_revoked_before_wake");
        ended.iter().for_each(|slot| self.table.wake(*slot));
        ended.extend(self.take_offers_back(state));
        ended
    }

    /// If only relays are open, untargeted requests go to those. Signal the returned slots without the lock.
    fn offer_to_relays(&self, state: &mut TableState) -> Vec<u32> {
        if !state.instances_changed() {
            return Vec::new();
        }
        let taken_back = self.take_back(|_, target| target == 0);
        self.sweep(state);
        taken_back
    }

    /// Takes back requests that no instance has taken and none may take any more. One-way requests stay until an
    /// instance comes, or go to a relay. Signal the returned slots without the lock.
    fn take_offers_back(&self, state: &mut TableState) -> Vec<u32> {
        let mut is_one_way = vec![false; self.slots.len()];
        state.one_way.iter().for_each(|held| is_one_way[held.slot as usize] = true);
        self.take_back(|slot, target| {
            if target == 0 && state.needs_relay {
                return true;
            }
            let may_stay =
                !state.is_closed && state.has_open_instance(target) || is_one_way[slot as usize] && target == 0;
            !may_stay
        })
    }

    /// `is_over` gets a slot and its target (0: any). Signal the returned slots without the lock.
    fn take_back(&self, is_over: impl Fn(u32, u32) -> bool) -> Vec<u32> {
        let is_taken_back = |slot: &u32| {
            let claim = self.table.claim(*slot);
            let target = claim.load().holder();
            is_over(*slot, target) && claim.revoke_offer(target)
        };
        let taken_back: Vec<u32> = (0..self.table.shape().slots()).filter(is_taken_back).collect();
        taken_back.iter().for_each(|slot| self.table.wake(*slot));
        taken_back
    }

    pub(crate) fn open_numbers(&self) -> Vec<u32> {
        self.lock().open_attached().map(|instance| instance.number).collect()
    }

    pub(crate) fn open_instances(&self) -> Vec<(u32, Arc<[Instance]>)> {
        self.lock().open_attached().map(|instance| (instance.number, Arc::clone(&instance.stands_for))).collect()
    }

    pub(crate) fn number_of_identity(&self, identity: u64) -> Option<u32> {
        let state = self.lock();
        let mut ordinary = state.open_attached().filter(|instance| instance.stands_for.is_empty());
        ordinary.find(|instance| instance.identity == identity).map(|instance| instance.number)
    }

    pub(crate) fn key_owner(&self, key: u64) -> KeyOwner {
        self.lock().key_owner(key)
    }

    /// Takes back requests whose keys move now. Signal the returned slots without the lock.
    pub(super) fn move_keys(&self, state: &mut TableState, now_ns: u64) -> Vec<u32> {
        let TableState { keyed, instances, .. } = state;
        let open =
            instances.iter().filter(|instance| instance.state == InstanceState::Open).map(|instance| instance.number);
        let given_away = keyed.find_requests_to_move(|slot| self.table.claim(slot).load(), open, now_ns);
        if given_away.is_empty() {
            return given_away;
        }
        let taken_back = self.take_back(|slot, _| given_away.contains(&slot));
        self.sweep(state);
        taken_back
    }

    pub(crate) fn request_fingerprint(&self) -> u64 {
        // Relaxed: it selects an encoding, and orders no other memory.
        self.request_fingerprint.load(Ordering::Relaxed)
    }

    /// Takes back unclaimed requests, too; [`RouteTable::give_notices`] must be called afterwards.
    pub(crate) fn set_request_fingerprint(&self, fingerprint: u64) {
        // Not by `lock`: no task may be woken while the domain is locked.
        let mut state = self.state.lock().expect("nobody panics with the lock");
        if self.request_fingerprint() != fingerprint {
            self.request_fingerprint.store(fingerprint, Ordering::Relaxed);
            state.taken_back.extend(self.take_back(|_, _| true));
            // Release: pairs with the Acquire in `give_notices`.
            self.has_taken_back.store(true, Ordering::Release);
        }
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let numbers: Vec<u32> = state.instances.iter().map(|instance| instance.number).collect();
        let mut lost: Vec<u32> = numbers.into_iter().flat_map(|number| self.lose(&mut state, number)).collect();
        lost.extend(self.take_offers_back(&mut state));
        state.wake_waiting();
        drop(state);
        lost.into_iter().for_each(|slot| self.notice(slot));
    }
}
