use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::{CallContext, CallError, CallOptions, CallerAddress, Domain, DomainOptions, ServedRoute};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;
use std::io::{BufRead, Write as _};
use std::process::Stdio;
use std::sync::{Mutex, mpsc};

const ROLE: &str = "be-a-receiver";

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("notices_keep_order_after_the_call", notices_keep_order_after_the_call)
        .scenario("gone_receiver_is_reported", gone_receiver_is_reported)
        .scenario("unreceived_type_is_reported_at_once", unreceived_type_is_reported_at_once)
        .scenario("slow_receiver_blocks_no_other", slow_receiver_blocks_no_other)
        .scenario("subscription_ends_with_publisher", subscription_ends_with_publisher)
        .scenario("early_notices_wait_for_the_receiver", early_notices_wait_for_the_receiver)
}

/// Calls `desk`, and prints the notices it gets; a notice of [`Ask`] makes it wait for a line.
pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let (line, lines) = mpsc::channel::<String>();
    let lines = Mutex::new(lines);
    let receive = move |told: Told, context: &CallContext| match told {
        Told::Number(number) => println!("{number}"),
        Told::Text(text) => {
            println!("{text} from {}", context.caller().process_id);
            lines.lock().unwrap().recv().unwrap();
        }
        other => println!("{other:?}"),
    };
    let received: Option<ServedRoute> =
        (arguments[1] == "receives").then(|| domain.notices(receive)).transpose().unwrap();
    let patient = CallOptions { wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let caller = domain.caller::<u64, u64>("desk").unwrap();
    println!("called {}", caller.call_with(std::process::id().into(), &patient).unwrap());
    std::io::stdin().lock().lines().map_while(Result::ok).for_each(|each| line.send(each).unwrap());
    drop(received);
    std::process::exit(0);
}

struct Desk {
    folder: tempfile::TempDir,
    domain: Domain,
    addresses: mpsc::Receiver<CallerAddress>,
    _route: ServedRoute,
}

impl Desk {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
        let (tell, addresses) = mpsc::channel();
        let desk = move |number: u64, context: &CallContext| {
            tell.send(context.caller_address()).unwrap();
            Ok(number)
        };
        let _route = domain.serve("desk").handle(desk).unwrap();
        Self { folder, domain, addresses, _route }
    }

    fn receiver(&self, receives: &str) -> (Process, CallerAddress) {
        let mut command = this_program();
        command.arg(ROLE).arg(self.folder.path().join("domain")).arg(receives).stdin(Stdio::piped());
        let mut process = Process::start(&mut command);
        let address = self.addresses.recv_timeout(PATIENCE).unwrap();
        assert_eq!(process.line(), format!("called {}", address.process_id()));
        (process, address)
    }
}

fn notices_keep_order_after_the_call() {
    let desk = Desk::open();
    let (mut first, mut second) = (desk.receiver("receives"), desk.receiver("receives"));
    assert_ne!(first.1, second.1);
    for number in 0..1_000 {
        for (add, (_, address)) in [(0, &first), (10_000, &second)] {
            desk.domain.notify_within(address, Told::Number(number + add), PATIENCE).unwrap();
        }
    }
    for number in 0..1_000 {
        assert_eq!(first.0.line(), number.to_string());
        assert_eq!(second.0.line(), (number + 10_000).to_string());
    }
}

fn gone_receiver_is_reported() {
    let desk = Desk::open();
    let (mut told, untold) = (desk.receiver("receives"), desk.receiver("receives"));
    desk.domain.notify(&told.1, Told::Number(1)).unwrap();
    assert_eq!(told.0.line(), "1");
    let addresses = [told.1, untold.1];
    drop((told, untold));
    let mut later = desk.receiver("receives");
    for address in addresses {
        let is_gone = || matches!(desk.domain.notify(&address, Told::Number(2)), Err(CallError::NoRoute { .. }));
        until("the death is known", is_gone);
        assert!(is_gone());
    }
    desk.domain.notify(&later.1, Told::Number(3)).unwrap();
    assert_eq!(later.0.line(), "3");
}

fn unreceived_type_is_reported_at_once() {
    let desk = Desk::open();
    let (mut receiver, deaf) = (desk.receiver("receives"), desk.receiver("is deaf"));
    for address in [receiver.1, deaf.1] {
        let error = desk.domain.notify_within(&address, Ask::Panic, PATIENCE).unwrap_err();
        assert!(matches!(error, CallError::NoRoute { .. }), "{error}");
        assert_eq!(desk.domain.notify(&address, Ask::Panic), Err(error));
    }
    desk.domain.notify(&receiver.1, Told::Number(1)).unwrap();
    assert_eq!(receiver.0.line(), "1");
    let known = desk.domain.routes(PATIENCE).unwrap().routes;
    assert_eq!((known.len(), known[0].is_hidden()), (1, true), "{known:?}");
    assert!(desk.domain.instance_statistics().unwrap().iter().all(|reading| reading.route == "desk"));
    assert!(desk.domain.caller_statistics().unwrap().iter().all(|reading| reading.route == "desk"));
}

fn slow_receiver_blocks_no_other() {
    let desk = Desk::open();
    let (mut slow, mut quick) = (desk.receiver("receives"), desk.receiver("receives"));
    desk.domain.notify(&slow.1, Told::Text("wait".to_owned())).unwrap();
    assert_eq!(slow.0.line(), format!("wait from {}", std::process::id()));
    let mut sent = 0;
    let error = loop {
        match desk.domain.notify(&slow.1, Told::Number(sent)) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent <= 64, "it has 64 slots");
    };
    assert!(matches!(&error, CallError::Busy { reason, .. } if reason == "its queue is full"), "{error}");
    desk.domain.notify(&quick.1, Told::Number(7)).unwrap();
    assert_eq!(quick.0.line(), "7");
    let mut input = slow.0.input();
    input.write_all(b"go on\n").unwrap();
    for number in 0..sent {
        assert_eq!(slow.0.line(), number.to_string());
    }
    desk.domain.notify(&slow.1, Told::Number(8)).unwrap();
    assert_eq!(slow.0.line(), "8");
}

fn early_notices_wait_for_the_receiver() {
    let desk = Desk::open();
    let (mut hung, doomed, mut quick) =
        (desk.receiver("receives"), desk.receiver("receives"), desk.receiver("receives"));
    [&hung, &doomed].iter().for_each(|(process, _)| process.stop());
    for (process, address) in [&hung, &doomed] {
        for number in 0..64 {
            desk.domain.notify(address, Told::Number(number)).unwrap();
        }
        let full = desk.domain.notify(address, Told::Number(64)).unwrap_err();
        let process_id = process.pid().as_raw_nonzero();
        let expected = format!("process {process_id} has no room for another notice of Told: its queue is full");
        assert_eq!(full.to_string(), expected);
    }
    desk.domain.notify(&quick.1, Told::Number(7)).unwrap();
    assert_eq!(quick.0.line(), "7");
    drop(doomed.0);
    let is_gone = || matches!(desk.domain.notify(&doomed.1, Told::Number(2)), Err(CallError::NoRoute { .. }));
    until("the death is known", is_gone);
    hung.0.signal(Signal::CONT);
    for number in 0..64 {
        assert_eq!(hung.0.line(), number.to_string());
    }
    desk.domain.notify(&hung.1, Told::Number(65)).unwrap();
    assert_eq!(hung.0.line(), "65");
}

fn subscription_ends_with_publisher() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let mut publisher = start(&path, 1, &["progress"]);
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let caller = domain.caller::<Ask, Told>("progress").unwrap();
    let lasting = CallOptions { timeout: None, wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let mut subscription = caller.start_with(Ask::SleepUntilCancelled, &lasting);
    until("it has begun", || {
        domain.instance_statistics().unwrap().iter().any(|instance| instance.statistics.in_flight == 1)
    });
    assert_eq!(subscription.try_take(), None);
    publisher.kill();
    let end = subscription.wait();
    assert!(matches!(end, Err(CallError::Unknown { .. })), "{end:?}");
}
