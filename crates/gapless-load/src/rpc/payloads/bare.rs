//! The floor of calls within a process: the same payloads, as many in flight, through two channels of the standard
//! library.

use super::content::{TaggedPayloads, is_whole};
use super::cycles::forked_max;
use gapless_measure::FloorRow;
use gapless_measure::statistics::median;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

pub const BARE_CHANNEL: &str = "bare_channel";

/// The first ones warm up the allocator.
const ROUNDS_MIN: usize = 3;

/// Takes about `time`. The payload comes back if there are two `ways`; else the receiver drops it.
#[must_use]
pub fn measure(length: usize, ways: u64, time: Duration) -> FloorRow {
    let payloads = TaggedPayloads::new(length);
    let (forked, mut rates, begun) = (forked_max(length), Vec::new(), Instant::now());
    let (to_worker, requests) = channel::<Vec<u8>>();
    let (to_caller, replies) = channel::<Option<Vec<u8>>>();
    thread::scope(|scope| {
        scope.spawn(move || {
            for request in requests {
                let is_whole = is_whole(&request);
                let reply = if ways == 2 { request } else { Vec::new() };
                if to_caller.send(is_whole.then_some(reply)).is_err() {
                    return;
                }
            }
        });
        while rates.len() < ROUNDS_MIN || begun.elapsed() < time {
            let requests: Vec<Vec<u8>> = (0..forked).map(|call| payloads.of(call).to_vec()).collect();
            let round = Instant::now();
            for request in requests {
                to_worker.send(request).expect("the worker ends after its caller");
            }
            let came: Vec<_> = replies.iter().take(forked as usize).collect();
            rates.push(forked as f64 / round.elapsed().as_secs_f64());
            assert!(came.iter().all(Option::is_some), "a channel hands over all of a payload");
        }
        drop(to_worker);
    });
    let samples = rates.len() as u64 * forked;
    FloorRow {
        name: BARE_CHANNEL.to_owned(),
        payload_bytes: length as u64,
        rate_per_s: Some(median(&rates).round()),
        samples: Some(samples),
        ..FloorRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_hands_over_both_ways() {
        for ways in [1, 2] {
            let floor = measure(100_000, ways, Duration::ZERO);
            assert_eq!((floor.payload_bytes, floor.samples), (100_000, Some(3 * forked_max(100_000))));
            assert!(floor.rate_per_s.is_some_and(|rate| rate > 0.0), "{floor:?}");
        }
    }
}
