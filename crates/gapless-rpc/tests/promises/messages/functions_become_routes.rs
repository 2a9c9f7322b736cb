use gapless_rpc::{CallContext, CallError, CallOptions, Domain, DomainOptions, Message, Rejection, route};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Serialize, Deserialize, Message)]
struct Add {
    left: i64,
    right: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Sum {
    value: i64,
}

#[route("calculator/add")]
fn add(request: Add, context: &CallContext) -> Result<Sum, Rejection> {
    let value = request.left.checked_add(request.right).ok_or_else(|| format!("{} overflows", context.route()))?;
    Ok(Sum { value })
}

#[route]
async fn double(request: Sum) -> Sum {
    Sum { value: std::future::ready(request.value * 2).await }
}

fn serves_and_calls(domain: &Domain) {
    let _added = add::serve(domain).unwrap();
    let _doubled = double::serve_by(domain.serve(double::NAME).workers(2)).unwrap();
    let options = CallOptions { wait_for_route: Some(Duration::from_secs(30)), ..CallOptions::default() };
    let adder = add::caller(domain).unwrap();
    assert_eq!(adder.call_with(Add { left: 2, right: 3 }, &options), Ok(Sum { value: 5 }));
    match adder.call_with(Add { left: i64::MAX, right: 1 }, &options) {
        Err(CallError::Refused { refusal, .. }) => assert_eq!(refusal.text, "calculator/add overflows"),
        other => panic!("a refusal is expected, {other:?} was found"),
    }
    assert_eq!(double::caller(domain).unwrap().call_with(Sum { value: 4 }, &options), Ok(Sum { value: 8 }));
}

#[test]
fn inside_a_process() {
    serves_and_calls(&Domain::in_process("here"));
}

#[test]
fn in_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    serves_and_calls(&Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap());
}
