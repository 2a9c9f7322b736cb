//! The screen of `gapless top`: draws readings, moves the selection, and restores the terminal.

use super::ReadingThreads;
use super::keys::{KeyDecoder, ScreenKey};
use super::source::{DirectoryReading, ProcessState};
use super::table;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, ContentStyle, Print, ResetColor, SetAttribute, SetStyle, Stylize};
use crossterm::terminal::{self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use crossterm::terminal::{DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Write};
use std::time::Duration;

const TURN: Duration = Duration::from_millis(50);
const TYPED_BYTES_MAX: usize = 4096;

struct ScreenLine {
    text: String,
    style: ContentStyle,
}

pub(super) struct Screen {
    /// `None` before the first.
    readings: Vec<Option<DirectoryReading>>,
    interval: Duration,
    selected: usize,
    first_row: usize,
}

impl Screen {
    pub(super) fn new(directories: usize, interval: Duration) -> Self {
        Self { readings: vec![None; directories], interval, selected: 0, first_row: 0 }
    }

    fn press(&mut self, key: ScreenKey) -> bool {
        let before = self.selected;
        match key {
            ScreenKey::End => return false,
            ScreenKey::Down => self.selected = (before + 1).min(self.readings.len() - 1),
            ScreenKey::Up => self.selected = before.saturating_sub(1),
            ScreenKey::PageDown => self.first_row += 10,
            ScreenKey::PageUp => self.first_row = self.first_row.saturating_sub(10),
        }
        if self.selected != before {
            self.first_row = 0;
        }
        true
    }

    fn lines(&mut self, height: usize) -> Vec<ScreenLine> {
        let (count, seconds) = (self.readings.len(), self.interval.as_secs_f64());
        let directories = if count == 1 { "directory" } else { "directories" };
        let title =
            format!("gapless top: {count} {directories}, every {seconds} s; ↑↓ selects, PgUp PgDn scrolls, q ends");
        let mut lines = vec![ScreenLine { text: title, style: ContentStyle::new().bold() }];
        lines.extend(self.overview(height.saturating_sub(1)));
        if let Some(reading) = self.readings[self.selected].clone() {
            let room = height.saturating_sub(lines.len());
            lines.extend(self.details(room, &reading));
        }
        lines.truncate(height);
        lines
    }

    fn overview(&self, height: usize) -> Vec<ScreenLine> {
        let style = |(at, reading): (usize, &Option<DirectoryReading>)| {
            let style = match reading {
                Some(reading) if reading.state != ProcessState::Running => ContentStyle::new().red(),
                Some(reading) if reading.problem.is_some() || !reading.unreadable.is_empty() => {
                    ContentStyle::new().yellow()
                }
                _ => ContentStyle::new(),
            };
            if at == self.selected { style.reverse() } else { style }
        };
        let styles: Vec<_> = self.readings.iter().enumerate().map(style).collect();
        let mut known = self.readings.iter().flatten().peekable();
        let mut lines = if known.peek().is_some() && known.all(|reading| !reading.has_node) {
            table_of(table::DOMAIN, &self.rows(table::domain), 2, &styles)
        } else {
            table_of(table::OVERVIEW, &self.rows(table::overview), table::OVERVIEW_WORDS, &styles)
        };
        let room = height.saturating_sub(1).max(1);
        let first = (self.selected + 1).saturating_sub(room);
        lines.drain(1..=first);
        lines.truncate(room + 1);
        lines
    }

    fn rows<const COLUMNS: usize>(
        &self,
        row: impl Fn(&DirectoryReading) -> [String; COLUMNS],
    ) -> Vec<[String; COLUMNS]> {
        let empty = || std::array::from_fn(|column| if column == 0 { "…".to_owned() } else { String::new() });
        self.readings.iter().map(|reading| reading.as_ref().map_or_else(empty, &row)).collect()
    }

    fn details(&mut self, height: usize, reading: &DirectoryReading) -> Vec<ScreenLine> {
        let (peers, nodes, counters) = (table::peers(reading), table::nodes(reading), table::counters(reading));
        let mut lines = vec![ScreenLine { text: table::remark(reading), style: ContentStyle::new().yellow() }];
        lines.extend(block("members", table_of(table::PEERS, &peers, 3, &[])));
        let mut of_nodes = block("nodes", table_of(table::NODES, &nodes, 2, &[]));
        of_nodes.extend(block("routes", table_of(table::ROUTES, &table::routes(reading), 1, &[])));
        of_nodes.extend(block("calls", table_of(table::CALLS, &table::calls(reading), 1, &[])));
        if counters.is_empty() {
            let room = height.saturating_sub(lines.len()).max(1);
            self.first_row = self.first_row.min(of_nodes.len().saturating_sub(room));
            lines.extend(of_nodes.drain(self.first_row..));
            return lines;
        }
        of_nodes.truncate(height / 3);
        lines.extend(of_nodes);
        let room = height.saturating_sub(lines.len() + 2).max(1);
        self.first_row = self.first_row.min(counters.len().saturating_sub(room));
        let mut of_counters = block("counters", table_of(table::COUNTERS, &counters, 1, &[]));
        of_counters.drain(of_counters.len().min(2)..of_counters.len().min(2 + self.first_row));
        lines.extend(of_counters);
        lines
    }
}

fn table_of<const COLUMNS: usize>(
    titles: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    words: usize,
    styles: &[ContentStyle],
) -> Vec<ScreenLine> {
    let styles = styles.iter().copied().chain(std::iter::repeat(ContentStyle::new()));
    let styles = std::iter::once(ContentStyle::new().cyan()).chain(styles);
    table::aligned(titles, rows, words)
        .into_iter()
        .zip(styles)
        .map(|(text, style)| ScreenLine { text, style })
        .collect()
}

fn block(name: &str, mut table: Vec<ScreenLine>) -> Vec<ScreenLine> {
    if !table.is_empty() {
        table.insert(0, ScreenLine { text: name.to_owned(), style: ContentStyle::new().bold() });
    }
    table
}

/// Raw mode; restored on drop, and at a panic before its message.
struct Terminal;

impl Terminal {
    fn new() -> io::Result<Self> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            Self::restore();
            hook(panic);
        }));
        terminal::enable_raw_mode()?;
        let terminal = Self;
        // The terminal knows the width of characters.
        execute!(io::stdout(), EnterAlternateScreen, DisableLineWrap, Hide)?;
        Ok(terminal)
    }

    fn show(&self, lines: &[ScreenLine]) -> io::Result<()> {
        let mut output = io::stdout().lock();
        queue!(output, BeginSynchronizedUpdate)?;
        for (row, line) in (0..).zip(lines) {
            // Cleared before printing: after a line as wide as the terminal, the cursor stands on its last character.
            queue!(output, MoveTo(0, row), Clear(ClearType::CurrentLine), SetStyle(line.style), Print(&line.text))?;
            queue!(output, SetAttribute(Attribute::Reset), ResetColor)?;
        }
        let (_, height) = terminal::size()?;
        if let Ok(next) = u16::try_from(lines.len())
            && next < height
        {
            queue!(output, MoveTo(0, next), Clear(ClearType::FromCursorDown))?;
        }
        queue!(output, EndSynchronizedUpdate)?;
        output.flush()
    }

    /// An error means that there is no terminal any more.
    fn restore() {
        let _ = execute!(io::stdout(), Show, EnableLineWrap, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        Self::restore();
    }
}

/// `None` if the terminal has gone.
fn typed(bytes: &mut [u8]) -> io::Result<Option<&[u8]>> {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let turn = Timespec { tv_sec: 0, tv_nsec: i64::from(TURN.subsec_nanos()) };
    match poll(&mut polled, Some(&turn)) {
        Ok(0) => return Ok(Some(&[])),
        Err(Errno::INTR) => return Ok(Some(&[])),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Ok(None);
    }
    match rustix::io::read(&stdin, &mut *bytes) {
        Ok(0) => Ok(None),
        Ok(length) => Ok(Some(&bytes[..length])),
        Err(Errno::INTR | Errno::AGAIN) => Ok(Some(&[])),
        Err(Errno::IO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn run(watch: &ReadingThreads, interval: Duration, is_interrupted: impl Fn() -> bool) -> io::Result<()> {
    let mut screen = Screen::new(watch.directories(), interval);
    let terminal = Terminal::new()?;
    let (mut keys, mut bytes, mut drawn_size) = (KeyDecoder::default(), vec![0; TYPED_BYTES_MAX], None);
    let mut is_new = true;
    while !is_interrupted() {
        while let Some((at, reading)) = watch.next() {
            screen.readings[at] = Some(reading);
            is_new = true;
        }
        let size = terminal::size()?;
        if is_new || drawn_size != Some(size) {
            terminal.show(&screen.lines(usize::from(size.1)))?;
            (is_new, drawn_size) = (false, Some(size));
        }
        let Some(typed) = typed(&mut bytes)? else { return Ok(()) };
        let typed = if typed.is_empty() { keys.pause().into_iter().collect() } else { keys.of(typed) };
        for key in typed {
            if !screen.press(key) {
                return Ok(());
            }
            is_new = true;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::super::source::ReadingSource;
    use super::*;
    use gapless_agent::Counters;
    use gapless_cluster::member::control::StatusReport;

    fn drawn(screen: &mut Screen, height: usize) -> Vec<String> {
        let lines = screen.lines(height);
        assert!(lines.len() <= height, "{} lines on {height} rows", lines.len());
        lines.into_iter().map(|line| line.text).collect()
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
    fn counters_show_rates_and_state() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let counters = Counters::create(&path, 64).unwrap();
        let last = counters.add("sequencer.last_sequence").unwrap();
        counters.add("sequencer.sessions").unwrap().set(2);
        last.set(1000);
        let mut source = ReadingSource::new(directory.path());
        let mut screen = Screen::new(1, Duration::from_secs(1));
        assert!(drawn(&mut screen, 12)[2].starts_with('…'), "nothing is read yet");
        screen.readings[0] = Some(source.read());
        let first = drawn(&mut screen, 12);
        assert!(first[0].starts_with("gapless top: 1 directory, every 1 s;"), "{first:?}");
        assert_eq!(
            words(&first[2])[1..],
            ["running", "sequencer", "-", "-", "-", "1000", "-", "-", "-", "2", "0", "0"]
        );
        assert!(first.contains(&"counters".to_owned()), "{first:#?}");

        std::thread::sleep(Duration::from_millis(20));
        last.set(2000);
        screen.readings[0] = Some(source.read());
        let second = drawn(&mut screen, 12);
        let rate: f64 = words(&second[2])[8].parse().unwrap();
        assert!(rate > 0.0 && rate <= 50_000.0, "1000 frames in 20 ms or more: {rate}");
        let line = second.iter().find(|line| line.starts_with("sequencer.last_sequence")).unwrap();
        assert_eq!(words(line)[1], "2000");
        assert_eq!(words(line)[2], words(&second[2])[8]);

        drop(counters);
        screen.readings[0] = Some(source.read());
        let gone = drawn(&mut screen, 12);
        assert_eq!(words(&gone[2])[1], "gone");
        assert!(gone[3].contains(&format!("process {} has gone", std::process::id())), "{gone:#?}");
        let _again = Counters::create(&path, 64).unwrap();
        screen.readings[0] = Some(source.read());
        let back = drawn(&mut screen, 12);
        assert_eq!(words(&back[2])[1], "running");
        assert_eq!(words(&back[2]).last(), Some(&"0"));
    }

    #[test]
    fn member_is_drawn_with_its_peers() {
        let directory = tempfile::tempdir().unwrap();
        let counters = Counters::create(directory.path().join("counters"), 64).unwrap();
        for number in 0..40 {
            counters.add(&format!("counter.{number:02}")).unwrap().set(number);
        }
        let mut screen = Screen::new(2, Duration::from_secs(1));
        let mut reading = ReadingSource::new(directory.path()).read();
        reading.member = Some(report());
        reading.problem = Some("a \x1b[2J word".to_owned());
        screen.readings[1] = Some(reading);
        assert!(screen.press(ScreenKey::Down) && screen.press(ScreenKey::Down));
        let lines = drawn(&mut screen, 20);
        assert_eq!(words(&lines[3])[1..11], ["running", "leader", "4", "1", "quorum", "90", "95", "-", "15", "3"]);
        assert_eq!(lines[4], r"a \u{1b}[2J word", "nothing moves the cursor");
        let at = lines.iter().position(|line| line == "members").unwrap();
        assert_eq!(words(&lines[at + 2]), ["1", "voter", "itself", "95", "0"]);
        assert_eq!(words(&lines[at + 3]), ["2", "witness", "none", "80", "15"]);
        assert!(lines.iter().any(|line| line.starts_with("counter.00")), "{lines:#?}");
        (0..9).for_each(|_| assert!(screen.press(ScreenKey::PageDown)));
        let scrolled = drawn(&mut screen, 20);
        assert!(scrolled.last().unwrap().starts_with("counter.39"), "{scrolled:#?}");
        for height in 0..8 {
            drawn(&mut screen, height);
        }
        assert!(drawn(&mut screen, 3)[2].contains("running"), "the second one is selected");
    }

    #[test]
    fn domains_have_no_node_columns() {
        let (domain, node) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut screen = Screen::new(2, Duration::from_secs(1));
        screen.readings[0] = Some(ReadingSource::new(domain.path()).read());
        let lines = drawn(&mut screen, 12);
        assert_eq!(words(&lines[1]), table::DOMAIN);
        assert_eq!(words(&lines[2])[1..], ["stopped", "0", "0"]);
        assert!(lines[3].starts_with('…') && lines[4].contains("no route is served or called"), "{lines:#?}");
        let copy = |number: u32| {
            let statistics = gapless_rpc::InstanceStatistics::default();
            (
                gapless_rpc::domain::InstanceReading {
                    route: format!("route-{number}"),
                    process_id: number,
                    process_name: None,
                    statistics,
                },
                None,
            )
        };
        screen.readings[0].as_mut().unwrap().routes = (0..40).map(copy).collect();
        assert!(drawn(&mut screen, 12)[11].starts_with("route-4 "), "from the fifth row on");
        (0..9).for_each(|_| assert!(screen.press(ScreenKey::PageDown)));
        assert!(drawn(&mut screen, 12)[11].starts_with("route-39 "));
        let _counters = Counters::create(node.path().join("counters"), 64).unwrap();
        screen.readings[1] = Some(ReadingSource::new(node.path()).read());
        assert!(drawn(&mut screen, 12)[1].contains("sessions"));
    }

    #[test]
    fn keys_end_it() {
        let mut screen = Screen::new(1, Duration::from_secs(1));
        assert!(!screen.press(ScreenKey::End));
        assert!(screen.press(ScreenKey::Up) && screen.press(ScreenKey::PageUp));
    }
}
