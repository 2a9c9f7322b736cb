use super::tasks_serve_processes::pair;
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, Interceptor, Refusal};
use std::sync::Arc;

struct Refusing;

impl Interceptor for Refusing {
    fn before(&self, _route: &str, _options: &mut CallOptions) -> Result<(), Refusal> {
        Err(Refusal::new(403, "not you"))
    }
}

fn refusals(server: &Domain, client: &Domain) {
    let no = |number: u64, _: &_| -> Result<u64, _> { Err(Refusal::new(number as u32, "out of stock").into()) };
    let _route = server.serve("stock/take").handle(no).unwrap();
    let caller: Caller<u64, u64> = client.caller("stock/take").unwrap();
    let said = |code: u64| caller.call(code).unwrap_err().to_string();
    assert_eq!(said(7), "the call of stock/take was refused with code 7: out of stock");
    assert_eq!(said(0), "the call of stock/take was refused: out of stock");
    let options = CallerOptions { interceptors: vec![Arc::new(Refusing)], ..CallerOptions::default() };
    let refused = client.caller_with::<u64, u64>("stock/take", options).unwrap().call(1).unwrap_err();
    assert_eq!(refused.to_string(), "the call of stock/take was refused with code 403: not you");
}

#[test]
fn refusal_names_its_route() {
    let (_folder, server, client) = pair();
    refusals(&server, &client);
    let domain = Domain::in_process("test");
    refusals(&domain, &domain);
}

#[test]
fn attempts_are_in_words() {
    for (attempts, words) in [(0, "after no attempt: it"), (1, "after 1 attempt: it"), (2, "after 2 attempts: it")] {
        let (route, reason) = ("a".to_owned(), "it died".to_owned());
        let not_begun = CallError::NotBegun { route: route.clone(), attempts, reason: reason.clone() };
        let unknown = CallError::Unknown { route, attempts, reason };
        for error in [not_begun, unknown] {
            assert!(error.to_string().contains(words) && error.to_string().contains("call of a"), "{error}");
        }
    }
}
