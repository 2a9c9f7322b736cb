#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_macros::route;
use mock::{CallContext, Caller, Domain, Rejection, RouteBuilder};
use std::fmt;

/// Minimal implementation of the interface in the macro's documentation. Values travel as `dyn Any`.
mod mock {
    use std::any::Any;
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::marker::PhantomData;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    type Handler = Rc<dyn Fn(Box<dyn Any>, &CallContext) -> Result<Box<dyn Any>, Rejection>>;
    type Routes = Rc<RefCell<HashMap<String, Handler>>>;

    #[derive(Debug, PartialEq)]
    pub struct RpcError(pub String);
    #[derive(Debug, PartialEq)]
    pub struct Rejection(pub String);
    #[derive(Clone)]
    pub struct CallContext {
        pub route: String,
    }
    #[derive(Debug)]
    pub struct ServedRoute(pub String);
    #[derive(Default)]
    pub struct Domain(Routes);
    pub struct RouteBuilder(Routes, String);
    pub struct Caller<Request, Reply>(Handler, String, PhantomData<(Request, Reply)>);

    impl Domain {
        pub fn serve(&self, name: &str) -> RouteBuilder {
            RouteBuilder(self.0.clone(), name.to_owned())
        }

        pub fn caller<Request: 'static, Reply: 'static>(&self, name: &str) -> Result<Caller<Request, Reply>, RpcError> {
            let found = self.0.borrow().get(name).cloned();
            Ok(Caller(found.ok_or_else(|| RpcError(format!("no {name}")))?, name.to_owned(), PhantomData))
        }
    }

    impl RouteBuilder {
        pub fn handle<Request: 'static, Reply: 'static, F>(self, handler: F) -> Result<ServedRoute, RpcError>
        where
            F: Fn(Request, &CallContext) -> Result<Reply, Rejection> + Clone + Send + Sync + 'static,
        {
            let handler: Handler = Rc::new(move |request, context| {
                let reply = handler(*request.downcast().expect("the request's type"), context)?;
                Ok(Box::new(reply))
            });
            self.0.borrow_mut().insert(self.1.clone(), handler);
            Ok(ServedRoute(self.1))
        }

        pub fn handle_async<Request: 'static, Reply: 'static, F, Fut>(self, handler: F) -> Result<ServedRoute, RpcError>
        where
            F: Fn(Request, CallContext) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<Reply, Rejection>> + Send,
        {
            self.handle(move |request, context: &CallContext| {
                let mut future = pin!(handler(request, context.clone()));
                match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => panic!("the tests' functions do not wait"),
                }
            })
        }
    }

    impl<Request: 'static, Reply: 'static> Caller<Request, Reply> {
        pub fn call(&self, request: Request) -> Result<Reply, Rejection> {
            let reply = (self.0)(Box::new(request), &CallContext { route: self.1.clone() })?;
            Ok(*reply.downcast().expect("the reply's type"))
        }
    }
}

#[derive(Debug, PartialEq)]
struct Add(i32, i32);
#[derive(Debug, PartialEq)]
pub struct Sum(i32);

struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too large")
    }
}

impl From<TooLarge> for Rejection {
    fn from(reason: TooLarge) -> Self {
        Self(reason.to_string())
    }
}

#[route(crate = mock)]
fn add(Add(left, right): Add, context: &CallContext) -> Result<Sum, Rejection> {
    left.checked_add(right).map(Sum).ok_or_else(|| Rejection(format!("{} overflows", context.route)))
}

#[route(name = "calculator/negate", crate = crate::mock)]
fn negate(mut request: Sum) -> Sum {
    request.0 = -request.0;
    request
}

#[route(crate = mock)]
async fn double(request: Sum, context: CallContext) -> Result<Sum, TooLarge> {
    assert_eq!(context.route, "double");
    request.0.checked_mul(2).map(Sum).ok_or(TooLarge)
}

#[route(crate = mock)]
async fn route_name(_: (), context: &CallContext) -> String {
    std::future::ready(context.route.clone()).await
}

#[route(crate = mock)]
fn r#match(request: String, context: CallContext) -> std::result::Result<bool, Rejection> {
    Ok(request == context.route)
}

#[route(crate = mock)]
async fn forget(_request: Vec<u8>) -> () {}

#[route(crate = mock)]
#[cfg(not(test))]
fn not_compiled(request: NoSuchType) -> NoSuchType {
    request
}

#[route(crate = mock)]
#[cfg(test)]
fn compiled(request: u8) -> u8 {
    request
}

pub mod others {
    use super::mock;

    #[gapless_macros::route("deep/er.route-1", crate = mock)]
    pub fn deeper(request: super::Sum) -> super::Sum {
        request
    }
}

#[test]
fn each_form_is_served_and_called() {
    let domain = Domain::default();
    assert_eq!(add::caller(&domain).err(), Some(mock::RpcError("no add".into())));
    let served = add::serve(&domain).unwrap();
    assert_eq!((served.0.as_str(), add::NAME), ("add", "add"));
    let caller: Caller<Add, Sum> = add::caller(&domain).unwrap();
    assert_eq!(caller.call(Add(1, 2)), Ok(Sum(3)));
    assert_eq!(caller.call(Add(i32::MAX, 2)), Err(Rejection("add overflows".into())));

    assert_eq!(negate::serve(&domain).unwrap().0, "calculator/negate");
    assert_eq!(negate::caller(&domain).unwrap().call(Sum(2)), Ok(Sum(-2)));

    double::serve(&domain).unwrap();
    assert_eq!(double::caller(&domain).unwrap().call(Sum(2)), Ok(Sum(4)));
    assert_eq!(double::caller(&domain).unwrap().call(Sum(i32::MAX)), Err(Rejection("too large".into())));

    route_name::serve(&domain).unwrap();
    assert_eq!(route_name::caller(&domain).unwrap().call(()), Ok("route_name".into()));
    assert_eq!(r#match::NAME, "match");
    r#match::serve(&domain).unwrap();
    assert_eq!(r#match::caller(&domain).unwrap().call("match".into()), Ok(true));
    forget::serve(&domain).unwrap();
    assert_eq!(forget::caller(&domain).unwrap().call(vec![1]), Ok(()));
    compiled::serve(&domain).unwrap();
    assert_eq!(compiled::caller(&domain).unwrap().call(3), Ok(3));
    others::deeper::serve(&domain).unwrap();
    assert_eq!(others::deeper::NAME, "deep/er.route-1");
}

#[test]
fn function_is_still_callable() {
    assert_eq!(negate(Sum(4)), Sum(-4));
    let context = CallContext { route: "x".into() };
    assert_eq!(add(Add(2, 2), &context), Ok(Sum(4)));
}

#[test]
fn builder_may_use_another_name() {
    let domain = Domain::default();
    let builder: RouteBuilder = domain.serve("minus");
    negate::serve_by(builder).unwrap();
    let caller = domain.caller::<Sum, Sum>("minus").unwrap();
    assert_eq!(caller.call(Sum(1)), Ok(Sum(-1)));
}

#[test]
fn nested_function_can_be_a_route() {
    struct Local(u8);

    #[route(crate = crate::mock)]
    fn inner(request: Local) -> u8 {
        request.0
    }

    let domain = Domain::default();
    inner::serve(&domain).unwrap();
    assert_eq!(inner::caller(&domain).unwrap().call(Local(7)), Ok(7));
    assert_eq!(inner(Local(8)), 8);
}
