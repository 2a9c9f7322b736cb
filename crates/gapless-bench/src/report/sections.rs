//! The sections of the page: legend, the five tables with their pictures and runs, and every run.

use super::answers::{Answered, Line, variation};
use super::html::{Cell, Column, Table, escape, figure, nothing, range, ratio, text, verified};
use super::peers::{self, OfRun};
use super::pictures::{self, Pictures};
use super::runs::{Run, Runs};
use gapless_measure::published::{Comparison, Fact, Source, System, Verdict, facts};
use std::fmt::Write as _;

/// Anchor, head and introduction of a table.
pub(super) fn words(system: System) -> (&'static str, &'static str, &'static str) {
    match system {
        System::Rumi => (
            "service",
            "A service on a primary and its backup, beside Rumi",
            "Car messages are received, decoded, processed, replicated, logged, acknowledged, encoded and sent. Published on two hosts \
             over InfiniBand; ours are two processes over loopback TCP, so that the figures stand next to each other without a ratio. \
             The bare round trip over our link, at the same pace in the same run, is the floor.",
        ),
        System::CoralSequencer => (
            "sequencer",
            "A sequencer and its nodes, beside CoralSequencer",
            "A node sends a message, the sequencer gives it its place in the stream, the node gets it back; then three nodes push as \
             fast as they can. Both over loopback UDP, on different machines. Ours also writes each message to a journal.",
        ),
        System::EnduroX => (
            "calls",
            "Calls between processes, beside Enduro/X and RabbitMQ",
            "A client sends bytes, a server adds one to each and answers. RabbitMQ and NATS are measured again here, in the same run.",
        ),
        System::Mercury => (
            "payloads",
            "Events in memory and large payloads, beside Mercury",
            "Parallel calls, forked and joined: one way a payload goes and a boolean comes back, two ways the payload comes back. Ours \
             through Kafka is measured by nobody: two processes share memory instead, without a ratio.",
        ),
        System::Axon => (
            "commands",
            "The command bus, beside Axon Framework",
            "A command loads an aggregate, always the same, calls one method, and yields one event, which is stored and published in \
             memory. Axon Framework 4 is measured again here, in the same run.",
        ),
    }
}

/// What the words in the tables mean.
pub(super) fn legend() -> String {
    "<p class=\"key\"><span class=\"v ahead\">ahead</span> ours is better than the best published figure; \
     <span class=\"v level\">level</span> within the published range; <span class=\"v behind\">behind</span> worse; \
     <span class=\"v missed\">no result</span> a missed rate or a failed check; <span class=\"v nobody\">not measured</span> nobody \
     has measured it here. Ratios are above 1 where Gapless is better. × floor is how many times ours takes what the bare machine \
     takes. Published figures are of other machines: years lie between some of them and ours.</p>\n"
        .to_owned()
}

/// Links to the sections.
pub(super) fn contents() -> String {
    let mut html = "<nav aria-label=\"Tables\"><ul>\n".to_owned();
    for system in System::ALL {
        let (anchor, head, _) = words(system);
        let _ = writeln!(html, "<li><a href=\"#{anchor}\">{}</a></li>", escape(head));
    }
    html + "<li><a href=\"#runs\">Every run, and how to repeat it</a></li>\n</ul></nav>\n"
}

/// The five tables.
pub(super) fn html(runs: &Runs, answered: &[Answered<'_>]) -> String {
    let mut html = String::new();
    for system in System::ALL {
        let (anchor, head, introduction) = words(system);
        let _ = writeln!(html, "<section id=\"{anchor}\">\n<h2>{}</h2>\n<p>{}</p>", escape(head), escape(introduction));
        let of_system: Vec<&Answered<'_>> = answered.iter().filter(|each| each.fact.system == system).collect();
        let (tables, pictures) = parts(system, runs);
        let mut used = Used::default();
        for line in of_system.iter().flat_map(|each| &each.lines) {
            used.letter(line.run);
        }
        html += &published_table(head, &of_system, &mut used);
        for table in tables.into_iter().flatten() {
            html += &table.html;
            let letter = used.letter(table.run);
            let _ = writeln!(html, "<p class=\"from\">Run {letter}.</p>");
        }
        if !pictures.html.is_empty() {
            let letters: Vec<String> = pictures.runs.iter().map(|run| used.letter(run)).collect();
            let mut letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            letters.dedup();
            html += &format!("<div class=\"pictures\">\n{}</div>\n", pictures.html);
            let _ = writeln!(html, "<p class=\"from\">Pictures of run {}.</p>", letters.join(", "));
        }
        html += &used.html();
        html += "</section>\n";
    }
    html
}

/// The tables of whole runs and the pictures of a section.
fn parts(system: System, runs: &Runs) -> (Vec<Option<OfRun<'_>>>, Pictures<'_>) {
    match system {
        System::Rumi => (vec![peers::failover_table(runs)], pictures::rumi(runs)),
        System::CoralSequencer => (Vec::new(), pictures::coralsequencer(runs)),
        System::EnduroX => {
            let tables = vec![peers::call_table(runs), peers::fault_table(runs), peers::supervisor_table(runs)];
            (tables, pictures::endurox(runs))
        }
        System::Mercury => (Vec::new(), pictures::mercury(runs)),
        System::Axon => (vec![peers::command_table(runs)], pictures::axon(runs)),
    }
}

/// The runs of a section, each with a letter.
#[derive(Default)]
struct Used<'a>(Vec<&'a Run>);

impl<'a> Used<'a> {
    fn letter(&mut self, run: &'a Run) -> String {
        let place = self.0.iter().position(|known| known.path == run.path).unwrap_or_else(|| {
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
                "<dt>{}</dt><dd><code>{}</code><br>{}; {}; {}; {}</dd>",
                letter(place),
                escape(command),
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

fn commit(run: &Run) -> String {
    let commit = run.report.commit.as_deref();
    commit.map_or_else(
        || "commit not recorded".to_owned(),
        |commit| format!("commit {}", commit.chars().take(12).collect::<String>()),
    )
}

fn published_table<'a>(head: &str, answered: &[&Answered<'a>], used: &mut Used<'a>) -> String {
    let mut names: Vec<&'static str> = Vec::new();
    for peer in answered.iter().flat_map(|each| &each.lines).flat_map(|line| &line.peers) {
        if !names.contains(&peer.name) {
            names.push(peer.name);
        }
    }
    let mut columns = vec![
        Column::Text("what was published"),
        Column::Text("result"),
        Column::Number("published"),
        Column::Number("ours"),
        Column::Number("ratio"),
        Column::Text("ours is"),
        Column::Text("tier"),
        Column::Number("floor"),
        Column::Number("×\u{a0}floor"),
        Column::Text("verified"),
    ];
    columns.extend(names.iter().map(|name| Column::Number(name)));
    columns.push(Column::Text("run"));
    let mut table = Table::new(head, &columns);
    let mut sources: Vec<&'static Source> = Vec::new();
    for each in answered {
        if !sources.contains(&each.fact.source) {
            sources.push(each.fact.source);
        }
    }
    for source in sources {
        table.group(&source_words(source));
        for each in answered.iter().filter(|each| each.fact.source == source) {
            add_rows(&mut table, each, &names, used);
        }
    }
    table.html()
}

/// The rows of one published figure.
fn add_rows<'a>(table: &mut Table<'_>, each: &Answered<'a>, names: &[&'static str], used: &mut Used<'a>) {
    let fact = &each.fact;
    if each.lines.is_empty() {
        let result = Cell::Verdict("nobody", "measured by nobody".to_owned());
        let mut cells = vec![text(fact.what.clone()), result, text(published(fact))];
        cells.resize_with(11 + names.len(), nothing);
        table.row(cells);
    }
    for (number, line) in each.lines.iter().enumerate() {
        // The same published figure once more is said quietly.
        let once_more = |words: String| match number {
            0 => text(words),
            _ => Cell::Html(format!("<span class=\"again\">{}</span>", escape(&words))),
        };
        let mut cells = vec![once_more(fact.what.clone()), result(fact, line), once_more(published(fact))];
        cells.extend(ours(fact, line));
        cells.extend(names.iter().map(|name| match line.peers.iter().find(|peer| peer.name == *name) {
            Some(peer) => {
                let word = if peer.ratio > 1.0 { "ahead" } else { "behind" };
                let theirs = escape(&figure(peer.theirs, fact.unit));
                Cell::Html(format!("{theirs} <span class=\"v {word}\">{word} {}</span>", ratio(peer.ratio)))
            }
            None => nothing(),
        }));
        cells.push(text(used.letter(line.run)));
        table.row(cells);
    }
}

/// The cells of one of our rows, from its figure to whether it is verified.
fn ours(fact: &Fact, line: &Line<'_>) -> Vec<Cell> {
    let Comparison { ours, ratio: by, .. } = line.comparison;
    let variation = variation(line, fact);
    let mut cells = vec![text(figure(ours, fact.unit)), by.map_or_else(nothing, |by| text(ratio(by)))];
    cells.push(match variation.as_str() {
        "" => nothing(),
        words => Cell::Html(format!("<span class=\"wrap\">{}</span>", escape(words))),
    });
    cells.push(text(line.row.config.tier.clone().unwrap_or_else(|| "none".to_owned())));
    match &line.floor {
        Some(floor) => {
            let name = floor.name.replace('_', " ");
            let value = figure(floor.value, fact.unit);
            cells.push(Cell::Html(format!("{}<br><small>{}</small>", escape(&value), escape(&name))));
            cells.push(text(format!("{:.2}", floor.ratio)));
        }
        None => cells.extend([nothing(), nothing()]),
    }
    cells.push(verified(line.row));
    cells
}

fn result(fact: &Fact, line: &Line<'_>) -> Cell {
    let verdict = line.comparison.verdict;
    let class = class(verdict);
    let words = match verdict {
        Verdict::NoResult if line.row.failure().is_none() => "missed its rate".to_owned(),
        Verdict::NoResult => "check failed".to_owned(),
        other if fact.source.wire.is_some() => format!("{}, another wire", other.word()),
        other => other.word().to_owned(),
    };
    Cell::Verdict(class, words)
}

/// The class of a verdict in the page's style.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ahead => "ahead",
        Verdict::Level => "level",
        Verdict::Behind => "behind",
        Verdict::NoResult => "missed",
    }
}

fn published(fact: &Fact) -> String {
    let range = range(fact.least, fact.greatest, fact.unit);
    if fact.precision.is_empty() { range } else { format!("{} {range}", fact.precision) }
}

fn source_words(source: &Source) -> String {
    let wire = source.wire.map_or_else(String::new, |wire| format!(" Another wire: {wire}."));
    format!("{}. Machine: {}. Year: {}.{wire}", source.system, source.machine, source.year)
}

/// Every file that was read, whether a table uses it or not.
pub(super) fn all_runs(runs: &Runs) -> String {
    let columns = [
        Column::Text("file"),
        Column::Text("benchmark"),
        Column::Text("day"),
        Column::Text("commit"),
        Column::Text("machine"),
        Column::Number("rows"),
        Column::Number("no result"),
        Column::Text("command"),
    ];
    let mut table = Table::new("Every run that was read", &columns);
    let mut all: Vec<&Run> = runs.all().iter().collect();
    all.sort_by_key(|run| &run.path);
    for run in all {
        let report = &run.report;
        let without = report.rows.len() - run.sound_rows().count();
        let without = if without == 0 { text("0") } else { Cell::Verdict("missed", without.to_string()) };
        let command = report.command_line.as_deref().unwrap_or("not recorded");
        table.row(vec![
            text(run.path.clone()),
            text(report.benchmark.clone()),
            text(run.date.as_deref().unwrap_or("not recorded")),
            text(commit(run)),
            text(report.environment.summary()),
            text(report.rows.len().to_string()),
            without,
            Cell::Html(format!("<code>{}</code>", escape(command))),
        ]);
    }
    format!(
        "<section id=\"runs\">\n<h2>Every run, and how to repeat it</h2>\n<p>{} published figures in five tables. Each command is run in \
         a clone of the repository at its commit, as <code>cargo run --release -- bench …</code>; add <code>--json FILE</code> and read \
         the file with <code>gapless bench report FILE</code>.</p>\n{}</section>\n",
        facts().len(),
        table.html()
    )
}
