//! [`ClientHistory`]: operations of clients with their results, in Jepsen's EDN, one operation a line, with Elle's
//! list-append transactions of one operation each:
//!
//! ```text
//! {:index 0, :type :invoke, :f :txn, :value [[:append 3 17]], :process 0, :time 1200300}
//! {:index 1, :type :ok, :f :txn, :value [[:r 3 [17 18]]], :process 1, :time 1400500}
//! ```
//!
//! `:ok` happened, `:fail` never will, `:info` may or may not, now or later. Times are ns of one monotonic clock. The
//! check here is complete for lists whose values are unique: each list's order is that of its longest read, all other
//! reads are prefixes of it, and an operation that ended before another began precedes it.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Invoke,
    Ok,
    Fail,
    Info,
}

impl EventKind {
    const NAMES: [(&'static str, Self); 4] =
        [(":invoke", Self::Invoke), (":ok", Self::Ok), (":fail", Self::Fail), (":info", Self::Info)];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAction {
    Append { key: u64, value: u64 },
    Read { key: u64, list: Option<Vec<u64>> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    pub kind: EventKind,
    pub process: u64,
    pub time_ns: u64,
    pub action: ClientAction,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHistory(Vec<HistoryEvent>);

#[derive(Debug)]
pub struct HistoryCounts {
    pub appends: usize,
    pub reads: usize,
    pub failed: usize,
    pub unknown: usize,
    pub unknown_happened: usize,
}

impl fmt::Display for HistoryCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { appends, reads, failed, unknown, unknown_happened } = self;
        write!(
            f,
            "linearizable: {appends} appends and {reads} reads are done, {failed} have failed, of {unknown} nobody was \
             told, {unknown_happened} of these are appends that happened"
        )
    }
}

struct Operation<'a> {
    begun_ns: u64,
    ended_ns: u64,
    end: EventKind,
    action: &'a ClientAction,
}

impl ClientHistory {
    pub fn push(&mut self, kind: EventKind, process: u64, time_ns: u64, action: ClientAction) {
        self.0.push(HistoryEvent { kind, process, time_ns, action });
    }

    pub fn to_edn(&self) -> String {
        let mut text = String::new();
        for (index, event) in self.0.iter().enumerate() {
            let kind = EventKind::NAMES.iter().find(|(_, kind)| *kind == event.kind).unwrap().0;
            let action = match &event.action {
                ClientAction::Append { key, value } => format!("[:append {key} {value}]"),
                ClientAction::Read { key, list: None } => format!("[:r {key} nil]"),
                ClientAction::Read { key, list: Some(list) } => {
                    let values: Vec<String> = list.iter().map(u64::to_string).collect();
                    format!("[:r {key} [{}]]", values.join(" "))
                }
            };
            let HistoryEvent { process, time_ns, .. } = event;
            writeln!(
                text,
                "{{:index {index}, :type {kind}, :f :txn, :value [{action}], :process {process}, :time {time_ns}}}"
            )
            .unwrap();
        }
        text
    }

    /// Parses the output of [`ClientHistory::to_edn`] only.
    pub fn from_edn(text: &str) -> Result<Self, String> {
        let mut history = Self::default();
        for line in text.lines() {
            let event = event(line).ok_or_else(|| format!("no operation: {line}"))?;
            history.0.push(event);
        }
        Ok(history)
    }

    fn operations(&self) -> Result<Vec<Operation<'_>>, String> {
        let mut open = HashMap::<u64, &HistoryEvent>::new();
        let mut operations = Vec::new();
        let operation =
            |begin: &HistoryEvent, ended_ns, end, action| Operation { begun_ns: begin.time_ns, ended_ns, end, action };
        for event in &self.0 {
            if event.kind == EventKind::Invoke {
                if open.insert(event.process, event).is_some() {
                    return Err(format!("process {} does two things at a time", event.process));
                }
                continue;
            }
            let begin = open.remove(&event.process).ok_or("an end without a beginning")?;
            let ended_ns = if event.kind == EventKind::Info { u64::MAX } else { event.time_ns };
            operations.push(operation(begin, ended_ns, event.kind, &event.action));
        }
        operations.extend(open.into_values().map(|begin| operation(begin, u64::MAX, EventKind::Info, &begin.action)));
        Ok(operations)
    }

    pub fn check(&self) -> Result<HistoryCounts, String> {
        let operations = self.operations()?;
        let mut counts = HistoryCounts { appends: 0, reads: 0, failed: 0, unknown: 0, unknown_happened: 0 };
        for operation in &operations {
            match (operation.end, operation.action) {
                (EventKind::Ok, ClientAction::Append { .. }) => counts.appends += 1,
                (EventKind::Ok, ClientAction::Read { .. }) => counts.reads += 1,
                (EventKind::Fail, _) => counts.failed += 1,
                _ => counts.unknown += 1,
            }
        }
        let mut keys: Vec<u64> = operations
            .iter()
            .map(|operation| match operation.action {
                ClientAction::Append { key, .. } | ClientAction::Read { key, .. } => *key,
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            counts.unknown_happened += check_list(key, &operations)?;
        }
        Ok(counts)
    }
}

/// Lists are independent, so all are linearizable if each is.
fn check_list(key: u64, operations: &[Operation<'_>]) -> Result<usize, String> {
    let mut appends = HashMap::new();
    let (mut reads, mut is_unique) = (Vec::new(), true);
    for operation in operations {
        match operation.action {
            ClientAction::Append { key: of, value } if *of == key => {
                let before = appends.insert(*value, operation);
                is_unique &= before.is_none();
            }
            ClientAction::Read { key: of, list: Some(list) } if *of == key && operation.end == EventKind::Ok => {
                reads.push((list, operation));
            }
            _ => {}
        }
    }
    if !is_unique {
        return Err(format!("a value is appended twice to list {key}: it is to be unique"));
    }
    reads.sort_by_key(|(list, _)| list.len());
    let Some((longest, _)) = reads.last().copied() else { return Ok(0) };
    for (list, _) in &reads {
        if !longest.starts_with(list) {
            return Err(format!("of list {key}, {list:?} is no beginning of {longest:?}"));
        }
    }
    let mut unknown_happened = 0;
    let mut places = HashMap::new();
    for (place, value) in longest.iter().enumerate() {
        let append = appends.get(value).ok_or_else(|| format!("{value} in list {key} was never appended"))?;
        if append.end == EventKind::Fail {
            return Err(format!("{value} in list {key} has failed"));
        }
        if places.insert(*value, place).is_some() {
            return Err(format!("{value} is in list {key} twice"));
        }
        unknown_happened += usize::from(append.end == EventKind::Info);
    }
    let mut begun_max = 0;
    for value in longest {
        let append = appends[value];
        begun_max = begun_max.max(append.begun_ns);
        if append.ended_ns < begun_max {
            return Err(format!("{value} in list {key} stands behind one that began when it was over"));
        }
    }
    for (list, read) in &reads {
        for (value, append) in &appends {
            let is_seen = places.get(value).is_some_and(|place| *place < list.len());
            if append.end == EventKind::Ok && append.ended_ns < read.begun_ns && !is_seen {
                return Err(format!("{value} was in list {key} before a read that does not have it"));
            }
            if read.ended_ns < append.begun_ns && is_seen {
                return Err(format!("{value} was read from list {key} before it was appended"));
            }
        }
        for (other, later) in &reads {
            if read.ended_ns < later.begun_ns && other.len() < list.len() {
                return Err(format!("a later read of list {key} has {} values, not {}", other.len(), list.len()));
            }
        }
    }
    Ok(unknown_happened)
}

fn event(line: &str) -> Option<HistoryEvent> {
    let field = |name: &str, end: &str| {
        let (_, rest) = line.split_once(name)?;
        rest.split_once(end).map(|(field, _)| field)
    };
    let name = field(":type ", ",")?;
    let kind = EventKind::NAMES.iter().find(|(other, _)| *other == name)?.1;
    let process = field(":process ", ",")?.parse().ok()?;
    let time_ns = field(":time ", "}")?.parse().ok()?;
    let value = field(":value [[", "]], :process").or_else(|| field(":value [[", "], :process"))?;
    let (word, rest) = value.split_once(' ')?;
    let (key, rest) = rest.split_once(' ')?;
    let key = key.parse().ok()?;
    let action = match (word, rest) {
        (":append", value) => ClientAction::Append { key, value: value.parse().ok()? },
        (":r", "nil") => ClientAction::Read { key, list: None },
        (":r", list) => {
            let list = list.trim_start_matches('[').trim_end_matches(']');
            let values: Result<_, _> = list.split_whitespace().map(str::parse).collect();
            ClientAction::Read { key, list: Some(values.ok()?) }
        }
        _ => return None,
    };
    Some(HistoryEvent { kind, process, time_ns, action })
}

pub fn a_wrong_history_is_refused() {
    let append = |value| ClientAction::Append { key: 1, value };
    let read = |list: &[u64]| ClientAction::Read { key: 1, list: Some(list.to_vec()) };
    let history = |operations: &[(u64, u64, EventKind, ClientAction)]| {
        let mut events = Vec::new();
        for (process, (begun, ended, kind, action)) in operations.iter().enumerate() {
            let begin = match action {
                ClientAction::Read { key, .. } => ClientAction::Read { key: *key, list: None },
                append => append.clone(),
            };
            events.push((*begun, EventKind::Invoke, process as u64, begin));
            events.push((*ended, *kind, process as u64, action.clone()));
        }
        events.sort_by_key(|(time_ns, ..)| *time_ns);
        let mut history = ClientHistory::default();
        events.into_iter().for_each(|(time_ns, kind, process, action)| history.push(kind, process, time_ns, action));
        assert_eq!(ClientHistory::from_edn(&history.to_edn()).unwrap(), history);
        history
    };
    let (ok, fail, info) = (EventKind::Ok, EventKind::Fail, EventKind::Info);
    let right = history(&[
        (1, 4, ok, append(7)),
        (2, 3, ok, append(8)),
        (5, 6, info, append(9)),
        (7, 8, ok, read(&[8, 7])),
        (9, 10, ok, read(&[8, 7, 9])),
        (11, 12, fail, append(10)),
        (13, 14, ok, read(&[8, 7, 9])),
    ]);
    let counts = right.check().unwrap();
    assert_eq!((counts.appends, counts.reads, counts.unknown_happened), (2, 3, 1));
    let wrong = [
        (
            "no beginning",
            vec![(1, 2, ok, append(7)), (1, 2, ok, append(8)), (3, 4, ok, read(&[7, 8])), (3, 4, ok, read(&[8]))],
        ),
        ("never appended", vec![(1, 2, ok, read(&[7]))]),
        ("has failed", vec![(1, 2, fail, append(7)), (3, 4, ok, read(&[7]))]),
        ("twice", vec![(1, 2, ok, append(7)), (3, 4, ok, read(&[7, 7]))]),
        ("began when it was over", vec![(1, 2, ok, append(7)), (3, 4, ok, append(8)), (5, 6, ok, read(&[8, 7]))]),
        ("does not have it", vec![(1, 2, ok, append(7)), (3, 4, ok, read(&[]))]),
        ("before it was appended", vec![(1, 2, ok, read(&[7])), (3, 4, ok, append(7))]),
        ("has 0 values", vec![(1, 6, ok, append(7)), (2, 3, ok, read(&[7])), (4, 5, ok, read(&[]))]),
    ];
    for (reason, operations) in wrong {
        let found = history(&operations).check().unwrap_err();
        assert!(found.contains(reason), "{found}, not {reason}");
    }
}
