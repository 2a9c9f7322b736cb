//! [`CommandQueue`]: commands that wait for room in their sessions, in order.

use super::call_state::CallState;
use super::waiting_bound::Waiting;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// One queue for each lane.
#[derive(Default)]
pub(super) struct CommandQueue(Mutex<Vec<VecDeque<Arc<CallState>>>>);

/// Abandoned commands stay in a lane until they outnumber the waiting ones.
const ABANDONED_MIN: usize = 64;

impl CommandQueue {
    pub fn new(lanes: usize) -> Self {
        Self(Mutex::new((0..lanes).map(|_| VecDeque::new()).collect()))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<VecDeque<Arc<CallState>>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn push(&self, state: Arc<CallState>, waiting: &Waiting) {
        self.with(|lanes| {
            let lane = &mut lanes[state.lane];
            lane.push_back(state);
            if lane.len() > ABANDONED_MIN + 2 * waiting.count() {
                lane.retain(|state| !state.is_abandoned());
            }
        });
    }

    /// Moves up to `room(lane)` commands of each lane to `take`, in order.
    pub fn move_out(&self, mut room: impl FnMut(usize) -> usize, mut take: impl FnMut(Arc<CallState>)) {
        self.with(|lanes| {
            for (number, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_empty()) {
                let moved = room(number).min(lane.len());
                lane.drain(..moved).for_each(&mut take);
            }
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::polled::MessageType;
    use crate::shared::call_state::CallKind;
    use gapless_wire::Encoding;

    fn state(lane: usize, waiting: &Waiting) -> Arc<CallState> {
        waiting.enter(1).unwrap();
        Arc::new(CallState::new(
            CallKind::Command,
            lane,
            MessageType { schema: 1, encoding: Encoding::Postcard },
            vec![lane as u8],
        ))
    }

    #[test]
    fn lanes_keep_their_order() {
        let (waiting, queue) = (Waiting::new(100), CommandQueue::new(2));
        let states: Vec<_> = [0, 1, 0, 0, 1].into_iter().map(|lane| state(lane, &waiting)).collect();
        states.iter().for_each(|state| queue.push(Arc::clone(state), &waiting));
        let mut moved = Vec::new();
        queue.move_out(|lane| 2 - lane, |state| moved.push(state));
        queue.move_out(|_| usize::MAX, |state| moved.push(state));
        queue.move_out(|_| usize::MAX, |_| unreachable!("all were moved"));
        let places = |state: &Arc<CallState>| states.iter().position(|known| Arc::ptr_eq(known, state)).unwrap();
        assert_eq!(moved.iter().map(places).collect::<Vec<_>>(), [0, 2, 1, 3, 4]);
    }

    #[test]
    fn abandoned_commands_use_no_memory() {
        let (waiting, queue) = (Waiting::new(100), CommandQueue::new(1));
        let kept = state(0, &waiting);
        queue.push(Arc::clone(&kept), &waiting);
        for _ in 0..10_000 {
            let left = state(0, &waiting);
            queue.push(Arc::clone(&left), &waiting);
            left.give_up(&waiting, String::new);
        }
        assert!(queue.with(|lanes| lanes[0].len()) <= ABANDONED_MIN + 4);
        let mut moved = Vec::new();
        queue.move_out(|_| 1, |state| moved.push(state));
        assert!(Arc::ptr_eq(&moved[0], &kept));
    }
}
