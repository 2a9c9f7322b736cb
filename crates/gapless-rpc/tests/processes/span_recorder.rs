//! A subscriber of `tracing` that keeps the spans of calls.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, OnceLock};
use tracing::Subscriber;
use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub name: String,
    pub parent: Option<u64>,
    pub id: u64,
    pub fields: HashMap<String, String>,
    pub has_closed: bool,
}

impl Recorded {
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub fn to_line(&self) -> String {
        let fields = self.fields.iter().map(|(name, value)| format!("\t{name}={value}")).collect::<String>();
        self.name.clone() + &fields
    }

    pub fn of_line(line: &str) -> Self {
        let mut parts = line.split('\t');
        let name = parts.next().unwrap().to_owned();
        let fields =
            parts.map(|field| field.split_once('=').unwrap()).map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { name, fields: fields.collect(), ..Self::default() }
    }
}

impl Visit for Recorded {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), value.to_owned());
    }
}

#[derive(Clone)]
pub struct SpanRecorder {
    spans: Spans,
    dispatch: Dispatch,
}

type Spans = Arc<Mutex<Vec<Recorded>>>;

impl Default for SpanRecorder {
    fn default() -> Self {
        Self::up_to(LevelFilter::TRACE)
    }
}

impl SpanRecorder {
    pub fn up_to(level: LevelFilter) -> Self {
        // With a single subscriber, `tracing` asks only that of the first thread to reach a span, and caches its
        // answer.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
        let spans = Spans::default();
        let dispatch = Dispatch::new(Registry::default().with(Recording(Arc::clone(&spans))).with(level));
        Self { spans, dispatch }
    }

    pub fn spans(&self) -> Vec<Recorded> {
        self.spans.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn only(&self, name: &str, route: &str) -> Recorded {
        only(&self.spans(), name, route)
    }

    /// Records this thread until the result is dropped.
    pub fn here(&self) -> DefaultGuard {
        dispatcher::set_default(&self.dispatch)
    }

    pub fn record_this_thread(&self) {
        std::mem::forget(self.here());
    }

    pub fn record_this_process(&self) {
        dispatcher::set_global_default(self.dispatch.clone()).unwrap();
    }
}

#[track_caller]
pub fn only(spans: &[Recorded], name: &str, route: &str) -> Recorded {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name && span.field("route") == route).collect();
    assert_eq!(found.len(), 1, "{name} {route} among {spans:#?}");
    found[0].clone()
}

struct Recording(Spans);

impl Recording {
    fn with(&self, id: &Id, change: impl FnOnce(&mut Recorded)) {
        let mut spans = self.0.lock().unwrap();
        // Ids are reused; the last span has it.
        let span = spans.iter_mut().rfind(|span| span.id == id.into_u64());
        change(span.expect("a span was opened before"));
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Recording {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let name = attributes.metadata().name().to_owned();
        let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.id().into_u64());
        let mut span = Recorded { name, parent, id: id.into_u64(), ..Recorded::default() };
        attributes.record(&mut span);
        self.0.lock().unwrap().push(span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.with(id, |span| values.record(span));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.with(&id, |span| span.has_closed = true);
    }
}
