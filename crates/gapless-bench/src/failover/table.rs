//! The tables: how long clients waited at each event, and latencies before, during and after.

use super::ClusterResults;
use super::catch_up::KEPT_TARGET;
use super::figures::EventPhase;
use crate::histogram::LatencyHistogram;
use gapless_measure::table::{TableStyle, TextTable, absent, grouped};

pub(super) fn text(scenarios: &[ClusterResults], style: TableStyle) -> String {
    let ms = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
    let head = [
        "members",
        "event",
        "times",
        "first new reply ms, median",
        "… worst",
        "… of every client, worst",
        "target ms",
        "met",
        "longest silence ms",
        "until all is well ms",
        "lost",
        "doubled",
    ];
    let mut table = TextTable::new(style, &head, 2);
    for scenario in scenarios {
        for figures in &scenario.figures {
            let mut firsts: Vec<u64> = figures.first_new_replies_ns().map(|first| first.unwrap_or(u64::MAX)).collect();
            firsts.sort_unstable();
            let median = firsts.get(firsts.len() / 2).copied().filter(|ns| *ns < u64::MAX);
            let duration = figures.occurrences.iter().map(|each| each.duration_ns).max().unwrap_or(0);
            let met = figures.is_met().map_or_else(absent, |met| if met { "yes" } else { "NO" }.to_owned());
            table.add_row(&[
                scenario.membership.name().to_owned(),
                figures.what.name().to_owned(),
                figures.occurrences.len().to_string(),
                median.map_or_else(absent, ms),
                figures.first_new_reply_max_ns().map_or_else(absent, ms),
                figures.last_client_max_ns().map_or_else(absent, ms),
                figures.what.target_ns().map_or_else(absent, |ns| format!("< {}", ns / 1_000_000)),
                met,
                ms(figures.longest_silence_ns()),
                ms(duration),
                // Numbers of the whole run: the event that lost a command is unknown.
                if scenario.is_whole { grouped(scenario.lost) } else { absent() },
                if scenario.is_whole { grouped(scenario.doubled) } else { absent() },
            ]);
        }
    }
    let mut latencies = TextTable::new(
        style,
        &[
            "members",
            "event",
            "before: p50 ms",
            "p99",
            "max",
            "during: p50 ms",
            "p99",
            "max",
            "after: p50 ms",
            "p99",
            "max",
        ],
        2,
    );
    for scenario in scenarios {
        for figures in &scenario.figures {
            let mut cells = vec![scenario.membership.name().to_owned(), figures.what.name().to_owned()];
            for phase in EventPhase::ALL {
                cells.extend(percentiles(&figures.latencies[phase as usize]));
            }
            latencies.add_row(&cells);
        }
    }
    format!("{table}\n\nLatency, from when each command was due\n{latencies}\n")
}

pub(super) fn catch_ups(scenarios: &[ClusterResults], style: TableStyle) -> Option<String> {
    let head = [
        "members",
        "cluster meanwhile",
        "frames behind",
        "frames/s caught up",
        "target",
        "met",
        "behind at the end",
        "after ms",
        "commits/s without it",
        "meanwhile",
        "with all level",
        "kept of that %",
    ];
    let mut table = TextTable::new(style, &head, 2);
    let rate = |per_s: f64| grouped(per_s.round() as u64);
    for scenario in scenarios {
        for each in &scenario.catch_ups.all {
            let target = each.case.target_per_s().map_or_else(
                || format!("gap shrinks, {:.0} % kept", 100.0 * KEPT_TARGET),
                |target| format!(">= {}", rate(target)),
            );
            table.add_row(&[
                scenario.membership.name().to_owned(),
                each.case.name().to_owned(),
                grouped(each.gap_begin),
                rate(each.moved_per_s()),
                target,
                if each.is_met() { "yes" } else { "NO" }.to_owned(),
                grouped(each.gap_end),
                format!("{:.0}", each.elapsed_ns as f64 / 1e6),
                rate(each.before_per_s),
                rate(each.meanwhile_per_s),
                rate(each.after_per_s),
                each.kept().map_or_else(absent, |kept| format!("{:.0}", 100.0 * kept)),
            ]);
        }
    }
    let is_some = scenarios.iter().any(|scenario| !scenario.catch_ups.all.is_empty());
    is_some.then(|| format!("A follower catches up that has missed frames\n{table}\n"))
}

fn percentiles(histogram: &LatencyHistogram) -> [String; 3] {
    let Some(latency) = histogram.latency_ns() else { return [(); 3].map(|()| absent()) };
    [latency.p50, latency.p99, latency.max].map(|ns| format!("{:.2}", ns as f64 / 1e6))
}
