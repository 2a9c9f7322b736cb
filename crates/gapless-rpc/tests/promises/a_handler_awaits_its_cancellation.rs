//! `CallContext::cancelled`: a handler that awaits it goes on when its caller gives the call up, is gone, or has no time left, and not
//! before.

use super::tasks_serve_other_processes::pair;
use gapless_rpc::{Call, CallContext, CallError, CallOptions, Caller, Domain, Rejection, RouteBuilder, ServedRoute};
use gapless_testkit::wait::PATIENCE;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Waker};
use std::time::Duration;

type Search = Call<String>;

/// Of the handler: that it has begun, and how it went on.
fn told(told: &Receiver<&'static str>) -> &'static str {
    told.recv_timeout(PATIENCE).expect("the handler goes on")
}

/// Awaits the end of the call in the handler, and in a task of its own where `both` says so.
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
    let mut call = caller.start_with(String::new(), &options);
    // It is offered.
    assert!(call.wait_for(Duration::from_millis(1)).is_none());
    call
}

/// Gives calls up in every way, and expects the handler to go on each time.
fn every_way(caller: &Domain, handler: &Receiver<&'static str>) {
    for round in 0..3 {
        let call = start(caller, None);
        until_begun(handler, &call);
        drop(call);
        assert_eq!(told(handler), "cancelled", "dropped, {round}");
        let call = start(caller, Some(Duration::from_millis(30)));
        let ended = call.wait();
        assert!(matches!(ended, Err(CallError::TimedOut { .. } | CallError::Refused(_))), "{ended:?}");
        // On a machine with other work it may not have begun.
        if handler.try_recv().is_ok_and(|first| first == "begun") {
            assert_eq!(told(handler), "cancelled", "its time is over, {round}");
        }
        let call = start(caller, Some(Duration::from_millis(50)));
        call.on_end(|_| {});
        if told(handler) == "begun" {
            assert_eq!(told(handler), "cancelled", "a function is told of the end, {round}");
        }
    }
}

fn until_begun(handler: &Receiver<&'static str>, call: &Search) {
    assert_eq!(told(handler), "begun", "{call:?}");
}

#[test]
fn inside_a_process_on_threads_and_as_tasks() {
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
fn from_another_process_on_threads_and_as_tasks() {
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
fn a_task_that_outlives_its_route_is_told_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (_folder, server, client) = pair();
    let (tell, handler) = channel();
    let spawn = runtime.handle().clone();
    let served = serve(server.serve("search").tasks(move |task| drop(spawn.spawn(task))), tell);
    let call = start(&client, None);
    until_begun(&handler, &call);
    served.drain();
    assert!(handler.recv_timeout(Duration::from_millis(200)).is_err(), "draining cancels nothing that has begun");
    drop(call);
    assert_eq!(told(&handler), "cancelled");
}

#[test]
fn a_call_that_is_waited_for_is_not_cancelled() {
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
