//! [`RouteCounters`]: the counters of one route as copies and callers have them: in memory, their labels, times in buckets, and the
//! file in which other processes see them.

use crate::error::RpcError;
use gapless_agent::{Counter, Counters, CountersWriter, WrittenCounters, time_buckets as times};
use std::path::PathBuf;
use std::sync::Arc;

/// Letters of a route's name in one label.
const ROUTE_PART_LENGTH: usize = 64;
/// Before the name of the process, in a label.
const PROCESS_LABEL: &str = "process:";
/// Bytes of that name that a label has room for.
const PROCESS_NAME_LENGTH_MAX: usize = 112;

/// Whose counters they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// A copy's.
    Copy,
    /// Those of a process that calls.
    Caller,
}

impl Side {
    /// Before the name of the route, in a label; a long name is in two.
    const fn route_labels(self) -> [&'static str; 2] {
        match self {
            Self::Copy => ["route:", "route+:"],
            Self::Caller => ["called:", "called+:"],
        }
    }

    /// Before the least time of a bucket, in the label of its count.
    const fn time_label(self) -> &'static str {
        match self {
            Self::Copy => "handler.from_ns.",
            Self::Caller => "call.from_ns.",
        }
    }
}

/// Where counters are shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// Of what is counted there it is told; one of nothing for what no other process sees.
    pub(crate) writer: Arc<CountersWriter>,
    /// The file; in memory alone without one.
    pub(crate) path: Option<PathBuf>,
    /// The name of this process.
    pub(crate) process_name: Arc<str>,
}

impl Shown {
    pub(crate) fn nowhere() -> Self {
        Self { writer: CountersWriter::of_nothing(), path: None, process_name: Arc::default() }
    }
}

/// Counters of one route that are being made.
pub(crate) struct RouteCounters<'a> {
    counters: Counters,
    side: Side,
    route: &'a str,
}

impl<'a> RouteCounters<'a> {
    /// With room for so many beside the names and the times.
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

    /// A count for each bucket of times.
    pub(crate) fn add_times(&self) -> Result<Vec<Counter>, RpcError> {
        (0..times::BUCKETS).map(|bucket| self.add(&times::label(self.side.time_label(), bucket))).collect()
    }

    /// Shows all that were added; the file goes with the value.
    pub(crate) fn show(&self, shown: &Shown) -> Result<Option<WrittenCounters>, RpcError> {
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

/// Labels and values as they were read; what another process has written is what it is.
pub(crate) type Read = [(String, u64)];

/// The route's name that counters have, if they are of that side.
pub(crate) fn route_of(side: Side, counters: &Read) -> Option<String> {
    let part = |prefix: &str| counters.iter().find_map(|(label, _)| label.strip_prefix(prefix));
    let [first, more] = side.route_labels().map(part);
    let route = format!("{}{}", first?, more.unwrap_or_default());
    crate::route_name::check(&route).is_ok().then_some(route)
}

/// The name of the process whose counters they are, as it says.
pub(crate) fn process_name_of(counters: &Read) -> Option<String> {
    counters.iter().find_map(|(label, _)| label.strip_prefix(PROCESS_LABEL)).map(str::to_owned)
}

/// A value; 0 if it is not there. Of several files together: their sum, wrapping around, as gauges do that one of them lowers.
pub(crate) fn value(counters: &Read, label: &str) -> u64 {
    let of = counters.iter().filter(|(found, _)| found == label);
    of.fold(0, |sum, (_, value)| sum.wrapping_add(*value))
}

/// Times upwards, each with its count.
pub(crate) fn times_of(side: Side, counters: &Read) -> Vec<(u64, u64)> {
    let time =
        |(label, count): &(String, u64)| Some((times::middle_ns(times::bucket_of(side.time_label(), label)?), *count));
    let mut times: Vec<_> = counters.iter().filter_map(time).collect();
    times.sort_unstable();
    times
}
