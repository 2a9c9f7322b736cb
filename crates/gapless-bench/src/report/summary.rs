//! The ten lines on top: where ours is ahead and where it is behind, counted from the data.

use super::answers::Answered;
use super::html::{escape, ratio};
use super::peers::{self, Duel};
use super::runs::Runs;
use super::sections::words;
use gapless_measure::published::{System, Verdict};
use gapless_measure::table::grouped;
use std::fmt::Write as _;

/// How many of our rows stand where.
#[derive(Default)]
struct Count {
    ahead: usize,
    level: usize,
    behind: usize,
    no_result: usize,
    /// Published figures without a row of ours.
    nobody: usize,
    figures: usize,
}

impl Count {
    fn of<'a>(answered: impl Iterator<Item = &'a Answered<'a>>) -> Self {
        let mut count = Self::default();
        for each in answered {
            count.figures += 1;
            count.nobody += usize::from(each.lines.is_empty());
            for line in &each.lines {
                match line.comparison.verdict {
                    Verdict::Ahead => count.ahead += 1,
                    Verdict::Level => count.level += 1,
                    Verdict::Behind => count.behind += 1,
                    Verdict::NoResult => count.no_result += 1,
                }
            }
        }
        count
    }

    fn html(&self) -> String {
        let parts = [
            ("ahead", "ahead", self.ahead),
            ("level", "level", self.level),
            ("behind", "behind", self.behind),
            ("missed", "no result", self.no_result),
            ("nobody", "not measured", self.nobody),
        ];
        let shown = parts.into_iter().filter(|(.., count)| *count > 0);
        let shown = shown.map(|(class, word, count)| format!("<span class=\"v {class}\">{count} {word}</span>"));
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// The summary.
pub(super) fn html(runs: &Runs, answered: &[Answered<'_>]) -> String {
    let mut lines = Vec::new();
    let all = Count::of(answered.iter());
    lines.push(format!("<b>{} published figures</b>, our rows beside them: {}.", all.figures, all.html()));
    for system in System::ALL {
        lines.push(of_system(system, answered));
    }
    let duels = peers::duels(runs);
    for peer in ["RabbitMQ", "NATS", "Axon"] {
        lines.push(beside(peer, &duels));
    }
    lines.push(unverified(runs));
    let mut html =
        "<section id=\"summary\">\n<h2>Where Gapless is ahead, and where it is behind</h2>\n<ol class=\"summary\">\n"
            .to_owned();
    for line in lines {
        let _ = writeln!(html, "<li>{line}</li>");
    }
    html + "</ol>\n</section>\n"
}

/// The count of one table, its best and its worst row.
fn of_system(system: System, answered: &[Answered<'_>]) -> String {
    let (anchor, head, _) = words(system);
    let of_system = || answered.iter().filter(|each| each.fact.system == system);
    let count = Count::of(of_system());
    let mut line = format!("<a href=\"#{anchor}\">{}</a>: {}", escape(head), count.html());
    let ratios =
        of_system().flat_map(|each| each.lines.iter().map(move |line| (line.comparison.ratio, &each.fact.what)));
    let mut ratios: Vec<(f64, &String)> = ratios.filter_map(|(ratio, what)| Some((ratio?, what))).collect();
    ratios.retain(|(ratio, _)| ratio.is_finite());
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    if let (Some((worst, worst_what)), Some((best, best_what))) = (ratios.first(), ratios.last()) {
        let (worst, best) = (ratio(*worst), ratio(*best));
        let _ = write!(line, "; from {worst} ({}) to {best} ({})", escape(worst_what), escape(best_what));
    }
    let is_across = |each: &&Answered<'_>| each.fact.source.wire.is_some();
    let across: usize = of_system().filter(is_across).map(|each| each.lines.len()).sum();
    if across > 0 {
        let _ = write!(line, "; {across} of these rows are across another wire and have no ratio");
    }
    line + "."
}

/// The count of the comparisons with one peer, and the worst of them.
fn beside(peer: &str, duels: &[Duel]) -> String {
    let mut of_peer: Vec<&Duel> = duels.iter().filter(|duel| duel.peer == peer && duel.ratio.is_finite()).collect();
    if of_peer.is_empty() {
        return format!("Beside {peer} in the same run: <span class=\"v nobody\">not measured</span>.");
    }
    of_peer.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
    let ahead = of_peer.iter().filter(|duel| duel.ratio > 1.0).count();
    let behind: Vec<String> = of_peer
        .iter()
        .filter(|duel| duel.ratio < 1.0)
        .map(|duel| format!("{} {}", escape(&duel.what), ratio(duel.ratio)))
        .collect();
    let mut line = format!("Beside {peer} in the same run: <span class=\"v ahead\">{ahead} ahead</span> ");
    if !behind.is_empty() {
        let _ = write!(line, "<span class=\"v behind\">{} behind</span> ", behind.len());
    }
    let (worst, best) = (of_peer[0].ratio, of_peer[of_peer.len() - 1].ratio);
    let _ = write!(line, "of {}, from {} to {}", of_peer.len(), ratio(worst), ratio(best));
    if !behind.is_empty() {
        let _ = write!(line, "; behind at {}", behind.join("; "));
    }
    line + "."
}

/// The rows of all runs that are no results.
fn unverified(runs: &Runs) -> String {
    let rows = || runs.all().iter().flat_map(|run| &run.report.rows);
    let failed = rows().filter(|row| row.failure().is_some()).count();
    let missed = rows().filter(|row| row.missed_rate_per_s().is_some()).count();
    let verified = rows().filter(|row| row.verified == Some(true)).count();
    let (files, all) = (runs.all().len(), rows().count());
    format!(
        "{} rows in {files} files: {} verified, <span class=\"v {}\">{failed} failed a check</span>, \
         <span class=\"v {}\">{missed} missed their rate</span>.",
        grouped(all as u64),
        grouped(verified as u64),
        if failed == 0 { "level" } else { "missed" },
        if missed == 0 { "level" } else { "missed" },
    )
}
