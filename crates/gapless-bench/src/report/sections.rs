//! The sections of the page: legend, the five tables with their pictures and runs, and every run.

use super::answers::{AnsweredFact, AnsweringRow, variation};
use super::commands::RowCommands;
use super::html::{HtmlCell, HtmlColumn, HtmlTable, escape, nothing, ratio, text, time, verified, word};
use super::kills;
use super::over_kafka;
use super::peers::{self, RunTable};
use super::pictures::{self, Pictures};
use super::runs::{StoredRun, StoredRuns};
use gapless_measure::Row;
use gapless_measure::published::{
    Comparison, ComparisonVerdict, Difference, FigureUnit, Publication, PublishedFact, PublishedSystem, RowFigure,
    cpu_ns_per_call, facts,
};
use gapless_measure::reporting::number;
use std::fmt::Write as _;

/// Anchor, heading, introduction.
pub(super) fn words(system: PublishedSystem) -> (&'static str, &'static str, &'static str) {
    match system {
        PublishedSystem::Rumi => (
            "service",
            "A service on a primary and its backup, next to Rumi",
            "Car messages are received, decoded, processed, replicated, logged, acknowledged, encoded and sent. Published on two hosts \
             over InfiniBand; ours are two processes over loopback TCP, so that the figures stand next to each other without a ratio. \
             The bare round trip over our link, at the same pace in the same run, is the floor. Our messages have 159 bytes as SBE and \
             157 as protobuf, the published ones about 178. No peer is measured: Rumi is a commercial product.",
        ),
        PublishedSystem::CoralSequencer => (
            "sequencer",
            "A sequencer and its nodes, next to CoralSequencer",
            "A node sends a message, the sequencer gives it its place in the stream, the node gets it back; then three nodes push as \
             fast as they can. Both over loopback UDP, on different machines. Ours also writes each message to a journal: the floor of \
             a rate is what the file system takes in one stream. No peer is measured: CoralSequencer is a commercial product.",
        ),
        PublishedSystem::EnduroX => (
            "calls",
            "Calls between processes, next to Enduro/X and RabbitMQ",
            "A client sends bytes, a server adds one to each and answers. RabbitMQ and NATS are measured again here, in the same run.",
        ),
        PublishedSystem::Mercury => (
            "payloads",
            "Events in memory and large payloads, next to Mercury",
            "Parallel calls, forked and joined: one way a payload goes and a boolean comes back, two ways the payload comes back. In \
             memory nothing of ours is copied: a pointer to the payload moves, so that the size hardly matters and a ratio grows with \
             it. Through Kafka are two domains with a bridge each, next to plain Java clients of the same broker in the same run. In \
             memory no peer is measured. Machine and program of most of these figures are not stated.",
        ),
        PublishedSystem::Axon => (
            "commands",
            "The command bus, next to Axon Framework",
            "A command loads an aggregate, always the same, calls one method, and yields one event, which is stored and published in \
             memory. Axon Framework 4 is measured again here, in the same run.",
        ),
    }
}

pub(super) fn legend() -> String {
    "<p class=\"key\"><span class=\"v ahead\">ahead</span> ours is better than the best published figure; \
     <span class=\"v level\">level</span> within the published range; <span class=\"v behind\">behind</span> worse; \
     <span class=\"v missed\">no result</span> a missed rate or a failed check; <span class=\"v nobody\">not measured</span> or \
     not compared: there is no such row of ours. Ratios are above 1 where Gapless is better; there is none across another wire. \
     × floor is how many times ours takes what the bare machine takes. Below 1, the floor does more: it sends one message per system \
     call, or sleeps at once; ours gathers, or looks before it sleeps. A × floor without a floor is the run's own ratio of times, \
     where the figure is a rate or an average. Published figures are of other machines: years lie between some of them and \
     ours.</p>\n"
        .to_owned()
}

pub(super) fn contents() -> String {
    let mut html = "<nav aria-label=\"Tables\"><ul>\n".to_owned();
    for system in PublishedSystem::ALL {
        let (anchor, head, _) = words(system);
        let _ = writeln!(html, "<li><a href=\"#{anchor}\">{}</a></li>", escape(head));
    }
    html + "<li><a href=\"#runs\">Every run, and how to repeat it</a></li>\n</ul></nav>\n"
}

pub(super) fn html(runs: &StoredRuns, answered: &[AnsweredFact<'_>]) -> String {
    let mut html = String::new();
    for system in PublishedSystem::ALL {
        let (anchor, head, introduction) = words(system);
        let _ = writeln!(html, "<section id=\"{anchor}\">\n<h2>{}</h2>\n<p>{}</p>", escape(head), escape(introduction));
        let of_system: Vec<&AnsweredFact<'_>> = answered.iter().filter(|each| each.fact.system == system).collect();
        let (tables, pictures) = parts(system, runs);
        let mut used = SectionRuns::default();
        for line in of_system.iter().flat_map(|each| &each.lines) {
            used.letter(line.run);
        }
        let mut commands = RowCommands::default();
        html += &published_table(head, &of_system, &mut used, &mut commands);
        html += &commands.html();
        for table in tables.into_iter().flatten() {
            html += &table.html;
            let letter = used.letter(table.run);
            let _ = writeln!(html, "<p class=\"from\">Run {letter}.</p>");
        }
        if !pictures.html.is_empty() {
            let mut letters: Vec<String> = Vec::new();
            for letter in pictures.runs.iter().map(|run| used.letter(run)) {
                if !letters.contains(&letter) {
                    letters.push(letter);
                }
            }
            html += &format!("<div class=\"pictures\">\n{}</div>\n", pictures.html);
            let _ = writeln!(html, "<p class=\"from\">Pictures of run {}.</p>", letters.join(", "));
        }
        html += &used.html();
        html += "</section>\n";
    }
    html
}

fn parts(system: PublishedSystem, runs: &StoredRuns) -> (Vec<Option<RunTable<'_>>>, Pictures<'_>) {
    match system {
        PublishedSystem::Rumi => (vec![kills::failover_table(runs)], pictures::rumi(runs)),
        PublishedSystem::CoralSequencer => (Vec::new(), pictures::coralsequencer(runs)),
        PublishedSystem::EnduroX => {
            let tables = vec![peers::call_table(runs), kills::fault_table(runs), kills::supervisor_table(runs)];
            (tables, pictures::endurox(runs))
        }
        PublishedSystem::Mercury => (vec![over_kafka::table(runs)], pictures::mercury(runs)),
        PublishedSystem::Axon => (vec![peers::command_table(runs)], pictures::axon(runs)),
    }
}

#[derive(Default)]
struct SectionRuns<'a>(Vec<&'a StoredRun>);

impl<'a> SectionRuns<'a> {
    fn letter(&mut self, run: &'a StoredRun) -> String {
        let place = self.0.iter().position(|known| std::ptr::eq(*known, run)).unwrap_or_else(|| {
            self.0.push(run);
            self.0.len() - 1
        });
        letter(place)
    }

    fn html(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut html = "<h3>Runs of this section</h3>\n<dl class=\"runs\">\n".to_owned();
        for (place, run) in self.0.iter().enumerate() {
            let report = &run.report;
            let command = report.command_line.as_deref().unwrap_or("command line not recorded");
            let _ = writeln!(
                html,
                "<dt>{}</dt><dd><code>{}</code><br>{}{}; {}; {}; {}</dd>",
                letter(place),
                escape(command),
                if run.extent() == "whole" {
                    String::new()
                } else {
                    format!("<span class=\"v missed\">{}</span> ", run.extent())
                },
                escape(&report.environment.summary()),
                escape(&commit(run)),
                escape(run.date.as_deref().unwrap_or("day not recorded")),
                escape(&run.path),
            );
        }
        html + "</dl>\n"
    }
}

/// `A`, `B` … `Z`, `A1` …
fn letter(place: usize) -> String {
    let letter = char::from(b'A' + (place % 26) as u8);
    if place < 26 { letter.to_string() } else { format!("{letter}{}", place / 26) }
}

fn commit(run: &StoredRun) -> String {
    let commit = run.report.commit.as_deref();
    commit.map_or_else(
        || "commit not recorded: cannot be repeated exactly".to_owned(),
        |commit| format!("commit {}", commit.chars().take(12).collect::<String>()),
    )
}

fn published_table<'a>(
    head: &str,
    answered: &[&AnsweredFact<'a>],
    used: &mut SectionRuns<'a>,
    commands: &mut RowCommands,
) -> String {
    let mut names: Vec<&'static str> = Vec::new();
    for peer in answered.iter().flat_map(|each| &each.lines).flat_map(|line| &line.peers) {
        if !names.contains(&peer.name) {
            names.push(peer.name);
        }
    }
    let mut columns = vec![
        HtmlColumn::Text("what was published"),
        HtmlColumn::Text("result"),
        HtmlColumn::Number("published"),
        HtmlColumn::Number("ours"),
        HtmlColumn::Number("ratio"),
        HtmlColumn::Text("ours is"),
        HtmlColumn::Text("tier"),
        HtmlColumn::Number("floor"),
        HtmlColumn::Number("×\u{a0}floor"),
        HtmlColumn::Text("verified"),
    ];
    columns.extend(names.iter().map(|name| HtmlColumn::Number(name)));
    columns.push(HtmlColumn::Text("run"));
    let mut table = HtmlTable::new(head, &columns);
    let mut sources: Vec<&'static Publication> = Vec::new();
    for each in answered {
        if !sources.contains(&each.fact.source) {
            sources.push(each.fact.source);
        }
    }
    for source in sources {
        table.group(&source_words(source));
        for each in answered.iter().filter(|each| each.fact.source == source) {
            add_rows(&mut table, each, &names, used);
            each.lines.iter().for_each(|line| commands.add(&each.fact.what, line));
        }
    }
    table.html()
}

fn add_rows<'a>(
    table: &mut HtmlTable<'_>,
    each: &AnsweredFact<'a>,
    names: &[&'static str],
    used: &mut SectionRuns<'a>,
) {
    let fact = &each.fact;
    if each.lines.is_empty() {
        let result = HtmlCell::Verdict("nobody", "not measured".to_owned());
        let mut cells = vec![text(fact.what.clone()), result, text(fact.figure_text())];
        cells.resize_with(table.width(), nothing);
        table.row(cells);
    }
    for (number, line) in each.lines.iter().enumerate() {
        let once_more = |words: String| match number {
            0 => text(words),
            _ => HtmlCell::Html(format!("<span class=\"again\">{}</span>", escape(&words))),
        };
        let mut cells = vec![once_more(fact.what.clone()), result(fact, line), once_more(fact.figure_text())];
        cells.extend(ours(fact, line));
        cells.extend(names.iter().map(|name| match line.peers.iter().find(|peer| peer.name == *name) {
            Some(peer) => {
                let (class, word) = word(peer.ratio);
                let theirs = escape(&fact.unit.text(peer.theirs));
                HtmlCell::Html(format!("{theirs} <span class=\"v {class}\">{word} {}</span>", ratio(peer.ratio)))
            }
            None => nothing(),
        }));
        cells.push(text(used.letter(line.run)));
        table.row(cells);
    }
}

fn ours(fact: &PublishedFact, line: &AnsweringRow<'_>) -> Vec<HtmlCell> {
    let Comparison { ours, ratio: by, .. } = line.comparison;
    let variation = variation(line, fact);
    let figure_cell = match detail(fact, line.row) {
        _ if ours.is_nan() => nothing(),
        Some(detail) => {
            HtmlCell::Html(format!("{}<br><small>{}</small>", escape(&fact.unit.text(ours)), escape(&detail)))
        }
        None => text(fact.unit.text(ours)),
    };
    let mut cells = vec![figure_cell, by.map_or_else(nothing, |by| text(ratio(by)))];
    cells.push(match variation.as_str() {
        "" => nothing(),
        words => HtmlCell::Html(format!("<span class=\"wrap\">{}</span>", escape(words))),
    });
    cells.push(text(line.row.config.tier.clone().unwrap_or_else(|| "none".to_owned())));
    match &line.floor {
        Some(floor) => {
            let name = escape(&floor.name.replace('_', " "));
            let value = floor.value.map_or_else(String::new, |value| escape(&fact.unit.text(value)) + "<br>");
            cells.push(HtmlCell::Html(format!("{value}<small>{name}</small>")));
            cells.push(text(format!("{:.2}", floor.ratio)));
        }
        None => cells.extend([nothing(), nothing()]),
    }
    cells.push(verified(line.row));
    cells
}

fn detail(fact: &PublishedFact, row: &Row) -> Option<String> {
    match fact.answer.as_ref()?.figure {
        RowFigure::Throughput if !fact.unit.is_of_two_rows() => {
            let (least, greatest) = number(row, "throughput_min_per_s").zip(number(row, "throughput_max_per_s"))?;
            Some(FigureUnit::PerSecond.range_text(least, greatest))
        }
        RowFigure::CpuPercent => Some(format!("{} of CPU a call", time(cpu_ns_per_call(row)?))),
        _ => None,
    }
}

fn result(fact: &PublishedFact, line: &AnsweringRow<'_>) -> HtmlCell {
    let verdict = line.comparison.verdict;
    let class = class(verdict);
    let words = match verdict {
        ComparisonVerdict::NoResult if line.row.failure().is_none() => "missed its rate".to_owned(),
        ComparisonVerdict::NoResult => "check failed".to_owned(),
        ComparisonVerdict::Remark => {
            let remark = fact.answer.as_ref().and_then(|answer| answer.remark.as_ref());
            remark.map_or(verdict.word(), |remark| remark.reason).to_owned()
        }
        other => match fact.source.difference {
            Some(Difference::Wire(_)) => format!("{}, another wire", other.word()),
            Some(Difference::Setting(_)) => format!("{}, a set time-out", other.word()),
            None => other.word().to_owned(),
        },
    };
    HtmlCell::Verdict(class, words)
}

fn class(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Ahead => "ahead",
        ComparisonVerdict::Level => "level",
        ComparisonVerdict::Behind => "behind",
        ComparisonVerdict::NoResult => "missed",
        ComparisonVerdict::Remark => "nobody",
    }
}

fn source_words(source: &Publication) -> String {
    let difference = match source.difference {
        Some(Difference::Wire(text)) => format!(" Another wire: {text}."),
        Some(Difference::Setting(text)) => format!(" No ratio: {text}."),
        None => String::new(),
    };
    format!("{}. Machine: {}. Year: {}.{difference}", source.system, source.machine, source.year)
}

pub(super) fn all_runs(runs: &StoredRuns) -> String {
    let columns = [
        HtmlColumn::Text("file"),
        HtmlColumn::Text("benchmark"),
        HtmlColumn::Text("day"),
        HtmlColumn::Text("commit"),
        HtmlColumn::Text("machine"),
        HtmlColumn::Number("rows"),
        HtmlColumn::Number("no result"),
        HtmlColumn::Text("extent"),
        HtmlColumn::Text("command"),
    ];
    let mut table = HtmlTable::new("Every run that was read", &columns);
    let mut all: Vec<&StoredRun> = runs.all().iter().collect();
    all.sort_by_key(|run| &run.path);
    for run in all {
        let report = &run.report;
        let without = report.rows.len() - run.sound_rows().count();
        let without = if without == 0 { text("0") } else { HtmlCell::Verdict("missed", without.to_string()) };
        let command = report.command_line.as_deref().unwrap_or("not recorded");
        table.row(vec![
            text(run.path.clone()),
            text(report.benchmark.clone()),
            text(run.date.as_deref().unwrap_or("not recorded")),
            text(commit(run)),
            text(report.environment.summary()),
            text(report.rows.len().to_string()),
            without,
            match run.extent() {
                "whole" => text("whole"),
                other => HtmlCell::Verdict("missed", other.to_owned()),
            },
            HtmlCell::Html(format!("<code>{}</code>", escape(command))),
        ]);
    }
    format!(
        "<section id=\"runs\">\n<h2>Every run, and how to repeat it</h2>\n<p>{} published figures in five tables. Each command is run in \
         a clone of the repository at its commit, as <code>cargo run --release -- bench …</code>; a run without a commit cannot be \
         repeated exactly. Add <code>--json FILE</code> and read the file with <code>gapless bench report FILE</code>.</p>\n{}</section>\n",
        facts().len(),
        table.html()
    )
}
