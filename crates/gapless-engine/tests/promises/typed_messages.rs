//! Timers, notices and events as values: on an event-sourced and on a state-replicated service, over restarts from a
//! snapshot and from the journal, between versions, and at their limits.

use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::{ClientOptions, Incoming};
use gapless_client::{ClientError, PolledClient, SessionKey};
use gapless_engine::store::{Counter, Store};
use gapless_engine::{
    Context, EngineError, NoticesFull, ServiceHost, ServiceHostOptions, StateHandlers, StateService, StreamService,
    StreamServiceOptions,
};
use gapless_message::{Message, State};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::until;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const SECOND_NS: u64 = 1_000_000_000;

/// Asks for a reminder; a text that is asked for again moves its reminder.
#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Remind {
    text: String,
    after_s: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct Forget {
    text: String,
}

#[derive(Serialize, Deserialize, Message)]
#[message(refusal = NoticesFull)]
struct Flood {
    notices: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(request)]
struct SetUnknown;

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Reminder {
    session: u64,
    text: String,
}

#[derive(Serialize, Deserialize, Message)]
struct Unknown;

#[derive(Default, Serialize, Deserialize, State)]
#[state(name = "Clock")]
struct Clock {
    fired: u64,
}

#[gapless_engine::service]
impl Clock {
    #[command]
    fn remind(&mut self, Remind { text, after_s }: Remind, context: &mut Context<'_>) {
        let reminder = Reminder { session: context.session(), text };
        context.set_timer(&reminder, context.time_ns() + after_s * SECOND_NS);
    }

    #[command]
    fn forget(&mut self, Forget { text }: Forget, context: &mut Context<'_>) {
        context.cancel_timer(&Reminder { session: context.session(), text });
    }

    #[command]
    fn flood(&mut self, Flood { notices }: Flood, context: &mut Context<'_>) -> Result<(), NoticesFull> {
        let session = context.session();
        let notice = |number: u64| Reminder { session, text: number.to_string() };
        (0..notices).try_for_each(|number| context.notify(session, &notice(number)))
    }

    #[command]
    fn set_unknown(&mut self, _: SetUnknown, context: &mut Context<'_>) {
        context.set_timer(&Unknown, 1);
    }

    #[timer]
    fn ring(&mut self, reminder: Reminder, context: &mut Context<'_>) {
        self.fired += 1;
        context.notify(reminder.session, &reminder).unwrap();
    }
}

/// The same program a year later.
mod later {
    use super::*;

    #[derive(Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct Reminder {
        pub session: u64,
        pub text: String,
        #[serde(default)]
        #[message(since = 2)]
        pub is_loud: bool,
    }

    #[derive(Default, Serialize, Deserialize, State)]
    #[state(name = "Clock")]
    pub struct Clock {
        fired: u64,
    }

    #[gapless_engine::service]
    impl Clock {
        #[command]
        fn forget(&mut self, Forget { text }: Forget, context: &mut Context<'_>) {
            context.cancel_timer(&Reminder { session: context.session(), text, is_loud: false });
        }

        /// Sets a loud one, and moves the quiet one.
        #[command]
        fn remind(&mut self, Remind { text, after_s }: Remind, context: &mut Context<'_>) {
            let (session, deadline_ns) = (context.session(), context.time_ns() + after_s * SECOND_NS);
            for is_loud in [true, false] {
                context.set_timer(&Reminder { session, text: text.clone(), is_loud }, deadline_ns);
            }
            context.cancel_timer(&Reminder { session, text: "kept".to_owned(), is_loud: true });
        }

        #[timer]
        fn ring(&mut self, reminder: Reminder, context: &mut Context<'_>) {
            self.fired += 1;
            context.notify(reminder.session, &reminder).unwrap();
        }
    }
}

struct Running {
    host: ServiceHost,
    client: PolledClient,
    session: SessionKey,
}

impl Running {
    fn new(host: ServiceHost) -> Self {
        let mut client = host.connect(ClientOptions::default()).unwrap();
        let session = client.open_session(7, 16).unwrap();
        Self { host, client, session }
    }

    fn start(directory: &Path) -> Self {
        let options = ServiceHostOptions::in_directory(directory).with_manual_time();
        Self::new(ServiceHost::start(Clock::default(), options).unwrap())
    }

    fn remind(&mut self, text: &str, after_s: u64) {
        let remind = Remind { text: text.to_owned(), after_s };
        self.client.call_request(self.session, &remind, PATIENCE).unwrap().unwrap();
    }

    fn forget(&mut self, text: &str) {
        self.client.call_request(self.session, &Forget { text: text.to_owned() }, PATIENCE).unwrap().unwrap();
    }

    fn advance(&self, seconds: u64) {
        self.host.advance(Duration::from_secs(seconds)).unwrap();
    }

    fn start_later(directory: &Path) -> Self {
        let options = ServiceHostOptions::in_directory(directory).with_manual_time();
        Self::new(ServiceHost::start(later::Clock::default(), options).unwrap())
    }

    /// The next notices, as the newer program's clients read them.
    fn later_notices(&mut self, count: usize) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        until("the notices", || {
            let taken = self.client.poll(usize::MAX, |incoming| {
                if let Incoming::Notice { notice, .. } = incoming {
                    let reminder = notice.read::<later::Reminder>().unwrap();
                    assert_eq!(notice.read::<Reminder>().is_ok(), !reminder.is_loud, "old clients read old ones");
                    found.push((reminder.text, reminder.is_loud));
                }
            });
            taken.unwrap();
            found.len() >= count
        });
        found
    }

    /// Texts of the next notices.
    fn notices(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        until("the notices", || {
            self.client
                .poll(usize::MAX, |incoming| {
                    if let Incoming::Notice { notice, .. } = incoming {
                        assert!(matches!(notice.read::<Unknown>(), Err(ClientError::Decode { .. })));
                        texts.push(notice.read::<Reminder>().unwrap().text);
                    }
                })
                .unwrap();
            texts.len() >= count
        });
        texts
    }
}

#[test]
fn timers_survive_restarts() {
    for is_from_journal in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let mut running = Running::start(directory.path());
        running.remind("late", 20);
        running.remind("early", 10);
        running.remind("moved", 1);
        running.remind("moved", 30);
        running.remind("forgotten", 5);
        running.forget("forgotten");
        running.forget("never asked for");
        running.host.stop().unwrap();
        if is_from_journal {
            std::fs::remove_dir_all(directory.path().join("snapshots")).unwrap();
        }

        let mut running = Running::start(directory.path());
        running.advance(11);
        assert_eq!(running.notices(1), ["early"]);
        running.advance(30);
        assert_eq!(running.notices(2), ["late", "moved"]);
        running.host.stop().unwrap();
    }
}

#[test]
fn newer_program_takes_older_timers() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = Running::start(directory.path());
    running.remind("kept", 10);
    running.remind("moved", 1);
    running.remind("forgotten", 10);
    running.host.stop().unwrap();
    let mut running = Running::start_later(directory.path());
    running.forget("forgotten");
    running.remind("moved", 20);
    running.advance(11);
    assert_eq!(running.later_notices(1), [("kept".to_owned(), false)]);
    running.host.stop().unwrap();
    let mut running = Running::start_later(directory.path());
    running.advance(30);
    // The first notice was not acknowledged.
    let mut found = running.later_notices(3);
    found.sort();
    let expected = [("kept", false), ("moved", false), ("moved", true)];
    assert_eq!(found, expected.map(|(text, is_loud)| (text.to_owned(), is_loud)));
    running.host.stop().unwrap();
}

#[test]
fn full_notices_are_a_refusal() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = Running::start(directory.path());
    let flood = |running: &mut Running, notices| {
        running.client.call_request(running.session, &Flood { notices }, PATIENCE).unwrap()
    };
    let full = Err(NoticesFull { session: running.client.session_id(running.session).unwrap() });
    assert_eq!(flood(&mut running, 1_025), full, "none of them is sent");
    assert_eq!(flood(&mut running, 1_024), Ok(()));
    assert_eq!(running.notices(1_024), (0..1_024_u64).map(|number| number.to_string()).collect::<Vec<_>>());
    running.host.stop().unwrap();
}

#[test]
fn timer_without_handler_is_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = Running::start(directory.path());
    running.client.send_request(running.session, &SetUnknown).unwrap();
    running.client.flush();
    until("the failure", || running.host.failure().is_some());
    let error = running.host.stop().unwrap_err();
    assert!(error.to_string().contains("panicked at sequence 2"), "{error}");
    assert!(error.to_string().contains("no handler takes timers with Unknown"), "{error}");
}

struct Rings(Counter);

impl StateService for Rings {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.command(|_, _, Remind { text, after_s }: Remind, context| {
            let reminder = Reminder { session: context.session(), text };
            context.set_timer(&reminder, context.time_ns() + after_s * SECOND_NS);
            Ok(())
        });
        handlers.command(|_, _, Forget { text }: Forget, context| {
            context.cancel_timer(&Reminder { session: context.session(), text });
            Ok(())
        });
        handlers.timer(|rings: &Self, store, reminder: Reminder, context| {
            store.add(rings.0, 1).unwrap();
            context.notify(reminder.session, &reminder).unwrap();
        });
    }
}

#[test]
fn state_services_have_typed_timers() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let options = ServiceHostOptions::in_directory(directory.path()).with_manual_time();
        let make = |store: &mut Store| Rings(store.counter(1, "rings"));
        Running::new(ServiceHost::start_state(make, options).unwrap())
    };
    let mut running = start();
    for (text, after_s) in [("late", 20), ("moved", 1), ("moved", 30), ("forgotten", 5)] {
        running.remind(text, after_s);
    }
    running.forget("forgotten");
    running.advance(6);
    running.host.stop().unwrap();
    let mut running = start();
    running.remind("last", 40);
    running.advance(50);
    assert_eq!(running.notices(3), ["late", "moved", "last"]);
    running.host.stop().unwrap();
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Order {
    amount: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Total {
    amount: u64,
}

/// Of another program.
mod foreign {
    use super::*;

    #[derive(Serialize, Deserialize, Message)]
    pub struct Order {
        pub amount: String,
    }
}

#[derive(Default, Serialize, Deserialize, State)]
struct Adder {
    total: u64,
}

#[gapless_engine::service]
impl Adder {
    #[event]
    fn order(&mut self, order: Order, context: &mut Context<'_>) {
        self.total += order.amount;
        context.publish(&Total { amount: self.total });
    }
}

#[test]
fn unread_contract_stops_the_instance() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stream");
    let stream = EventStream::start(&EventStreamOptions::in_directory(&directory)).unwrap();
    let link = || SharedMemoryLink::new(&directory, SharedMemoryOptions::default());
    let mut node = StreamNode::new(link(), StreamNodeOptions::default());
    node.wait_open(PATIENCE).unwrap();
    let service = |skip: &[u64]| {
        let mut options = StreamServiceOptions::new(42);
        options.policy.skip_sequences.extend(skip);
        StreamService::new(Adder::default(), link(), options).unwrap()
    };
    node.publish_message(&Order { amount: 3 }).unwrap();
    node.publish_message(&foreign::Order { amount: "4".to_owned() }).unwrap();
    node.publish_message(&Unknown).unwrap();
    node.publish_message(&Order { amount: 4 }).unwrap();
    let mut stopped = service(&[]);
    let mut outcome = Ok(0);
    until("the foreign order stops it", || {
        node.poll(0, |_| {}).unwrap();
        outcome = stopped.poll(64);
        outcome.is_err()
    });
    let EngineError::MissingMessage { message, sequence, .. } = outcome.unwrap_err() else { panic!("another error") };
    assert_eq!(message, "Order");
    drop(stopped);
    // As the program of an operator who knows that no instance reads it.
    let mut service = service(&[sequence]);
    let mut totals = Vec::new();
    until("both totals", || {
        service.poll(64).unwrap();
        let taken = node.poll(64, |event| {
            let NodeEvent::Message(message) = event else { return };
            if !message.own {
                totals.push(message.read::<Total>().unwrap().amount);
            } else if let Err(error) = message.read::<Order>() {
                assert!(matches!(error, ClientError::Decode { .. }), "{error}");
            }
        });
        taken.unwrap();
        totals.len() == 2
    });
    assert_eq!(totals, [3, 7]);
    assert_eq!(service.dead_letter_count(), 1, "the skipped order is a dead letter; unknown messages belong to others");
    drop(service);
    stream.stop().unwrap();
}
