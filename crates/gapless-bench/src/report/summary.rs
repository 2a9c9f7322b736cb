//! The ten lines on top: where ours is ahead and where it is behind, counted from the data.

use super::answers::AnsweredFact;
use super::html::{escape, ratio, word};
use super::peers::{self, PeerComparison};
use super::runs::{StoredRun, StoredRuns};
use super::sections::words;
use gapless_measure::published::{ComparisonVerdict, PublishedSystem};
use gapless_measure::table::grouped;
use std::fmt::Write as _;

#[derive(Default)]
struct ComparisonCounts {
    alike: ResultCounts,
    /// Comparisons without a ratio: across another wire, or with a time-out that was set.
    apart: ResultCounts,
    no_result: usize,
    not_measured: usize,
    figures: usize,
}

#[derive(Default)]
struct ResultCounts {
    ahead: usize,
    level: usize,
    behind: usize,
}

impl ResultCounts {
    fn all(&self) -> usize {
        self.ahead + self.level + self.behind
    }

    fn html(&self) -> String {
        let parts = [("ahead", self.ahead), ("level", self.level), ("behind", self.behind)];
        let shown = parts.into_iter().filter(|(_, count)| *count > 0);
        let shown = shown.map(|(word, count)| format!("<span class=\"v {word}\">{count} {word}</span>"));
        shown.collect::<Vec<_>>().join(" ")
    }
}

impl ComparisonCounts {
    fn of<'a>(answered: impl Iterator<Item = &'a AnsweredFact<'a>>) -> Self {
        let mut count = Self::default();
        for each in answered {
            count.figures += 1;
            count.not_measured += usize::from(!each.is_compared());
            let is_alike = each.fact.source.difference.is_none();
            for line in &each.lines {
                let standing = if is_alike { &mut count.alike } else { &mut count.apart };
                match line.comparison.verdict {
                    ComparisonVerdict::Ahead => standing.ahead += 1,
                    ComparisonVerdict::Level => standing.level += 1,
                    ComparisonVerdict::Behind => standing.behind += 1,
                    ComparisonVerdict::NoResult => count.no_result += 1,
                    ComparisonVerdict::Remark => {}
                }
            }
        }
        count
    }

    fn comparisons(&self) -> usize {
        self.alike.all() + self.apart.all() + self.no_result
    }

    fn html(&self) -> String {
        let mut parts = vec![self.alike.html()];
        if self.apart.all() > 0 {
            parts.push(format!("across another wire or a set time-out {}", self.apart.html()));
        }
        if self.no_result > 0 {
            parts.push(format!("<span class=\"v missed\">{} no result</span>", self.no_result));
        }
        if self.not_measured > 0 {
            let plural = if self.not_measured == 1 { "figure" } else { "figures" };
            parts.push(format!("<span class=\"v nobody\">{} {plural} not measured</span>", self.not_measured));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }
}

pub(super) fn html(runs: &StoredRuns, answered: &[AnsweredFact<'_>]) -> String {
    let mut lines = Vec::new();
    let all = ComparisonCounts::of(answered.iter());
    lines.push(format!(
        "<b>{} published figures, {} comparisons</b> (some figures have several rows of ours): {}.",
        all.figures,
        all.comparisons(),
        all.html()
    ));
    for system in PublishedSystem::ALL {
        lines.push(of_system(system, answered));
    }
    let comparisons = peers::comparisons(runs);
    for peer in ["RabbitMQ", "NATS", "Axon"] {
        lines.push(of_peer(peer, &comparisons));
    }
    lines.push(row_counts(runs));
    let mut html =
        "<section id=\"summary\">\n<h2>Where Gapless is ahead, and where it is behind</h2>\n<ol class=\"summary\">\n"
            .to_owned();
    for line in lines {
        let _ = writeln!(html, "<li>{line}</li>");
    }
    html + "</ol>\n</section>\n"
}

fn of_system(system: PublishedSystem, answered: &[AnsweredFact<'_>]) -> String {
    let (anchor, head, _) = words(system);
    let of_system = || answered.iter().filter(|each| each.fact.system == system);
    let count = ComparisonCounts::of(of_system());
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
    line + "."
}

fn of_peer(peer: &str, comparisons: &[PeerComparison]) -> String {
    let of = |is_cpu: bool| {
        let of_it = comparisons.iter().filter(|one| one.peer == peer && one.is_cpu == is_cpu && one.ratio.is_finite());
        let mut of_it: Vec<&PeerComparison> = of_it.collect();
        of_it.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
        of_it
    };
    let (rates, cpu) = (of(false), of(true));
    let (Some(worst), Some(best)) = (rates.first(), rates.last()) else {
        return format!("Next to {peer} in the same run: <span class=\"v nobody\">not measured</span>.");
    };
    let in_words = |word_: &str, all: &[&PeerComparison]| all.iter().filter(|one| word(one.ratio).1 == word_).count();
    let mut line = format!(
        "Next to {peer} in the same run: <span class=\"v ahead\">{} ahead</span> of {} rates, from {} to {}",
        in_words("ahead", &rates),
        rates.len(),
        ratio(worst.ratio),
        ratio(best.ratio)
    );
    let behind: Vec<String> = rates
        .iter()
        .filter(|one| word(one.ratio).1 == "behind")
        .map(|one| format!("{} {}", escape(&one.what), ratio(one.ratio)))
        .collect();
    if !behind.is_empty() {
        let (count, places) = (behind.len(), behind.join("; "));
        let _ = write!(line, "; <span class=\"v behind\">{count} behind</span> at {places}");
    }
    if !cpu.is_empty() {
        let (behind, all) = (in_words("behind", &cpu), cpu.len());
        let class = if behind == 0 { "level" } else { "behind" };
        let _ = write!(
            line,
            "; CPU, percent of one core in calls of 1 B: <span class=\"v {class}\">{behind} of {all} behind</span>"
        );
    }
    line + "."
}

fn row_counts(runs: &StoredRuns) -> String {
    let rows = || runs.all().iter().flat_map(|run| &run.report.rows);
    let failed = rows().filter(|row| row.failure().is_some()).count();
    let missed = rows().filter(|row| row.missed_rate_per_s().is_some()).count();
    let sound = || runs.all().iter().flat_map(StoredRun::sound_rows);
    let verified = sound().filter(|row| row.verified == Some(true)).count();
    let unchecked = sound().count() - verified;
    let (files, all) = (runs.all().len(), rows().count());
    format!(
        "{} rows in {files} files: {} verified, {unchecked} without a check, <span class=\"v {}\">{failed} failed a check</span>, \
         <span class=\"v {}\">{missed} missed their rate</span>.",
        grouped(all as u64),
        grouped(verified as u64),
        if failed == 0 { "level" } else { "missed" },
        if missed == 0 { "level" } else { "missed" },
    )
}
