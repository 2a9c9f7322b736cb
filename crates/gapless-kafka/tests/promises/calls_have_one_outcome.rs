use super::world::{BridgeWorld, MS, ProducerFaults, ROUTE, SECOND, offer};
use gapless_kafka::bridge_core::BridgeInput;
use gapless_kafka::outcome::{CallFailure, CallOutcome};
use gapless_testkit::random::{Random, rounds, seeds};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn outcomes_are_those_of_the_handler() {
    let mut world = BridgeWorld::of(1, &["a", "b"]);
    let numbers = ["hello", "refuse", "panic", "reply 5"].map(|what| world.call(0, what, Some(1_000)));
    world.run_for(SECOND);
    assert_eq!(world.reply(numbers[0]), format!("{} hello by b", numbers[0]));
    let CallOutcome::Refused(refusal) = world.outcome(numbers[1]) else { panic!("no refusal") };
    assert_eq!((refusal.code, &*refusal.payload), (7, &[0, 255][..]));
    assert!(matches!(world.ended(numbers[2]), CallFailure::Panicked { reason } if reason.ends_with("panic by b")));
    assert_eq!(world.reply(numbers[3]), "xxxxx");
    world.check();
}

#[test]
fn a_deadline_ends_and_cancels() {
    let mut world = BridgeWorld::of(2, &["a", "b"]);
    let number = world.call(0, "wait", Some(300));
    world.run_for(299 * MS);
    assert!(world.calls[&number].outcomes.is_empty());
    world.run_for(20 * MS);
    assert_eq!(*world.ended(number), CallFailure::TimedOut { after_ms: 300, begun: true });
    assert_eq!(world.bridges[1].cancelled.len(), 1);
    world.check();
}

#[test]
fn a_caller_that_gives_up_cancels() {
    let mut world = BridgeWorld::of(3, &["a", "b"]);
    let number = world.call(0, "wait", None);
    world.run_for(100 * MS);
    world.give_up(number);
    world.run_for(100 * MS);
    assert_eq!((world.bridges[1].cancelled.len(), world.bridges[0].core.in_flight()), (1, (0, 0)));
    let number = number + 1;
    world.bridges[0].refused_requests.insert(gapless_kafka::effects::RequestId(number));
    world.call(0, "hello", None);
    world.run_for(SECOND);
    assert_eq!(world.handled.get(&number), None);
    world.check();
}

#[test]
fn a_send_ends_when_it_is_appended() {
    let mut world = BridgeWorld::of(4, &["a", "b"]);
    let number = world.call_with(0, "sleep 500", Some(5_000), |head| head.is_one_way = true);
    world.run_for(20 * MS);
    assert_eq!(*world.outcome(number), CallOutcome::Reply(Vec::new()));
    assert!(world.duration_ms(number) < 20);
    world.run_for(SECOND);
    assert_eq!((world.handled[&number], world.bridges[1].core.in_flight()), (1, (0, 0)));
}

#[test]
fn reports_decide_what_has_not_begun() {
    let mut world = BridgeWorld::of(5, &["a", "b"]);
    world.faults = ProducerFaults { refused: 1000, ..ProducerFaults::default() };
    let refused = world.call(0, "hello", Some(1_000));
    world.run_for(100 * MS);
    assert!(matches!(world.ended(refused), CallFailure::NotBegun { attempts: 1, .. }));
    world.faults = ProducerFaults { doubtful: 1000, ..ProducerFaults::default() };
    let doubtful = world.call(0, "hello", Some(1_000));
    world.run_for(100 * MS);
    assert!(matches!(world.ended(doubtful), CallFailure::Unknown { .. }));
    world.faults = ProducerFaults::default();
    world.run_for(SECOND);
    world.check();
}

#[test]
fn random_faults_keep_outcomes() {
    let (mut failures, mut reached) = (Vec::new(), BTreeMap::new());
    let seeds = seeds(rounds(400, 16));
    for seed in seeds.clone() {
        println!("GAPLESS_SEED={seed}");
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(world) => count(&world, &mut reached),
            Err(_) => failures.push(seed),
        }
    }
    assert!(failures.is_empty(), "the seeds {failures:?} fail: GAPLESS_SEED=… repeats one");
    println!("{reached:?}");
    // One seed does not reach everything.
    let missing: Vec<_> = WAYS.iter().filter(|way| !reached.contains_key(**way)).collect();
    assert!(missing.is_empty() || seeds.end - seeds.start < 16, "no call ended so: {missing:?}");
}

/// Parts of printed outcomes.
const WAYS: [&str; 15] = [
    "Reply(",
    "Refused(",
    "Panicked",
    "TimedOut",
    ", which offered it, is ",
    "NoRoute { reason: \"the broker of bridge",
    "has not begun yet",
    "NotBegun { attempts: 1, reason: \"the broker does not have the request",
    "Unknown { attempts: 1, reason: \"the broker may have the request or not",
    "NotBegun { attempts: 1, reason: \"bridge",
    "Unknown { attempts: 1, reason: \"bridge a began again",
    "is silent",
    "began a second time",
    "records of bridge",
    "the broker of bridge",
];

fn count(world: &BridgeWorld, reached: &mut BTreeMap<&'static str, u32>) {
    for (_, outcome) in world.calls.values().flat_map(|call| &call.outcomes) {
        let printed = format!("{outcome:?}");
        for way in WAYS.iter().filter(|way| printed.contains(**way)) {
            *reached.entry(way).or_insert(0) += 1;
        }
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const WHAT: [&str; 7] = ["hello", "sleep 40", "sleep 3000", "refuse", "panic", "reply 9000", "wait"];

fn run(seed: u64) -> BridgeWorld {
    let mut world = BridgeWorld::of(seed, &NAMES);
    let mut random = Random::new(!seed);
    let mut newest = [0, 1, 2];
    let mut numbers = Vec::new();
    for _ in 0..150 {
        let name = random.below(3) as usize;
        let bridge = newest[name];
        let (is_paused, has_ended) = (world.bridges[bridge].is_paused, world.bridges[bridge].ended.is_some());
        match random.below(100) {
            0..70 if !is_paused && !has_ended => numbers.push(call(&mut world, &mut random, bridge)),
            70..75 if !numbers.is_empty() => world.give_up(random.pick(&numbers)),
            75..78 => {
                world.restart(bridge, name as u64 + 1);
                call_around_the_mark(&mut world, newest[(name + 1) % 3]);
            }
            78..80 => {
                newest[name] = world.add(NAMES[name]);
                world.offers(newest[name], vec![offer(ROUTE, &[name as u64 + 1])]);
                call_around_the_mark(&mut world, newest[(name + 1) % 3]);
            }
            80..82 if !is_paused => world.input(bridge, BridgeInput::Stop),
            82..84 if !is_paused && !has_ended => {
                world.bridges[bridge].stop_reading();
                let (incarnation, reason) = (random.number(), "the test says so".to_owned());
                world.input(bridge, BridgeInput::InboxLost { incarnation, reason });
            }
            84..88 if !is_paused => world.pause(bridge),
            84..92 if is_paused => world.resume(bridge),
            92..94 => world.is_broker_down ^= true,
            94..97 => {
                world.faults = ProducerFaults {
                    lost_reports: random.below(20),
                    doubtful: random.below(20),
                    refused: random.below(20),
                    repeated: random.below(20),
                };
            }
            97..99 => world.broker_ahead_ms += random.below(4_000) as i64 - 2_000,
            _ => {}
        }
        world.run_for(random.below(400) * MS);
    }
    (world.is_broker_down, world.faults) = (false, ProducerFaults::default());
    for bridge in 0..world.bridges.len() {
        if world.bridges[bridge].is_paused {
            world.resume(bridge);
        }
    }
    world.run_for(20 * SECOND);
    world.check();
    let mut alive = Vec::new();
    for (name, identity) in NAMES.iter().zip(1..) {
        let of_name = (0..world.bridges.len()).filter(|bridge| world.bridges[*bridge].name == **name);
        let of_name: Vec<_> = of_name.collect();
        let mut living = of_name.iter().filter(|bridge| world.bridges[**bridge].ended.is_none());
        let (first, second) = (living.next().copied(), living.next());
        assert!(second.is_none(), "{first:?} and {second:?} are both {name}");
        let bridge = first.unwrap_or(of_name[0]);
        if first.is_none() {
            world.restart(bridge, identity);
        }
        alive.push(bridge);
    }
    world.run_for(8 * SECOND);
    let after: Vec<_> = alive.iter().map(|bridge| world.call(*bridge, "hello", Some(2_000))).collect();
    world.run_for(3 * SECOND);
    for number in after {
        assert!(world.reply(number).contains("hello by"), "seed {seed}");
    }
    for bridge in alive.iter().map(|bridge| &world.bridges[*bridge]) {
        assert_eq!(bridge.core.in_flight().0, 0, "seed {seed}: {}", bridge.name);
        assert_eq!(bridge.relays[ROUTE].instances.len(), 2, "seed {seed}: {}", bridge.name);
    }
    world
}

fn call_around_the_mark(world: &mut BridgeWorld, bridge: usize) {
    for _ in 0..8 {
        if !world.bridges[bridge].is_paused && world.bridges[bridge].ended.is_none() {
            world.call(bridge, "hello", Some(3_000));
        }
        world.run_for(MS);
    }
}

fn call(world: &mut BridgeWorld, random: &mut Random, bridge: usize) -> u64 {
    let mut what = random.pick(&WHAT).to_owned();
    if random.happens(200) {
        what = format!("{what:4000}");
    }
    let timeout_ms = 50 + random.below(8_000);
    let (key, is_one_way) = (random.below(5), random.happens(100));
    world.call_with(bridge, &what, Some(timeout_ms), |head| {
        head.key = (key > 2).then_some(key);
        head.is_one_way = is_one_way;
    })
}
