use super::tasks_serve_processes::pair;
use gapless_rpc::{CallContext, CallError, CallOptions, CallerOptions, Domain, Headers, Priority, Refusal, Retry};
use std::time::Duration;

#[test]
fn options_of_a_single_call() {
    let call = CallOptions {
        timeout: Some(Duration::from_secs(3600)),
        priority: Priority::High,
        headers: Headers::default().with("tenant", "blue"),
        retry: Retry::Always,
        ..CallOptions::default()
    };
    let told = |(), context: &CallContext| {
        let tenant = String::from_utf8_lossy(context.headers().get("tenant").unwrap_or_default());
        Ok(format!("{} {tenant} {}", context.key(), context.remaining() > Some(Duration::from_secs(60))))
    };
    let inside = Domain::in_process("test");
    let (_folder, server, client) = pair();
    for (server, client) in [(&inside, &inside), (&server, &client)] {
        let _route = server.serve("told").handle(told).unwrap();
        let options = CallerOptions { call: call.clone(), ..CallerOptions::default() };
        let caller = client.caller_with::<(), String>("told", options).unwrap();
        assert_eq!(caller.call_options(), call);
        let changed = CallOptions { key: Some(7), ..caller.call_options() };
        assert_eq!(caller.call_with((), &changed), Ok("7 blue true".to_owned()));
        assert_eq!(caller.call_with((), &CallOptions::default()), Ok("0  false".to_owned()), "as a whole");
    }
}

#[test]
fn nested_error_reaches_the_caller() {
    let inside = Domain::in_process("test");
    let (_folder, server, client) = pair();
    for (server, client) in [(&inside, &inside), (&server, &client)] {
        let refusal = Refusal { code: 409, text: "3 are left".to_owned(), payload: vec![3] };
        let refused = refusal.clone();
        let _stock = server
            .serve("stock")
            .handle(move |wanted: u64, _context| match wanted {
                5 => panic!("five"),
                _ => Err::<u64, _>(refused.clone().into()),
            })
            .unwrap();
        let (stock, nobody) =
            (server.caller::<u64, u64>("stock").unwrap(), server.caller::<u64, u64>("nobody").unwrap());
        let _orders = server
            .serve("orders")
            .handle(move |wanted: u64, _context| Ok(if wanted == 0 { nobody.call(0)? } else { stock.call(wanted)? }))
            .unwrap();
        let orders = client.caller::<u64, u64>("orders").unwrap();
        assert_eq!(orders.call(4), Err(CallError::Refused { route: "orders".to_owned(), refusal }), "as it is");
        for (wanted, code, kind, text) in [
            (0, 0xffff_ff01, "no_route", "no instance serves the route nobody"),
            (5, 0xffff_ff08, "panicked", "the handler of stock panicked: five"),
        ] {
            let Err(CallError::Refused { refusal, .. }) = orders.call(wanted) else {
                panic!("{wanted} was not refused")
            };
            assert_eq!((refusal.code, refusal.failed_call(), &*refusal.text), (code, Some(kind), text));
        }
    }
}

#[test]
fn missing_forwards_is_no_refusal() {
    let domain = Domain::in_process("test");
    let _route = domain.serve("front").handle(|_: u64, context| Err::<u64, _>(context.forward("back"))).unwrap();
    let error = domain.caller::<u64, u64>("front").unwrap().call(1).unwrap_err();
    assert!(matches!(&error, CallError::CannotForward { route, .. } if route == "front"), "{error}");
    assert!(error.to_string().contains("`RouteBuilder::forwards` is missing") && !error.has_not_begun(), "{error}");
}
