use super::tasks_serve_processes::pair;
use gapless_rpc::{Call, CallContext, CallError, CallOptions, Caller, Domain, Rejection, RouteBuilder, ServedRoute};
use gapless_testkit::wait::{PATIENCE, until};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Waker};
use std::time::Duration;

type Search = Call<String>;

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}

fn told(told: &Receiver<&'static str>) -> &'static str {
    told.recv_timeout(PATIENCE).expect("the handler goes on")
}

/// Awaits the cancellation in a separate task, too, if `both` is set.
fn waits(
    tell: &Sender<&'static str>,
    context: &CallContext,
) -> impl Future<Output = Result<String, Rejection>> + use<> {
    let (tell, first, second) = (tell.clone(), context.cancelled(), context.cancelled());
    let context = context.clone();
    async move {
        let _ = tell.send("begun");
        first.await;
        second.await;
        assert!(context.is_cancelled());
        let _ = tell.send("cancelled");
        Err("too late".into())
    }
}

fn serve(builder: RouteBuilder, tell: Sender<&'static str>) -> ServedRoute {
    builder.handle_async(move |_: String, context: CallContext| waits(&tell, &context)).unwrap()
}

fn start(domain: &Domain, timeout: Option<Duration>) -> Search {
    let caller: Caller<String, String> = domain.caller("search").unwrap();
    let options = CallOptions { timeout, wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    caller.start_with(String::new(), &options)
}

fn every_way(caller: &Domain, handler: &Receiver<&'static str>) {
    for round in 0..3 {
        drop(begun(handler, start(caller, None)));
        assert_eq!(told(handler), "cancelled", "dropped, {round}");
        until_late(handler, |timeout| start(caller, timeout).wait());
        until_late(handler, |timeout| {
            let (tell, end) = channel();
            start(caller, timeout).on_end(move |outcome| tell.send(outcome).unwrap());
            end.recv_timeout(PATIENCE).expect("the callback runs")
        });
    }
}

/// On a busy machine a handler may not begin before the call's timeout: the next call has twice the timeout.
fn until_late(handler: &Receiver<&'static str>, mut call: impl FnMut(Option<Duration>) -> Result<String, CallError>) {
    let mut timeout = Duration::from_millis(30);
    loop {
        let has_begun = match call(Some(timeout)) {
            Err(CallError::TimedOut { begun, .. }) => begun,
            Err(CallError::Refused { .. }) => true,
            other => panic!("{other:?}"),
        };
        if has_begun {
            assert_eq!([told(handler), told(handler)], ["begun", "cancelled"], "its time is over");
            return;
        }
        timeout *= 2;
    }
}

/// Waiting offers the call when its caller discovers the route.
fn begun(handler: &Receiver<&'static str>, mut call: Search) -> Search {
    until("the handler has begun", || {
        assert!(call.wait_for(Duration::from_millis(1)).is_none(), "{call:?}");
        handler.try_recv() == Ok("begun")
    });
    call
}

#[test]
fn cancelled_within_a_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let domain = Domain::in_process("shop");
    let (tell, handler) = channel();
    let served = serve(domain.serve("search").workers(2), tell.clone());
    every_way(&domain, &handler);
    drop(served);
    let spawn = runtime.handle().clone();
    let _served = serve(domain.serve("search").workers(2).tasks(move |task| drop(spawn.spawn(task))), tell);
    every_way(&domain, &handler);
}

#[test]
fn cancelled_between_processes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (_folder, server, client) = pair();
    let (tell, handler) = channel();
    let served = serve(server.serve("search").workers(2), tell.clone());
    every_way(&client, &handler);
    drop(served);
    let spawn = runtime.handle().clone();
    let _served = serve(server.serve("search").workers(2).tasks(move |task| drop(spawn.spawn(task))), tell);
    every_way(&client, &handler);
}

#[test]
fn ready_after_the_answer() {
    let (_folder, server, client) = pair();
    let local = Domain::in_process("shop");
    for (server, client) in [(&server, &client), (&local, &local)] {
        let (leave, left) = channel();
        let handle = move |_: String, context: CallContext| {
            let leave = leave.clone();
            async move {
                let mut early = Box::pin(context.cancelled());
                let is_early = early.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                assert!(!is_early && !context.is_cancelled());
                leave.send((early, context)).unwrap();
                Ok("found".to_owned())
            }
        };
        let _served = server.serve("search").workers(2).handle_async(handle).unwrap();
        let caller: Caller<String, String> = client.caller("search").unwrap();
        let forever = CallOptions { timeout: None, wait_for_route: Some(PATIENCE), ..CallOptions::default() };
        for round in 0..50 {
            let call = caller.start_with(String::new(), &forever);
            let kept = if round % 2 == 0 {
                assert_eq!(call.wait(), Ok("found".to_owned()));
                None
            } else {
                Some(call)
            };
            let (early, context) = left.recv_timeout(PATIENCE).unwrap();
            let (ended, is_told) = channel();
            std::thread::spawn(move || {
                block_on(early);
                let mut late = Box::pin(context.cancelled());
                block_on(late.as_mut());
                block_on(late.as_mut());
                assert!(context.is_cancelled());
                ended.send(()).unwrap();
            });
            is_told.recv_timeout(PATIENCE).expect("no task waits for a call that is over");
            drop(kept);
        }
    }
}

#[test]
fn task_outliving_its_route_is_woken() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (_folder, server, client) = pair();
    let (tell, handler) = channel();
    let spawn = runtime.handle().clone();
    let served = serve(server.serve("search").tasks(move |task| drop(spawn.spawn(task))), tell);
    let call = begun(&handler, start(&client, None));
    served.drain();
    assert!(handler.recv_timeout(Duration::from_millis(200)).is_err(), "draining cancels nothing that has begun");
    drop(call);
    assert_eq!(told(&handler), "cancelled");
}

#[test]
fn awaited_call_is_not_cancelled() {
    let (_folder, server, client) = pair();
    let handle = |_: String, context: CallContext| async move {
        let (mut cancelled, mut task) = (pin!(context.cancelled()), Context::from_waker(Waker::noop()));
        for _ in 0..20 {
            if cancelled.as_mut().poll(&mut task).is_ready() {
                return Err("it was cancelled".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok("found".to_owned())
    };
    for (server, client) in [(&server, &client), (&client, &client)] {
        let _served = server.serve("search").handle_async(handle).unwrap();
        let options = CallOptions { timeout: None, wait_for_route: Some(PATIENCE), ..CallOptions::default() };
        let caller: Caller<String, String> = client.caller("search").unwrap();
        assert_eq!(caller.call_with(String::new(), &options), Ok("found".to_owned()));
    }
}
