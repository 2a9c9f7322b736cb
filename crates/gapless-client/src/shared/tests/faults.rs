//! Random faults of a service: no command has two effects, and the end of each call is true.

use super::reconnecting::Server;
use super::*;
use crate::CommandNumber;
use gapless_testkit::random::{Random, printed_seed, rounds};
use std::collections::VecDeque;

const WORKERS: u64 = 6;
const NAMES: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Effect,
    NoEffect,
    Unknown(CommandNumber),
    Dropped,
}

fn end(name: u64, reply: Result<u64, CallError<gapless_message::NoRefusal>>) -> End {
    match reply {
        Ok(length) => {
            assert_eq!(length, length_of(name), "the reply of another command");
            End::Effect
        }
        Err(CallError::Unknown { number, .. }) => End::Unknown(number),
        Err(error) => {
            assert_eq!(error.took_effect(), Some(false), "{error}");
            End::NoEffect
        }
    }
}

const fn length_of(name: u64) -> u64 {
    9 + name % 61
}

fn call(client: &Client, name: u64) -> Call<Bytes> {
    let mut bytes = name.to_le_bytes().to_vec();
    bytes.resize(length_of(name) as usize, 7);
    client.call(Bytes(bytes))
}

/// Calls, and returns the end of each.
fn work(client: &Client, worker: u64, calls: u64, mut random: Random) -> Vec<(u64, End)> {
    let mut ends = Vec::new();
    let mut started = VecDeque::new();
    for name in worker * NAMES..worker * NAMES + calls {
        let limit = Duration::from_millis(random.pick(&[1, 5, 20, 120_000, 120_000]));
        let mut call = call(client, name).within(limit);
        match random.below(4) {
            0 => ends.push((name, end(name, block_on(call)))),
            1 => ends.push((name, end(name, call.wait()))),
            kind => {
                call.start();
                if kind == 2 && random.happens(300) {
                    (0..random.below(300)).for_each(|_| std::thread::yield_now());
                    ends.push((name, End::Dropped));
                } else {
                    started.push_back((name, call));
                }
            }
        }
        while started.len() > random.below(30) as usize {
            let Some((name, call)) = started.pop_front() else { break };
            ends.push((name, end(name, if random.happens(500) { block_on(call) } else { call.wait() })));
        }
        let asked = if random.happens(500) {
            ends.len().checked_sub(1)
        } else {
            Some(random.below(ends.len() as u64) as usize)
        };
        if let Some((name, End::Unknown(number))) = asked.and_then(|asked| ends.get(asked)).copied() {
            let outcome = client.outcome::<Bytes>(number).within(Duration::from_millis(random.pick(&[1, 10, 300])));
            ends.push((name, end(name, if random.happens(500) { block_on(outcome) } else { outcome.wait() })));
        }
    }
    ends.extend(started.into_iter().map(|(name, call)| (name, end(name, call.wait()))));
    ends
}

fn do_harm(server: &Server, random: &mut Random) {
    let with = |work: fn(&mut Sessions)| work(&mut server.sessions.lock().unwrap());
    let wait = |random: &mut Random| std::thread::sleep(Duration::from_micros(random.below(4_000)));
    match random.below(8) {
        0 => server.disconnect(),
        1 => with(|sessions| sessions.open.clear()),
        2 => server.be_restored(),
        3 => {
            with(|sessions| sessions.is_mute = true);
            wait(random);
            with(|sessions| sessions.is_mute = false);
            server.disconnect();
        }
        4 => {
            with(|sessions| sessions.holds = true);
            wait(random);
            with(|sessions| sessions.open.clear());
            wait(random);
            with(|sessions| sessions.holds = false);
        }
        5 => {
            with(|sessions| sessions.holds = true);
            wait(random);
            server.disconnect();
            with(|sessions| sessions.holds = false);
        }
        6 => {
            with(|sessions| sessions.holds = true);
            wait(random);
            with(|sessions| sessions.expiring = 2);
            server.disconnect();
            with(|sessions| sessions.holds = false);
        }
        _ => with(|sessions| sessions.refused = 2),
    }
    wait(random);
    wait(random);
}

#[test]
fn ends_are_true_after_faults() {
    let seed = printed_seed();
    for round in 0..rounds(50, 3) {
        let random = |name: &str| Random::of(seed, &format!("{name} of {round}"));
        let server = Server::start(1 << 14);
        let client = server.client(1 + round as usize % 3);
        let ends: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (client, random) = (client.ordered(worker), random(&format!("worker {worker}")));
                    scope.spawn(move || work(&client, worker, 150, random))
                })
                .collect();
            let mut random = random("faults");
            while !workers.iter().all(|worker| worker.is_finished()) {
                do_harm(&server, &mut random);
            }
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        let effects = server.sessions.lock().unwrap().effects.clone();
        for worker in 0..WORKERS {
            let of_worker: Vec<_> = effects.iter().filter(|name| *name / NAMES == worker).collect();
            assert!(of_worker.is_sorted_by(|one, next| one < next), "in order, and once: {of_worker:?}");
        }
        let mut counts = [0; 2];
        for (name, end) in ends {
            let has_effect = effects.contains(&name);
            assert!(!(end == End::Effect && !has_effect || end == End::NoEffect && has_effect), "{name}: {end:?}");
            counts[usize::from(has_effect)] += 1;
        }
        println!("{} connections, {counts:?} without and with an effect", server.connections());
    }
}
