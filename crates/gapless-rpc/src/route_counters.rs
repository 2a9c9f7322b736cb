//! [`RouteCounters`]: counters of one route, in memory and in the file for other processes.

use crate::error::RpcError;
use gapless_agent::{Counter, Counters, CountersWriter, WrittenCounters, time_buckets as times};
use std::path::PathBuf;
use std::sync::Arc;

/// A label holds so many bytes of a route's name.
const ROUTE_PART_LENGTH: usize = 64;
const PROCESS_LABEL: &str = "process:";
const PROCESS_NAME_LENGTH_MAX: usize = 112;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Instance,
    Caller,
}

impl Side {
    /// A long name needs two labels.
    const fn route_labels(self) -> [&'static str; 2] {
        match self {
            Self::Instance => ["route:", "route+:"],
            Self::Caller => ["called:", "called+:"],
        }
    }

    const fn time_label(self) -> &'static str {
        match self {
            Self::Instance => "handler.from_ns.",
            Self::Caller => "call.from_ns.",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CounterDestination {
    /// Idle if no other process sees the counters.
    pub(crate) writer: Arc<CountersWriter>,
    /// `None` for memory only.
    pub(crate) path: Option<PathBuf>,
    pub(crate) process_name: Arc<str>,
}

impl CounterDestination {
    pub(crate) fn in_memory() -> Self {
        Self { writer: CountersWriter::without_files(), path: None, process_name: Arc::default() }
    }
}

pub(crate) struct RouteCounters<'a> {
    counters: Counters,
    side: Side,
    route: &'a str,
}

impl<'a> RouteCounters<'a> {
    pub(crate) fn create(side: Side, route: &'a str, count: usize) -> Result<Self, RpcError> {
        let capacity = side.route_labels().len() + count + times::BUCKETS + 1;
        let counters = Counters::in_memory(capacity).map_err(|error| failed(route, error))?;
        let counters = Self { counters, side, route };
        for (label, part) in side.route_labels().iter().zip(route.as_bytes().chunks(ROUTE_PART_LENGTH)) {
            counters.add(&format!("{label}{}", String::from_utf8_lossy(part)))?;
        }
        Ok(counters)
    }

    pub(crate) fn add(&self, label: &str) -> Result<Counter, RpcError> {
        self.counters.add(label).map_err(|error| failed(self.route, error))
    }

    pub(crate) fn add_times(&self) -> Result<Vec<Counter>, RpcError> {
        (0..times::BUCKETS).map(|bucket| self.add(&times::label(self.side.time_label(), bucket))).collect()
    }

    /// The file is removed with the returned value.
    pub(crate) fn show(&self, shown: &CounterDestination) -> Result<Option<WrittenCounters>, RpcError> {
        let Some(path) = &shown.path else { return Ok(None) };
        let name = shown.process_name.chars().filter(|letter| !letter.is_control());
        let name = name.scan(0, |bytes, letter| {
            *bytes += letter.len_utf8();
            (*bytes <= PROCESS_NAME_LENGTH_MAX).then_some(letter)
        });
        self.add(&format!("{PROCESS_LABEL}{}", name.collect::<String>()))?;
        shown.writer.write_to(&self.counters, path).map(Some).map_err(|error| failed(self.route, error))
    }

    pub(crate) fn into_counters(self) -> Counters {
        self.counters
    }
}

fn failed(route: &str, error: gapless_agent::Error) -> RpcError {
    RpcError::System { action: format!("counting the calls of {route}"), source: std::io::Error::other(error) }
}

/// Another process wrote them, so they are not trusted.
pub(crate) type CounterValues = [(String, u64)];

pub(crate) fn route_of(side: Side, counters: &CounterValues) -> Option<String> {
    let part = |prefix: &str| counters.iter().find_map(|(label, _)| label.strip_prefix(prefix));
    let [first, more] = side.route_labels().map(part);
    let route = format!("{}{}", first?, more.unwrap_or_default());
    crate::route_name::check(&route).is_ok().then_some(route)
}

pub(crate) fn process_name_of(counters: &CounterValues) -> Option<String> {
    counters.iter().find_map(|(label, _)| label.strip_prefix(PROCESS_LABEL)).map(str::to_owned)
}

/// 0 if missing. A wrapping sum over several files, because gauges may be lowered in another file.
pub(crate) fn value(counters: &CounterValues, label: &str) -> u64 {
    let of = counters.iter().filter(|(found, _)| found == label);
    of.fold(0, |sum, (_, value)| sum.wrapping_add(*value))
}

pub(crate) fn times_of(side: Side, counters: &CounterValues) -> Vec<(u64, u64)> {
    let time =
        |(label, count): &(String, u64)| Some((times::middle_ns(times::bucket_of(side.time_label(), label)?), *count));
    let mut times: Vec<_> = counters.iter().filter_map(time).collect();
    times.sort_unstable();
    times
}
