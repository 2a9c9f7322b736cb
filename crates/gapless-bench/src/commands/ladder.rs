//! The published ladder of a command bus: each published rate with our rows and Axon's next to it. The simple bus
//! decides on its caller's thread, like our direct drive one command at a time; the disruptor hands over to another
//! thread, like our pipelined drive.

use crate::commands::axon_case::{self, AxonBus, AxonCase, AxonSetup};
use gapless_load::commands::case::{BusCase, BusDrive, Identifiers};
use gapless_measure::published::ANSWERS;
use gapless_measure::published::axon::{BUSES, PublishedBus};
use gapless_measure::reporting::{config_number, of_config, put, word};
use gapless_measure::table::{ABSENT, TableStyle, TextTable, grouped, rate};
use gapless_measure::{Report, Row};

pub(crate) const SOURCE: &str = "published: Axon Framework on a laptop, i7 640M 2.8 GHz, 2 cores, 4 threads; a store that keeps the last event of an \
                                 aggregate, no metadata, no answer awaited";

/// Buses and identifiers of the ladder; no figure was published of the simple bus without identifiers.
const STEPS: [(AxonBus, Identifiers); 6] = [
    (AxonBus::Simple, Identifiers::Random),
    (AxonBus::Simple, Identifiers::TimeOrdered),
    (AxonBus::Simple, Identifiers::Position),
    (AxonBus::Disruptor, Identifiers::Random),
    (AxonBus::Disruptor, Identifiers::TimeOrdered),
    (AxonBus::Disruptor, Identifiers::Position),
];

pub(crate) fn cases(is_chosen: impl Fn(AxonBus, Identifiers) -> bool) -> (Vec<BusCase>, Vec<AxonCase>) {
    let chosen: Vec<_> = STEPS.into_iter().filter(|(bus, identifiers)| is_chosen(*bus, *identifiers)).collect();
    let of_axon = |(bus, identifiers)| {
        [AxonSetup::Published, AxonSetup::Ours].map(|setup| AxonCase::of_one(bus, identifiers, setup))
    };
    let of_ours = chosen.iter().map(|(bus, identifiers)| ours(*bus, *identifiers)).collect();
    (of_ours, chosen.into_iter().flat_map(of_axon).collect())
}

/// Holds for the published load where a figure was published, and for our load by Axon's default identifiers.
pub(crate) fn is_in_short_run(case: &AxonCase) -> bool {
    match case.setup {
        AxonSetup::Published => published((case.bus, case.identifiers)).next().is_some(),
        AxonSetup::Ours | AxonSetup::AllEvents => case.identifiers == Identifiers::Random,
    }
}

const fn ours(bus: AxonBus, identifiers: Identifiers) -> BusCase {
    match bus {
        AxonBus::Simple => BusCase { identifiers, is_one_by_one: true, ..BusCase::base(BusDrive::Direct) },
        AxonBus::Disruptor => BusCase { identifiers, ..BusCase::base(BusDrive::Pipelined) },
    }
}

pub(crate) fn note(report: &mut Report) {
    for row in &mut report.rows {
        let is_answered = |(bus, identifiers): &(AxonBus, Identifiers)| is_ours(row, *bus, *identifiers);
        let published = STEPS.into_iter().filter(is_answered).flat_map(published);
        let keys: Vec<String> = published.map(|one| format!("axon/{}", one.key)).collect();
        if !keys.is_empty() {
            put(row, ANSWERS, keys);
        }
    }
}

fn published((bus, identifiers): (AxonBus, Identifiers)) -> impl Iterator<Item = &'static PublishedBus> {
    BUSES.iter().filter(move |one| (one.bus, one.identifiers) == (word(bus).as_str(), word(identifiers).as_str()))
}

fn is_ours(row: &Row, bus: AxonBus, identifiers: Identifiers) -> bool {
    let case = ours(bus, identifiers);
    let config = &row.config;
    config.name.is_none()
        && config.mode.as_deref() == Some("throughput")
        && (config.tier.as_deref(), config.encoding.as_deref()) == (Some("memory"), Some("sbe"))
        && config.payload_bytes == Some(0)
        && config_number(row, "aggregates") == Some(1)
        && of_config(row, "identifiers") == word(identifiers)
        && of_config(row, "drive") == word(case.drive)
        && (config_number(row, "in_flight") == Some(1)) == case.is_one_by_one
}

/// Published, ours, Axon here with both loads, and the options that repeat each row.
pub(crate) fn table(report: &Report, style: TableStyle) -> Option<String> {
    let head = [
        "bus",
        "identifiers",
        "published",
        "published /s",
        "ours /s",
        "ours, drive",
        "Axon here, published load /s",
        "Axon here, our load /s",
        "× published",
        "× Axon, published load",
        "× Axon, our load",
        "verified",
        "gapless bench commands --only ladder …",
    ];
    let mut table = TextTable::new(style, &head, 3);
    for (bus, identifiers) in STEPS {
        let Some(ours) = report.rows.iter().find(|row| is_ours(row, bus, identifiers)) else { continue };
        let of_axon = [AxonSetup::Published, AxonSetup::Ours]
            .map(|setup| axon_case::row_of(&report.rows, bus, identifiers, setup));
        let published: Vec<Option<&PublishedBus>> = published((bus, identifiers)).map(Some).collect();
        let published = if published.is_empty() { vec![None] } else { published };
        for published in published {
            table.add_row(&cells((bus, identifiers), published, ours, of_axon));
        }
    }
    (!table.is_empty()).then(|| table.to_string())
}

fn cells(
    (bus, identifiers): (AxonBus, Identifiers),
    published: Option<&PublishedBus>,
    ours: &Row,
    of_axon: [Option<&Row>; 2],
) -> [String; 13] {
    let absent = || ABSENT.to_owned();
    let of_it = published.map_or_else(absent, |published| match published.runs_per_s {
        (least, greatest) if least == greatest => grouped(least),
        (least, greatest) => format!("{}, {}", grouped(least), grouped(greatest)),
    });
    let its = of_axon.map(|row| row.and_then(|row| row.throughput_per_s));
    let ratio = |other: Option<f64>| {
        ours.throughput_per_s.zip(other).map_or_else(absent, |(ours, other)| format!("{:.1}", ours / other))
    };
    let is_verified = [Some(ours)].iter().chain(&of_axon).flatten().all(|row| row.verified == Some(true));
    let shown = |figure: Option<f64>| figure.map_or_else(absent, rate);
    let drive = if bus == AxonBus::Simple { "direct, one by one" } else { "pipelined" };
    [
        word(bus),
        word(identifiers),
        published.map_or_else(absent, |published| published.what.to_owned()),
        of_it,
        shown(ours.throughput_per_s),
        drive.to_owned(),
        shown(its[0]),
        shown(its[1]),
        ratio(published.map(|published| published.runs_per_s.1 as f64)),
        ratio(its[0]),
        ratio(its[1]),
        if is_verified { "yes" } else { "NO" }.to_owned(),
        format!("--buses {} --identifiers {}", word(bus), word(identifiers)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::rows;

    fn row(case: &BusCase, per_s: f64) -> Row {
        let config = rows::config(case, "throughput", case.in_flight(64));
        Row { config, throughput_per_s: Some(per_s), verified: Some(true), ..Row::default() }
    }

    fn report() -> Report {
        let rows = STEPS.map(|(bus, identifiers)| row(&ours(bus, identifiers), 3e6));
        Report { rows: rows.into(), ..Report::default() }
    }

    #[test]
    fn published_rates_have_one_row_each() {
        let mut report = report();
        let direct = BusCase { identifiers: Identifiers::Random, ..BusCase::base(BusDrive::Direct) };
        report.rows.push(row(&direct, 9e6));
        report.rows.push(row(&BusCase { size: 256, ..ours(AxonBus::Disruptor, Identifiers::Random) }, 9e6));
        note(&mut report);
        for published in &BUSES {
            let answers = |row: &&Row| {
                row.extra
                    .get(ANSWERS)
                    .and_then(|keys| keys.as_array())
                    .is_some_and(|keys| keys.iter().any(|key| *key == format!("axon/{}", published.key)))
            };
            assert_eq!(report.rows.iter().filter(answers).count(), 1, "{}", published.key);
        }
        assert!(report.rows.iter().rev().take(2).all(|row| !row.extra.contains_key(ANSWERS)));
    }

    #[test]
    fn missing_rows_are_left_out() {
        assert_eq!(table(&Report::default(), TableStyle::Markdown), None);
        let mut report = report();
        report.rows.truncate(1);
        let text = table(&report, TableStyle::Markdown).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains("150,000") && text.contains("--buses simple --identifiers random"), "{text}");
        assert!(text.contains(" 20.0 |") && text.contains("yes"), "{text}");
        report.rows[0].verified = Some(false);
        assert!(table(&report, TableStyle::Markdown).unwrap().contains("NO"));
    }
}
