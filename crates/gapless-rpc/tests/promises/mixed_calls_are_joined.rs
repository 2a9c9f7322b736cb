use super::tasks_serve_processes::pair;
use gapless_rpc::caller::together;
use gapless_rpc::{CallContext, CallError, Caller, Domain, Rejection, ServedRoute};
use gapless_testkit::wait::{PATIENCE, until};
use std::future::Future;
use std::time::Duration;

struct Shop {
    _routes: (ServedRoute, ServedRoute, ServedRoute),
    stuck: ServedRoute,
    price: Caller<u64, u64>,
    name: Caller<u64, String>,
    is_there: Caller<u64, bool>,
    never: Caller<u64, Vec<u8>>,
}

impl Shop {
    fn open(server: &Domain, client: &Domain) -> Self {
        let price = server.serve("price").handle(|article: u64, _context| Ok(article * 3)).unwrap();
        let name = server.serve("name").handle(|article: u64, _context| Ok(format!("article {article}"))).unwrap();
        let is_there = server
            .serve("there")
            .handle(|article: u64, _context| if article == 0 { Err("no such".into()) } else { Ok(true) })
            .unwrap();
        let stuck = |_: u64, context: &CallContext| -> Result<Vec<u8>, Rejection> {
            until("nobody waits any more", || context.is_cancelled());
            Ok(Vec::new())
        };
        let stuck = server.serve("stuck").workers(4).handle(stuck).unwrap();
        Self {
            _routes: (price, name, is_there),
            stuck,
            price: client.caller("price").unwrap(),
            name: client.caller("name").unwrap(),
            is_there: client.caller("there").unwrap(),
            never: client.caller("stuck").unwrap(),
        }
    }

    fn nothing_is_under_way(&self) {
        until("what was given up ends", || self.stuck.statistics().in_flight == 0);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn join(server: &Domain, client: &Domain) {
    let shop = Shop::open(server, client);
    let refused = |outcome: &Result<bool, CallError>| matches!(outcome, Err(CallError::Refused { .. }));
    for is_async in [false, true] {
        let calls = (shop.price.start(7), shop.name.start(7), shop.is_there.start(0));
        let (price, name, there) =
            if is_async { block_on(together::all_of_async(calls)) } else { together::all_of(calls) };
        assert_eq!((price, name), (Ok(21), Ok("article 7".to_owned())));
        assert!(refused(&there), "{there:?}");

        // Doubled until the machine answers in time.
        let mut time = Duration::from_millis(100);
        loop {
            let calls = (shop.never.start(1), shop.is_there.start(1), shop.price.start(1));
            let (never, there, price) = if is_async {
                block_on(together::within_of_async(calls, time))
            } else {
                together::within_of(calls, time)
            };
            assert_eq!(never, None);
            assert!(there.iter().all(|there| *there == Ok(true)) && price.iter().all(|price| *price == Ok(3)));
            if there.is_some() && price.is_some() {
                break;
            }
            assert!(time < PATIENCE, "{there:?} and {price:?} within {time:?}");
            time *= 2;
        }
        shop.nothing_is_under_way();
        let calls = (shop.price.start(2), shop.name.start(2));
        assert_eq!(together::within_of(calls, PATIENCE), (Some(Ok(6)), Some(Ok("article 2".to_owned()))));

        let calls = (shop.never.start(1), shop.is_there.start(0), shop.name.start(3), shop.never.start(2));
        let (never, there, name, other) =
            if is_async { block_on(together::first_of_async(calls)) } else { together::first_of(calls) };
        assert_eq!((never, name, other), (None, Some(Ok("article 3".to_owned())), None));
        assert!(there.is_none_or(|outcome| refused(&outcome)), "a refusal is no reply");
        shop.nothing_is_under_way();
        let (one, two) = together::first_of((shop.is_there.start(0), shop.is_there.start(0)));
        assert!(one.is_some_and(|outcome| refused(&outcome)) && two.is_some_and(|outcome| refused(&outcome)));

        let price = || shop.price.start(1);
        let calls = (price(), shop.name.start(1), price(), price(), price(), price(), price(), shop.is_there.start(1));
        let eight = together::all_of(calls);
        assert_eq!((eight.0, eight.1, eight.6, eight.7), (Ok(3), Ok("article 1".to_owned()), Ok(3), Ok(true)));
    }
}

#[test]
fn here_and_elsewhere() {
    let (_folder, server, client) = pair();
    join(&server, &client);
    let domain = Domain::in_process("shop");
    join(&domain, &domain);
}
