use super::tasks_serve_processes::pair;
use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, Refusal, Rejection, ServedRoute,
};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

struct Back {
    _served: ServedRoute,
    seen: Receiver<(u64, u8)>,
}

fn back(domain: &Domain) -> Back {
    let (tell, seen) = channel();
    let handle = move |number: u64, context: &CallContext| {
        tell.send((number, context.hops())).unwrap();
        Ok(number + 1)
    };
    Back { _served: domain.serve("back").handle(handle).unwrap(), seen }
}

const TO: [&str; 5] = ["back", "nowhere", "no name", "round", "suspended"];

fn front(domain: &Domain) -> [ServedRoute; 2] {
    let forward =
        |to: &'static str| move |_: u64, context: &CallContext| -> Result<u64, Rejection> { Err(context.forward(to)) };
    let to_any =
        |number: u64, context: &CallContext| -> Result<u64, Rejection> { Err(context.forward(TO[number as usize])) };
    [domain.serve("front").forwards().handle(to_any), domain.serve("round").forwards().handle(forward("round"))]
        .map(Result::unwrap)
}

const BRIEF: Duration = Duration::from_millis(1_500);

fn is_told(reach: &str, caller: &Caller<u64, u64>, back: &Back) {
    let [to_back, to_nowhere, to_no_name, round, suspended] =
        [(0, PATIENCE), (1, PATIENCE), (2, PATIENCE), (3, PATIENCE), (4, BRIEF)].map(|(number, timeout)| {
            caller.call_with(number, &CallOptions { timeout: Some(timeout), ..CallOptions::default() })
        });
    assert_eq!(to_back, Ok(1), "{reach}");
    assert_eq!(back.seen.recv_timeout(PATIENCE), Ok((0, 1)), "{reach}");
    let to_nowhere = to_nowhere.unwrap_err();
    assert!(matches!(&to_nowhere, CallError::Unknown { route, .. } if route == "nowhere"), "{reach}: {to_nowhere:?}");
    let said = to_nowhere.to_string();
    assert!(said.contains("a handler had begun before: no instance serves the route nowhere"), "{reach}: {said}");
    let refused =
        |route: &str, text: &str| Err(CallError::Refused { route: route.to_owned(), refusal: Refusal::new(0, text) });
    let no_name = to_no_name.as_ref().unwrap_err().to_string();
    assert!(
        matches!(&to_no_name, Err(CallError::Refused { refusal: Refusal { code: 0, .. }, .. })),
        "{reach}: {to_no_name:?}"
    );
    assert!(no_name.contains("front sends it on to no name, but "), "{reach}: {no_name}");
    assert_eq!(round, refused("round", "round sends it on to round, but it was forwarded 16 times already"), "{reach}");
    assert!(matches!(suspended, Err(CallError::TimedOut { begun: true, .. })), "{reach}: {suspended:?}");
    for outcome in [to_nowhere, to_no_name.unwrap_err(), round.unwrap_err(), suspended.unwrap_err()] {
        assert!(!outcome.has_not_begun(), "{reach}: {outcome:?}");
    }
    caller.send(0).unwrap();
    assert_eq!(back.seen.recv_timeout(PATIENCE), Ok((0, 1)), "{reach}: what is sent");
}

fn suspended(domain: &Domain) -> ServedRoute {
    let served = domain.serve("suspended").handle(|number: u64, _context| Ok(number)).unwrap();
    served.suspend().unwrap();
    served
}

#[test]
fn inside_a_process() {
    let domain = Domain::in_process("test");
    let (_front, back, _suspended) = (front(&domain), back(&domain), suspended(&domain));
    is_told("here", &domain.caller("front").unwrap(), &back);
}

#[test]
fn from_a_process_to_others() {
    let (_folder, server, client) = pair();
    let (_front, back, _suspended) = (front(&client), back(&server), suspended(&server));
    is_told("from here to others", &client.caller("front").unwrap(), &back);
}

#[test]
fn between_processes() {
    let (_folder, server, client) = pair();
    let (_front, back, _suspended) = (front(&server), back(&server), suspended(&server));
    let caller: Caller<u64, u64> = client.caller("front").unwrap();
    is_told("others", &caller, &back);
    for number in 0..200 {
        caller.send(0).unwrap();
        assert_eq!(back.seen.recv_timeout(PATIENCE), Ok((0, 1)), "{number}");
    }
    (1..=3).for_each(|number| caller.send(number).unwrap());
    until("what was sent has ended", || {
        let counted = caller.statistics();
        (counted.in_flight, counted.refused, counted.unknown, counted.forwarded) == (0, 2, 2, 205)
    });
    assert_eq!(caller.statistics().sent, 204);
}

#[test]
fn through_a_backlog() {
    let (folder, server, client) = pair();
    let (_front, back, _suspended) = (front(&server), back(&server), suspended(&server));
    let overflow = Some(ElasticQueueOptions::new("forwards", folder.path()));
    let options = CallerOptions { overflow, ..CallerOptions::default() };
    is_told("a backlog", &client.caller_with("front", options).unwrap(), &back);
}

#[test]
fn departure_after_forward_is_unknown() {
    let (folder, server, client) = pair();
    let _front = front(&server);
    let other = Domain::open_directory(folder.path().join("domain"), gapless_rpc::DomainOptions::default()).unwrap();
    let route = suspended(&other);
    let caller: Caller<u64, u64> = client.caller("front").unwrap();
    let (tell, told) = channel();
    let options = CallOptions { timeout: None, ..CallOptions::default() };
    caller.start_with(4, &options).on_end(move |outcome| tell.send(outcome).unwrap());
    until("it waits at the second route", || {
        client.caller_statistics().unwrap().iter().any(|row| row.route == "suspended" && row.statistics.offered == 1)
    });
    drop((route, other));
    let outcome = told.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert!(matches!(outcome, CallError::Unknown { .. }), "{outcome:?}");
}
