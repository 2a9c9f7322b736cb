//! The screen of `gapless top`: draws readings, moves the selection, and leaves the terminal as it was.

use super::Watch;
use super::source::{Reading, State};
use super::table;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Table, TableState};
use std::io;
use std::time::Duration;

/// Between two looks for keys and readings.
const TURN: Duration = Duration::from_millis(50);

/// What is shown.
pub(super) struct Screen {
    /// The last reading of each directory; `None` before the first.
    readings: Vec<Option<Reading>>,
    interval: Duration,
    selected: usize,
    /// The first counter that is shown.
    first_counter: usize,
}

impl Screen {
    pub(super) fn new(directories: usize, interval: Duration) -> Self {
        Self { readings: vec![None; directories], interval, selected: 0, first_counter: 0 }
    }

    /// Takes a key; `false` ends it.
    fn press(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let before = self.selected;
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('c' | 'd') if is_control => return false,
            KeyCode::Down | KeyCode::Char('j') => self.selected = (before + 1).min(self.readings.len() - 1),
            KeyCode::Up | KeyCode::Char('k') => self.selected = before.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first_counter += 10,
            KeyCode::PageUp => self.first_counter = self.first_counter.saturating_sub(10),
            _ => {}
        }
        if self.selected != before {
            self.first_counter = 0;
        }
        true
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let overview = self.readings.len() as u16 + 1;
        let [title, all, one] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(overview), Constraint::Min(0)])
                .areas(frame.area());
        let (count, seconds) = (self.readings.len(), self.interval.as_secs_f64());
        let directories = if count == 1 { "directory" } else { "directories" };
        let words =
            format!("gapless top: {count} {directories}, every {seconds} s; ↑↓ selects, PgUp PgDn scrolls, q ends");
        frame.render_widget(Line::styled(words, Style::new().add_modifier(Modifier::BOLD)), title);
        self.draw_overview(frame, all);
        if let Some(reading) = self.readings[self.selected].clone() {
            self.draw_one(frame, one, &reading);
        }
    }

    fn draw_overview(&self, frame: &mut Frame<'_>, area: Rect) {
        let row = |reading: &Option<Reading>| {
            let Some(reading) = reading else { return (Row::new(["…"]), None) };
            let style = match reading.state {
                State::Running if reading.problem.is_none() => Style::new(),
                State::Running => Style::new().fg(Color::Yellow),
                State::Gone | State::Stopped => Style::new().fg(Color::Red),
            };
            let cells = table::overview(reading);
            (row_of(&cells, table::OVERVIEW_WORDS).style(style), Some(cells))
        };
        let (rows, cells): (Vec<_>, Vec<_>) = self.readings.iter().map(row).unzip();
        let cells: Vec<_> = cells.into_iter().flatten().collect();
        let table = table_of(table::OVERVIEW, rows, &cells, table::OVERVIEW_WORDS)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(self.selected));
    }

    fn draw_one(&mut self, frame: &mut Frame<'_>, area: Rect, reading: &Reading) {
        let (peers, nodes, counters) = (table::peers(reading), table::nodes(reading), table::counters(reading));
        // The titles take a line, the block one more; what has no rows takes none.
        let height = |rows: usize| if rows == 0 { 0 } else { rows as u16 + 2 };
        let [remark, of_peers, of_nodes, of_counters] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(height(peers.len())),
            // Counters keep some room, however many nodes there are.
            Constraint::Length(height(nodes.len()).min(area.height / 3)),
            Constraint::Min(0),
        ])
        .areas(area);
        frame.render_widget(Line::styled(table::remark(reading), Style::new().fg(Color::Yellow)), remark);
        let block = |title: &'static str| Block::new().title(Line::styled(title, Modifier::BOLD));
        if !peers.is_empty() {
            let table = table_of(table::PEERS, rows_of(&peers, 3), &peers, 3).block(block("members"));
            frame.render_widget(table, of_peers);
        }
        if !nodes.is_empty() {
            let table = table_of(table::NODES, rows_of(&nodes, 2), &nodes, 2).block(block("nodes"));
            frame.render_widget(table, of_nodes);
        }
        let room = usize::from(of_counters.height.saturating_sub(2)).max(1);
        self.first_counter = self.first_counter.min(counters.len().saturating_sub(room));
        if !counters.is_empty() {
            let seen = rows_of(&counters[self.first_counter..], 1);
            let table = table_of(table::COUNTERS, seen, &counters, 1).block(block("counters"));
            frame.render_widget(table, of_counters);
        }
    }
}

fn row_of<const COLUMNS: usize>(cells: &[String; COLUMNS], words: usize) -> Row<'static> {
    let line = |(column, cell): (usize, &String)| {
        let line = Line::from(cell.clone());
        if column < words { line } else { line.right_aligned() }
    };
    Row::new(cells.iter().enumerate().map(line).collect::<Vec<_>>())
}

fn rows_of<const COLUMNS: usize>(rows: &[[String; COLUMNS]], words: usize) -> Vec<Row<'static>> {
    rows.iter().map(|cells| row_of(cells, words)).collect()
}

/// A table as wide as its cells.
fn table_of<const COLUMNS: usize>(
    titles: [&str; COLUMNS],
    rows: Vec<Row<'static>>,
    cells: &[[String; COLUMNS]],
    words: usize,
) -> Table<'static> {
    let width = |column: usize| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        widths.chain([titles[column].chars().count()]).max().unwrap_or(0) as u16
    };
    let widths: Vec<_> = (0..COLUMNS).map(|column| Constraint::Length(width(column))).collect();
    let header = row_of(&titles.map(str::to_owned), words).style(Style::new().fg(Color::Cyan));
    Table::new(rows, widths).header(header).column_spacing(2)
}

/// The terminal, given back however this ends; a panic gives it back, too.
struct Terminal(ratatui::DefaultTerminal);

impl Terminal {
    fn new() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows what `watch` reads until q, Ctrl-C or a signal.
pub(super) fn run(watch: &Watch, interval: Duration, is_interrupted: impl Fn() -> bool) -> io::Result<()> {
    let mut screen = Screen::new(watch.directories(), interval);
    let mut terminal = Terminal::new()?;
    let mut is_new = true;
    while !is_interrupted() {
        while let Some((at, reading)) = watch.next() {
            screen.readings[at] = Some(reading);
            is_new = true;
        }
        if is_new {
            terminal.0.draw(|frame| screen.draw(frame))?;
            is_new = false;
        }
        if event::poll(TURN)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if !screen.press(key) {
                        return Ok(());
                    }
                    is_new = true;
                }
                Event::Resize(..) => is_new = true,
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::super::source::Source;
    use super::*;
    use gapless::agent::Counters;
    use gapless::cluster::member::control::StatusReport;
    use ratatui::backend::TestBackend;

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    fn report() -> StatusReport {
        serde_json::from_value(serde_json::json!({
            "cluster": "orders", "member": 1, "role": "leader", "term": 4, "leader": 1, "tier": "quorum",
            "released_sequence": 90, "journaled_sequence": 95, "sessions": 3, "fetching_to": null,
            "messages_refused": 0, "messages_dropped": 0,
            "members": [
                { "member": 1, "kind": "voter", "is_connected": true, "matched_sequence": 95, "lag_frames": 0 },
                { "member": 2, "kind": "witness", "is_connected": false, "matched_sequence": 80, "lag_frames": 15 },
            ],
        }))
        .unwrap()
    }

    #[test]
    fn a_counters_file_is_drawn_with_its_rates_and_what_becomes_of_its_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let counters = Counters::create(&path, 64).unwrap();
        let last = counters.add("sequencer.last_sequence").unwrap();
        counters.add("sequencer.sessions").unwrap().set(2);
        last.set(1000);
        let mut source = Source::new(directory.path());
        let mut screen = Screen::new(1, Duration::from_secs(1));
        assert!(drawn(&mut screen, 120, 12)[2].starts_with('…'), "nothing is read yet");
        screen.readings[0] = Some(source.read());
        let first = drawn(&mut screen, 160, 12);
        assert!(first[0].starts_with("gapless top: 1 directory, every 1 s;"), "{first:?}");
        assert_eq!(
            words(&first[2])[1..],
            ["running", "sequencer", "-", "-", "-", "1000", "-", "-", "-", "2", "0", "0"]
        );
        assert!(first.contains(&"counters".to_owned()), "{first:#?}");

        std::thread::sleep(Duration::from_millis(20));
        last.set(2000);
        screen.readings[0] = Some(source.read());
        let second = drawn(&mut screen, 160, 12);
        let rate: f64 = words(&second[2])[8].parse().unwrap();
        assert!(rate > 0.0 && rate <= 50_000.0, "1000 frames in 20 ms or more: {rate}");
        let line = second.iter().find(|line| line.starts_with("sequencer.last_sequence")).unwrap();
        assert_eq!(words(line)[1], "2000");
        assert_eq!(words(line)[2], words(&second[2])[8]);

        drop(counters);
        screen.readings[0] = Some(source.read());
        let gone = drawn(&mut screen, 160, 12);
        assert_eq!(words(&gone[2])[1], "gone");
        assert!(gone[3].contains(&format!("process {} has gone", std::process::id())), "{gone:#?}");
        let _again = Counters::create(&path, 64).unwrap();
        screen.readings[0] = Some(source.read());
        let back = drawn(&mut screen, 160, 12);
        assert_eq!(words(&back[2])[1], "running");
        // The same process has it: nobody was started anew.
        assert_eq!(words(&back[2]).last(), Some(&"0"));
    }

    #[test]
    fn a_member_is_drawn_with_its_peers() {
        let directory = tempfile::tempdir().unwrap();
        let counters = Counters::create(directory.path().join("counters"), 64).unwrap();
        for number in 0..40 {
            counters.add(&format!("counter.{number:02}")).unwrap().set(number);
        }
        let mut screen = Screen::new(2, Duration::from_secs(1));
        let mut reading = Source::new(directory.path()).read();
        reading.member = Some(report());
        reading.problem = Some("a \x1b[2J word".to_owned());
        screen.readings[1] = Some(reading);
        assert!(screen.press(KeyCode::Down.into()) && screen.press(KeyCode::Down.into()));
        let lines = drawn(&mut screen, 160, 20);
        assert_eq!(words(&lines[3])[1..11], ["running", "leader", "4", "1", "quorum", "90", "95", "-", "15", "3"]);
        assert_eq!(lines[4], "a [2J word", "nothing moves the cursor");
        let at = lines.iter().position(|line| line == "members").unwrap();
        assert_eq!(words(&lines[at + 2]), ["1", "voter", "itself", "95", "0"]);
        assert_eq!(words(&lines[at + 3]), ["2", "witness", "none", "80", "15"]);
        assert!(lines.iter().any(|line| line.starts_with("counter.00")), "{lines:#?}");
        // It scrolls, and not beyond the last one.
        (0..9).for_each(|_| assert!(screen.press(KeyCode::PageDown.into())));
        let scrolled = drawn(&mut screen, 160, 20);
        assert!(scrolled.last().unwrap().starts_with("counter.39"), "{scrolled:#?}");
        // No size is too small.
        for (width, height) in [(1, 1), (20, 3), (0, 0)] {
            drawn(&mut screen, width, height);
        }
    }

    #[test]
    fn keys_end_it() {
        let mut screen = Screen::new(1, Duration::from_secs(1));
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        assert!(!screen.press(KeyCode::Char('q').into()) && !screen.press(KeyCode::Esc.into()));
        assert!(!screen.press(control('c')));
        assert!(screen.press(KeyCode::Char('c').into()) && screen.press(KeyCode::Up.into()));
    }
}
