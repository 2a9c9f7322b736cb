use super::tasks_serve_processes::pair;
use gapless_rpc::{CallOptions, Caller, InstanceQuery};
use gapless_testkit::wait::{PATIENCE, until};

#[test]
fn a_ping_is_counted_nowhere() {
    let (_folder, server, client) = pair();
    let served = server.serve("increment").handle(|number: u64, _context| Ok(number + 1)).unwrap();
    let caller: Caller<u64, u64> = client.caller("increment").unwrap();
    let patient = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    assert_eq!(caller.call_with(1, &patient), Ok(2));
    // An instance counts the end of a call a moment after its caller has the reply.
    until("the end of the handler", || served.statistics().in_flight == 0);
    let before = (served.statistics(), caller.statistics());
    assert_eq!((before.0.begun, before.0.replied, before.1.offered, before.1.replied), (1, 1, 1, 1));
    for asked in [InstanceQuery::Ping, InstanceQuery::Info, InstanceQuery::Statistics] {
        let said = caller.query_instances(asked).unwrap();
        assert!(matches!(&said[..], [Ok(said)] if said.is_empty() == (asked == InstanceQuery::Ping)), "{said:?}");
    }
    assert_eq!((served.statistics(), caller.statistics()), before);
}
