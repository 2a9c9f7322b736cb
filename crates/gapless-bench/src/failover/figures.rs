//! Time without any reply, and reply times before, during and after each event.

use super::events::{EventKind, FailoverEvent};
use crate::histogram::LatencyHistogram;
use gapless_load::failover::load::{ClientRecords, CommandRecord};

/// Width of a point in a plot over time, ns.
pub(super) const POINT_NS: u64 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventPhase {
    /// Commands answered in the window before.
    Before,
    /// Commands in flight at some time of the event.
    During,
    /// Commands due in the window after.
    After,
}

impl EventPhase {
    pub const ALL: [Self; 3] = [Self::Before, Self::During, Self::After];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }
}

/// Time relative to the event, and the longest latency of commands due then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlotPoint {
    pub at_ms: f64,
    pub latency_max_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EventOccurrence {
    /// From the event to the first reply to a command that was sent after it.
    pub first_new_reply_ns: Option<u64>,
    pub last_client_ns: Option<u64>,
    /// Greatest time in which a client got no reply.
    pub longest_silence_ns: u64,
    pub duration_ns: u64,
    pub points: Vec<PlotPoint>,
}

pub(super) struct EventFigures {
    pub what: EventKind,
    pub occurrences: Vec<EventOccurrence>,
    pub latencies: [LatencyHistogram; 3],
}

impl EventFigures {
    pub fn first_new_replies_ns(&self) -> impl Iterator<Item = Option<u64>> {
        self.occurrences.iter().map(|occurrence| occurrence.first_new_reply_ns)
    }

    /// `None` if a reply never came.
    pub fn first_new_reply_max_ns(&self) -> Option<u64> {
        self.first_new_replies_ns().collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    pub fn last_client_max_ns(&self) -> Option<u64> {
        self.occurrences.iter().map(|each| each.last_client_ns).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    pub fn longest_silence_ns(&self) -> u64 {
        self.occurrences.iter().map(|each| each.longest_silence_ns).max().unwrap_or(0)
    }

    /// A dead leader is judged by the first new reply of each client, a transfer by the longest silence, since the old
    /// leader still answers at first.
    pub fn is_met(&self) -> Option<bool> {
        let target_ns = self.what.target_ns()?;
        let worst_ns = match self.what {
            EventKind::Transferred => Some(self.longest_silence_ns()),
            _ => self.last_client_max_ns(),
        };
        Some(worst_ns.is_some_and(|worst_ns| worst_ns < target_ns))
    }
}

pub(super) fn figures(clients: &[ClientRecords], events: &[FailoverEvent], window_ns: u64) -> Vec<EventFigures> {
    let of_kind = |what: EventKind| {
        let mut figures =
            EventFigures { what, occurrences: Vec::new(), latencies: [(); 3].map(|()| LatencyHistogram::new()) };
        for event in events.iter().filter(|event| event.what == what) {
            figures.occurrences.push(occurrence(clients, event, window_ns));
            for record in clients.iter().flat_map(|client| &client.records) {
                if let Some(phase) = phase(record, event, window_ns) {
                    figures.latencies[phase as usize].record(record.replied_ns - record.due_ns);
                }
            }
        }
        figures
    };
    EventKind::ALL.into_iter().map(of_kind).filter(|figures| !figures.occurrences.is_empty()).collect()
}

/// `None` outside the windows, and for a lost command, which has no latency.
fn phase(record: &CommandRecord, event: &FailoverEvent, window_ns: u64) -> Option<EventPhase> {
    let CommandRecord { due_ns, replied_ns, .. } = *record;
    if replied_ns == 0 {
        None
    } else if replied_ns < event.at_ns {
        (replied_ns + window_ns >= event.at_ns).then_some(EventPhase::Before)
    } else if due_ns < event.end_ns {
        Some(EventPhase::During)
    } else {
        (due_ns < event.end_ns + window_ns).then_some(EventPhase::After)
    }
}

fn occurrence(clients: &[ClientRecords], event: &FailoverEvent, window_ns: u64) -> EventOccurrence {
    let first_of = |client: &ClientRecords| {
        let new = client.records.iter().filter(|record| record.sent_ns > event.at_ns && record.replied_ns > 0);
        new.map(|record| record.replied_ns - event.at_ns).min()
    };
    let firsts: Vec<Option<u64>> = clients.iter().map(first_of).collect();
    EventOccurrence {
        first_new_reply_ns: firsts.iter().flatten().min().copied(),
        last_client_ns: firsts.iter().copied().collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max()),
        longest_silence_ns: clients.iter().map(|client| longest_silence_ns(client, event)).max().unwrap_or(0),
        duration_ns: event.end_ns - event.at_ns,
        points: points(clients, event, window_ns),
    }
}

/// Counts silences that overlap the event.
fn longest_silence_ns(client: &ClientRecords, event: &FailoverEvent) -> u64 {
    let mut replies: Vec<u64> = client.records.iter().map(|record| record.replied_ns).filter(|at| *at > 0).collect();
    replies.sort_unstable();
    let begins = replies.partition_point(|at| *at < event.at_ns).saturating_sub(1);
    let mut silence_ns = 0;
    for pair in replies[begins..].windows(2).take_while(|pair| pair[0] < event.end_ns) {
        silence_ns = silence_ns.max(pair[1] - pair[0]);
    }
    match replies.last() {
        Some(last) if *last < event.end_ns => silence_ns.max(event.end_ns - last),
        _ => silence_ns,
    }
}

fn points(clients: &[ClientRecords], event: &FailoverEvent, window_ns: u64) -> Vec<PlotPoint> {
    let from_ns = event.at_ns.saturating_sub(window_ns);
    let count = (event.end_ns + window_ns - from_ns) / POINT_NS;
    let mut longest = vec![0; count as usize];
    for record in clients.iter().flat_map(|client| &client.records).filter(|record| record.replied_ns > 0) {
        if let Some(at) = record.due_ns.checked_sub(from_ns).map(|after_ns| after_ns / POINT_NS)
            && let Some(longest) = longest.get_mut(at as usize)
        {
            *longest = (*longest).max(record.replied_ns - record.due_ns);
        }
    }
    let moment = |at: usize| (from_ns + at as u64 * POINT_NS) as f64 / 1e6 - event.at_ns as f64 / 1e6;
    let all = longest.into_iter().enumerate().filter(|(_, latency_max_ns)| *latency_max_ns > 0);
    all.map(|(at, latency_max_ns)| PlotPoint { at_ms: moment(at), latency_max_ns }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn client(records: &[(u64, u64, u64)]) -> ClientRecords {
        let record = |(due_ms, sent_ms, replied_ms): &(u64, u64, u64)| CommandRecord {
            due_ns: due_ms * MS,
            sent_ns: sent_ms * MS,
            replied_ns: replied_ms * MS,
            ..CommandRecord::default()
        };
        ClientRecords { records: records.iter().map(record).collect(), ..ClientRecords::default() }
    }

    #[test]
    fn a_silence_is_seen_from_every_side() {
        let event = FailoverEvent { what: EventKind::LeaderKilled, at_ns: 1_000 * MS, end_ns: 1_200 * MS };
        let first = client(&[(980, 980, 981), (999, 999, 1_050), (1_010, 1_010, 1_051), (1_300, 1_300, 1_302)]);
        let second = client(&[(990, 990, 995), (1_005, 1_090, 1_091), (1_350, 1_350, 1_351), (1_360, 1_360, 0)]);
        assert_eq!((first.unanswered(), second.unanswered()), (0, 1));
        let found = figures(&[first, second], &[event], 500 * MS);
        assert_eq!(found.len(), 1, "of what did not happen there are no figures");
        let [occurrence] = &found[0].occurrences[..] else { panic!("{:?}", found[0].occurrences) };
        assert_eq!(occurrence.first_new_reply_ns, Some(51 * MS), "not that to a command from before");
        assert_eq!(occurrence.last_client_ns, Some(91 * MS));
        assert_eq!(occurrence.longest_silence_ns, 1_351 * MS - 1_091 * MS);
        assert_eq!(found[0].is_met(), Some(true));
        let counts: Vec<u64> = found[0].latencies.iter().map(LatencyHistogram::count).collect();
        assert_eq!(counts, [2, 3, 2], "before, during, after");
        let worst = occurrence.points.iter().max_by_key(|point| point.latency_max_ns).unwrap();
        assert_eq!((worst.at_ms, worst.latency_max_ns), (0.0, 86 * MS));
    }

    #[test]
    fn missing_reply_is_not_met() {
        let event = FailoverEvent { what: EventKind::Transferred, at_ns: 1_000 * MS, end_ns: 1_200 * MS };
        let found = figures(&[client(&[(900, 900, 901), (1_100, 1_100, 0)])], &[event], 500 * MS);
        assert_eq!((found[0].first_new_reply_max_ns(), found[0].is_met()), (None, Some(false)));
        assert_eq!(found[0].longest_silence_ns(), 1_200 * MS - 901 * MS);
    }
}
