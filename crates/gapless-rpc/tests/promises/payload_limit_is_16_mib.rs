use super::tasks_serve_processes::pair;
use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Headers, Reach};
use gapless_testkit::wait::PATIENCE;

const LENGTH_MAX: usize = 16 << 20;

fn options() -> CallOptions {
    let headers = Headers::default().with("h", vec![1; gapless_rpc::context::HEADERS_LENGTH_MAX - 7]);
    CallOptions { timeout: Some(PATIENCE), headers, ..CallOptions::default() }
}

#[track_caller]
fn is_too_long(outcome: Result<Vec<u8>, CallError>) {
    let error = outcome.expect_err("it is too long");
    let (length, limit) = ((LENGTH_MAX + 1).to_string(), format!("at most {LENGTH_MAX} are allowed"));
    let is_meant = matches!(&error, CallError::BadMessage { .. });
    assert!(is_meant && error.to_string().contains(&length) && error.to_string().contains(&limit), "{error}");
}

/// Extended by the number in the first byte.
fn echo(mut bytes: Vec<u8>, context: &CallContext) -> Result<Vec<u8>, gapless_rpc::Rejection> {
    assert!(!context.headers().is_empty());
    let more = bytes[0];
    bytes.resize(bytes.len() + usize::from(more), 7);
    Ok(bytes)
}

#[test]
fn between_processes() {
    let (_folder, server, client) = pair();
    let _echo = server.serve("echo").handle(echo).unwrap();
    let forward = |_: Vec<u8>, context: &CallContext| -> Result<Vec<u8>, _> { Err(context.forward("echo")) };
    let _forward = server.serve("forward").handle(forward).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let overflow = Some(ElasticQueueOptions::new("echo", folder.path()));
    let with_overflow = CallerOptions { overflow, reach: Reach::OtherProcesses, ..CallerOptions::default() };
    let callers: [Caller<Vec<u8>, Vec<u8>>; 3] = [
        client.caller("echo").unwrap(),
        client.caller("forward").unwrap(),
        client.caller_with("echo", with_overflow).unwrap(),
    ];
    for caller in callers {
        assert_eq!(caller.call_with(vec![0; LENGTH_MAX], &options()).map(|reply| reply.len()), Ok(LENGTH_MAX));
        is_too_long(caller.call_with(vec![0; LENGTH_MAX + 1], &options()));
        is_too_long(caller.call_with(vec![1; LENGTH_MAX], &options()));
        assert_eq!(caller.call_with(vec![0; 1], &options()), Ok(vec![0]));
    }
}

/// More calls than slots, so that some are queued and on disk.
#[test]
fn through_an_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let open = |slots| {
        let options = DomainOptions { slots, ..DomainOptions::default() };
        Domain::open_directory(folder.path().join("domain"), options).unwrap()
    };
    let (server, client) = (open(64), open(1));
    let route = server.serve("echo").handle(echo).unwrap();
    let mut overflow = ElasticQueueOptions::new("echo", folder.path());
    overflow.memory_bytes_max = LENGTH_MAX;
    let options_of_caller = CallerOptions { overflow: Some(overflow), ..CallerOptions::default() };
    let caller: Caller<Vec<u8>, Vec<u8>> = client.caller_with("echo", options_of_caller).unwrap();
    assert_eq!(caller.call_with(vec![0], &options()), Ok(vec![0]));
    route.suspend().unwrap();
    let calls: Vec<_> = (0..20).map(|_| caller.start_with(vec![0; LENGTH_MAX], &options())).collect();
    assert!(caller.statistics().overflowed >= 18, "{:?}", caller.statistics());
    route.resume().unwrap();
    for call in calls {
        assert_eq!(call.wait().map(|reply| reply.len()), Ok(LENGTH_MAX));
    }
}

#[test]
fn no_limit_inside_a_process() {
    let domain = Domain::in_process("test");
    let _route = domain.serve("echo").handle(echo).unwrap();
    let caller: Caller<Vec<u8>, Vec<u8>> = domain.caller("echo").unwrap();
    let reply = caller.call_with(vec![0; LENGTH_MAX + 1], &options());
    assert_eq!(reply.map(|reply| reply.len()), Ok(LENGTH_MAX + 1));
}

#[test]
fn domain_may_lower_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let open = |payload_length_max| {
        let options = DomainOptions { payload_length_max, ..DomainOptions::default() };
        Domain::open_directory(folder.path().join("domain"), options)
    };
    let error = open(LENGTH_MAX + 1).unwrap_err().to_string();
    assert!(error.contains(&format!("up to {LENGTH_MAX} are possible")), "{error}");
    let (server, client) = (open(LENGTH_MAX).unwrap(), open(100).unwrap());
    let _route = server.serve("echo").handle(echo).unwrap();
    let caller: Caller<Vec<u8>, Vec<u8>> = client.caller("echo").unwrap();
    assert_eq!(caller.call_with(vec![0; 100], &options()).map(|reply| reply.len()), Ok(100));
    for (first, length) in [(0, 101), (1, 100)] {
        let error = caller.call_with(vec![first; length], &options()).unwrap_err().to_string();
        assert!(error.contains("101 bytes; at most 100 are allowed"), "{error}");
    }
}
