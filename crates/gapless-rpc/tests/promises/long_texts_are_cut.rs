use gapless_rpc::{CallContext, CallError, Caller, Domain, DomainOptions, InstanceQuery, Refusal, Rejection};

const LENGTH_MAX: usize = 255;

fn refuses(number: u64, _: &CallContext) -> Result<u64, Rejection> {
    let (text, long) = ("no".to_owned(), "ä".repeat(300));
    Err(Rejection::Refused(match number {
        0 => Refusal { code: 1, text: long, payload: vec![7; 16] },
        1 => Refusal { code: 2, text, payload: vec![7; 300] },
        2 => Refusal { code: 3, text: long, payload: vec![7; 300] },
        _ => panic!("{long}"),
    }))
}

#[test]
fn long_texts_are_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let open = |payload_length_max| {
        let options = DomainOptions { payload_length_max, ..DomainOptions::default() };
        Domain::open_directory(folder.path().join("domain"), options).unwrap()
    };
    let (server, client) = (open(1 << 20), open(LENGTH_MAX));
    let _route = server.serve("refuses").metadata("about", "x".repeat(300)).handle(refuses).unwrap();
    let caller: Caller<u64, u64> = client.caller("refuses").unwrap();
    let refused_as = |refusal| Err(CallError::Refused { route: "refuses".to_owned(), refusal });
    let refused = |code, length: usize, payload: usize| {
        refused_as(Refusal { code, text: "ä".repeat(length), payload: vec![7; payload] })
    };
    // Code and length of the text take 8 bytes, each letter two.
    assert_eq!(caller.call(0), refused(1, (LENGTH_MAX - 8 - 16) / 2, 16));
    assert_eq!(caller.call(1), refused_as(Refusal::new(2, "no")), "a payload is never truncated");
    assert_eq!(caller.call(2), refused(3, (LENGTH_MAX - 8) / 2, 0));
    let (route, reason) = ("refuses".to_owned(), "ä".repeat(LENGTH_MAX / 2));
    assert_eq!(caller.call(3), Err(CallError::Panicked { route, reason }));
    let said = caller.query_instances(InstanceQuery::Info).unwrap().remove(0);
    assert!(matches!(&said, Err(CallError::BadMessage { reason, .. }) if reason.contains("at most 255")), "{said:?}");
    assert_eq!(caller.query_instances(InstanceQuery::Ping).unwrap(), [Ok(String::new())]);
}
