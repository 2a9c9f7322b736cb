use gapless_rpc::{CallContext, CallError, CallerAddress, Domain};
use gapless_testkit::wait::until;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::mpsc;
use std::time::Duration;

#[derive(Debug, PartialEq, Deserialize, gapless_rpc::Message)]
struct Moves(u64);

impl Serialize for Moves {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it moves only"))
    }
}

fn address(domain: &Domain, other: &Domain) -> CallerAddress {
    let (tell, told) = mpsc::channel();
    let _desk = domain.serve("desk").handle(move |(): (), context: &CallContext| {
        tell.send(context.caller_address()).unwrap();
        Ok(())
    });
    other.caller::<(), ()>("desk").unwrap().call(()).unwrap();
    told.recv().unwrap()
}

#[test]
fn notices_move_in_order() {
    let domain = Domain::in_process("test");
    let address = address(&domain, &domain);
    assert!(matches!(domain.notify(&address, Moves(0)), Err(CallError::NoRoute { .. })));
    let (tell, told) = mpsc::sync_channel(0);
    let notices = domain.notices(move |notice: Moves, _context| drop(tell.send(notice))).unwrap();
    assert!(domain.notices(|_: Moves, _context| {}).is_err(), "twice");
    let other = domain.notices(|_: String, _context| {}).unwrap();
    for number in 0..100 {
        domain.notify(&address, Moves(number)).unwrap();
    }
    for number in 0..100 {
        assert_eq!(told.recv().unwrap(), Moves(number));
    }
    assert_eq!((notices.statistics().begun, other.statistics().begun), (100, 0));
    let full = (0..10_000).find_map(|number| domain.notify(&address, Moves(number)).err()).unwrap();
    assert!(matches!(full, CallError::Busy { .. }), "{full}");
    drop(told);
    drop(notices);
    assert!(matches!(domain.notify(&address, Moves(0)), Err(CallError::NoRoute { .. })));
}

#[test]
fn incarnations_have_own_addresses() {
    let (_folder, server, client) = super::tasks_serve_processes::pair();
    let (tell, told) = mpsc::channel();
    let _server_side = server.notices(|number: u64, _context| panic!("{number} was for the other")).unwrap();
    let _client_side = client.notices(move |number: u64, _context| tell.send(number).unwrap()).unwrap();
    let (here, there) = (address(&server, &server), address(&server, &client));
    assert_eq!(here.process_id(), there.process_id());
    assert_ne!(here, there);
    server.notify_within(&there, 7_u64, Duration::from_secs(20)).unwrap();
    server.notify_within(&there, 8_u64, Duration::MAX).unwrap();
    assert_eq!([7, 8].map(|_| told.recv_timeout(Duration::from_secs(20))), [Ok(7), Ok(8)]);
    let error = server.notify(&there, Moves(1)).unwrap_err();
    assert!(matches!(error, CallError::NoRoute { .. }), "{error}");
}

#[test]
fn handler_reports_progress() {
    let (_folder, server, client) = super::tasks_serve_processes::pair();
    let alone = Domain::in_process("test");
    for (serving, calling) in [(&server, &client), (&alone, &alone)] {
        let (tell, told) = mpsc::channel();
        let work = |steps: u64, context: &CallContext| {
            (0..steps).try_for_each(|step| context.notify(step)).map_err(|error| error.to_string())?;
            Ok(steps)
        };
        let route = serving.serve("work").handle(work).unwrap();
        let caller = calling.caller::<u64, u64>("work").unwrap();
        let expected = format!("process {} has gone, or receives no notices of u64", std::process::id());
        // While the receiver is unknown, there is no room for it.
        until("it is known", || caller.call(1).unwrap_err().to_string().contains(&expected));
        let receive = move |step: u64, _: &CallContext| tell.send(step).unwrap();
        let _notices = calling.notices(receive).unwrap();
        assert_eq!(caller.call(3), Ok(3));
        for step in 0..3 {
            assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(step));
        }
        drop((caller, route));
    }
    let (tell, told) = mpsc::channel();
    let keep = move |(): (), context: &CallContext| {
        tell.send(context.clone()).unwrap();
        Ok(())
    };
    let route = alone.serve("keep").handle(keep).unwrap();
    alone.caller::<(), ()>("keep").unwrap().call(()).unwrap();
    let context: CallContext = told.recv().unwrap();
    drop((route, alone));
    assert_eq!(context.notify(1_u64), Err(CallError::Closed));
}

#[test]
fn notice_routes_are_reserved() {
    let domain = Domain::in_process("test");
    let error = domain.serve(".notices/1.1/u64").handle(|number: u64, _context| Ok(number)).unwrap_err();
    assert!(error.to_string().contains("reserved for the library"), "{error}");
}
