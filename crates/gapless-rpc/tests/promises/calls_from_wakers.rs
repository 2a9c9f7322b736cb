use gapless_rpc::{CallOptions, Caller, Domain, DomainOptions, ServedRoute};
use gapless_testkit::wait::PATIENCE;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

fn served() -> (tempfile::TempDir, ServedRoute, Caller<u64, u64>) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let answer = |milliseconds: u64, _: &gapless_rpc::CallContext| {
        std::thread::sleep(Duration::from_millis(milliseconds));
        Ok(milliseconds + 1)
    };
    let served = open().serve("sleep").workers(2).handle(answer).unwrap();
    let caller = open().caller("sleep").unwrap();
    assert_eq!(caller.call_with(0, &patient()), Ok(1));
    (folder, served, caller)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

#[test]
fn panicking_waker_affects_no_other() {
    struct Panics(mpsc::Sender<()>);
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
            panic!("as a test wants it");
        }
    }
    let (_folder, _served, caller) = served();
    let (tell, told) = mpsc::channel();
    let waker = Waker::from(Arc::new(Panics(tell)));
    let mut call = caller.start_with(50, &patient());
    assert!(Pin::new(&mut call).poll(&mut Context::from_waker(&waker)).is_pending());
    told.recv_timeout(PATIENCE).expect("it was woken");
    assert_eq!(call.wait(), Ok(51));
    assert_eq!(caller.call_with(1, &patient()), Ok(2));
    let (tell, told) = mpsc::channel();
    caller.start_with(20, &patient()).on_end(move |end| tell.send(end).unwrap());
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Ok(21)));
}

#[test]
fn a_thread_that_ends_may_call() {
    struct Calls(Caller<u64, u64>, mpsc::Sender<u64>);
    impl Drop for Calls {
        fn drop(&mut self) {
            let number = self.0.call_with(3, &patient()).unwrap();
            self.1.send(number).unwrap();
        }
    }
    thread_local!(static LAST: RefCell<Option<Calls>> = const { RefCell::new(None) });
    let (_folder, _served, caller) = served();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // Set before, so that the library's thread-locals are destroyed first.
        LAST.set(Some(Calls(caller.clone(), tell)));
        assert_eq!(caller.call_with(1, &patient()), Ok(2));
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok(4));
}
