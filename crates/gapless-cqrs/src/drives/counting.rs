//! Counters and traces of commands.

use super::{Direct, Drive, Pipelined};
use crate::samples::{Account, AccountCommand, Transfer, TransferHandler};
use crate::{
    Aggregate as _, AggregateOptions, BusOptions, CommandCounters, CommandHandler as _, CommandHost, CommandModel,
    HandlerInterceptor, InterceptedCommand,
};
use gapless_engine::ServiceHostOptions;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

over! {
    Pipelined as pipelined: commands_are_counted_by_outcome;
    Direct as direct: commands_are_counted_by_outcome;
}

fn commands_are_counted_by_outcome<D: Drive>() {
    let directory = tempfile::tempdir().unwrap();
    for path in [Some(directory.path().join("bank")), None] {
        let mut bus = D::start(path.as_deref());
        bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        bus.call(Account::command(&2, &AccountCommand::Open)).unwrap();
        for _ in 0..3 {
            bus.call(Account::command(&1, &AccountCommand::Many(5)).identified_by(1)).unwrap();
        }
        bus.call(TransferHandler::command(&Transfer { from: 1, to: 2, amount: 1 })).unwrap();
        let failing = [
            Account::command(&1, &AccountCommand::Open),
            Account::command(&1, &AccountCommand::Deposit(1)).identified_by(1),
            Account::command(&1, &AccountCommand::Deposit(1)).expecting_version(99),
            Account::command(&3, &AccountCommand::Deposit(1)),
            Account::command(&1, &AccountCommand::Withdraw(1000)),
            Account::command(&1, &AccountCommand::Panic),
        ];
        for outcome in bus.call_all(failing.into()) {
            assert!(outcome.is_err());
        }
        assert!(bus.call(Account::command(&2, &AccountCommand::Poison)).is_err());
        bus.call(Account::command(&2, &AccountCommand::Deposit(1))).unwrap();
        gapless_testkit::wait::until("all aggregates are in memory", || {
            let _ = bus.call(Account::command(&3, &AccountCommand::Note));
            bus.counters().aggregates == 2
        });
        let counted = bus.counters();
        let expected = CommandCounters {
            accepted: 5,
            events: 10,
            refused: 1,
            not_found: counted.not_found,
            already_exists: 1,
            conflicts: 1,
            repeated: 2,
            identifiers_reused: 1,
            failed: 2,
            put_off: counted.put_off,
            aggregates: 2,
            loaded: 1,
            ..CommandCounters::default()
        };
        assert_eq!(counted, expected);
        assert!(counted.not_found >= 2);
        bus.stop();
    }
}

#[derive(Clone, Default)]
struct TraceLog(Arc<Mutex<Vec<String>>>, Arc<AtomicU64>);

struct SpanLine(String);

impl Visit for SpanLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for TraceLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == crate::host::TRACE_TARGET || *metadata.level() == Level::WARN
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = SpanLine(span.metadata().name().to_owned());
        span.record(&mut line);
        self.0.lock().unwrap().push(line.0);
        Id::from_u64(self.1.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = SpanLine("of the last".to_owned());
        values.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = SpanLine("event".to_owned());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn command_is_traced_until_release() {
    // A second subscriber is needed: with a single one, the first thread that reaches a call site would decide for all
    // whether it is enabled.
    let _other = tracing::Dispatch::new(TraceLog::default());
    let notes = TraceLog::default();
    let lines = Arc::clone(&notes.0);
    tracing::subscriber::with_default(notes, || {
        let mut bus = Direct::start(None);
        let opened = bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        assert!(bus.call(Account::command(&2, &AccountCommand::Note)).is_err());
        let (first, second) = (opened.position.sequence, opened.position.sequence + 1);
        gapless_testkit::wait::until("both are released", || {
            bus.0.turn();
            lines.lock().unwrap().len() >= 6
        });
        let all = lines.lock().unwrap().clone();
        let place = |line: &str| all.iter().position(|each| each.contains(line)).unwrap_or_else(|| panic!("{all:?}"));
        let accepted = place("of the last outcome=\"Accepted\"");
        assert!(place(&format!("command sequence={first} session=")) < accepted);
        assert!(accepted < place(&format!("event message=released sequence={first} session=")));
        assert!(place("outcome=\"NotFound\"") < place(&format!("released sequence={second} session=")));
        bus.stop();
    });
}

struct GateInterceptor(Arc<Mutex<()>>);

impl HandlerInterceptor for GateInterceptor {
    fn before(&mut self, _: &InterceptedCommand<'_>) -> Result<(), String> {
        drop(self.0.lock().unwrap());
        Ok(())
    }
}

#[test]
fn waiting_handle_is_logged() {
    let _other = tracing::Dispatch::new(TraceLog::default());
    let notes = TraceLog::default();
    let (lines, gate) = (Arc::clone(&notes.0), Arc::<Mutex<()>>::default());
    let model = CommandModel::new().aggregate::<Account>().interceptor(GateInterceptor(Arc::clone(&gate)));
    let host = CommandHost::start(model, AggregateOptions::default(), ServiceHostOptions::in_memory()).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    let (closed, is_closed) = std::sync::mpsc::channel();
    let opens = std::thread::spawn(move || {
        let held = gate.lock().unwrap();
        closed.send(()).unwrap();
        gapless_testkit::wait::until("it is said", || {
            lines
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.contains("no command has an outcome") && line.contains("waited_s=2"))
        });
        drop(held);
    });
    is_closed.recv().unwrap();
    tracing::subscriber::with_default(notes, || bus.call(Account::command(&1, &AccountCommand::Open)).unwrap());
    opens.join().unwrap();
    host.stop().unwrap();
}
