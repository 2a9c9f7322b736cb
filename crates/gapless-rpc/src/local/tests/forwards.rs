//! Forwarding: the value goes on, the caller waits for the last route, and nothing is lost on the way.

use super::*;
use crate::local::{ForwardSupport, ForwardedRequest, HOPS_MAX};
use crate::outcome::CallError;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

type Routes = Arc<OnceLock<Mutex<HashMap<String, Route>>>>;

fn routes(names: &[&str]) -> Routes {
    let routes: Routes = Arc::default();
    let map = names.iter().map(|name| {
        let known = Arc::downgrade(&routes);
        let hook = move |forwarded: ForwardedRequest<u64, u64>| {
            let known = known.upgrade().unwrap();
            let target = known.get().unwrap().lock().unwrap().get(&forwarded.route).cloned();
            match target.map(|target| target.adopt(forwarded)) {
                Some(Ok(())) | None => {}
                Some(Err(back)) => back.0.answer.end(Err(back.1)),
            }
        };
        let forwarding = Some(ForwardSupport { keep: Some(|request| Some(*request)), hook: Arc::new(hook) });
        (name.to_string(), Route::new(name, LocalOptions { forwarding, ..LocalOptions::default() }).unwrap())
    });
    routes.set(Mutex::new(map.collect())).unwrap();
    routes
}

fn get(routes: &Routes, name: &str) -> Route {
    routes.get().unwrap().lock().unwrap()[name].clone()
}

#[test]
fn last_route_answers_a_forward() {
    let routes = routes(&["front", "back"]);
    let front = serve(&get(&routes, "front"), |_, context| Err(context.forward("back")));
    let back = serve(&get(&routes, "back"), |request, context| {
        assert_eq!((context.route(), context.hops()), ("back", 1));
        Ok(request + 1)
    });
    for request in 0..100 {
        assert_eq!(call(&get(&routes, "front"), request).wait(Waiting::Park), Ok(request + 1));
    }
    get(&routes, "front").send(1, LocalOffer::default()).unwrap();
    get(&routes, "front").drain();
    assert_eq!(front.join().unwrap(), 101);
    get(&routes, "back").drain();
    assert_eq!(back.join().unwrap(), 101);
}

#[test]
fn circular_forward_ends() {
    let routes = routes(&["round"]);
    let round = serve(&get(&routes, "round"), |_, context| Err(context.forward("round")));
    let Err(CallError::Refused { refusal, .. }) = call(&get(&routes, "round"), 1).wait(Waiting::Park) else { panic!() };
    assert!(refusal.text.contains("16 times"), "{refusal}");
    get(&routes, "round").drain();
    assert_eq!(round.join().unwrap(), u64::from(HOPS_MAX) + 1);
}

#[test]
fn missing_target_is_unknown() {
    let routes = routes(&["front", "back"]);
    let front = serve(&get(&routes, "front"), |_, context| Err(context.forward("nowhere")));
    assert!(matches!(call(&get(&routes, "front"), 1).wait(Waiting::Park), Err(CallError::Unknown { .. })));
    get(&routes, "front").drain();
    front.join().unwrap();
    let called = waiting_at(&get(&routes, "back"));
    get(&routes, "back").withdraw();
    let error = called.wait(Waiting::Park).unwrap_err();
    assert!(matches!(error, CallError::Unknown { .. }) && !error.has_not_begun());
}

fn waiting_at(back: &Route) -> crate::local::LocalCall<u64> {
    let back = back.clone();
    let hook = move |forwarded| assert!(back.adopt(forwarded).is_ok());
    let forwarding = Some(ForwardSupport { keep: None, hook: Arc::new(hook) });
    let front = Route::new("front", LocalOptions { forwarding, ..LocalOptions::default() }).unwrap();
    let mut worker = front.worker().unwrap();
    let called = call(&front, 1);
    let incoming = next(&mut worker);
    incoming.answer.forward("back", incoming.request);
    called
}

#[test]
fn forward_without_a_hook_is_an_error() {
    let route = route();
    let serving = serve(&route, |_, context| Err(context.forward("back")));
    let error = call(&route, 1).wait(Waiting::Park).unwrap_err();
    assert!(matches!(&error, CallError::CannotForward { route, .. } if route == "test"), "{error}");
    assert!(
        error.to_string().ends_with("on to back, but `RouteBuilder::forwards` is missing where the route is served")
    );
    route.drain();
    serving.join().unwrap();
}
