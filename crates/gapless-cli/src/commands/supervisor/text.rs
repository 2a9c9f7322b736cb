//! Formats instances: as a table, and in one line the reason why one is not ready.

use crate::commands::time_text::time;
use crate::printable::escaped;
use gapless_supervisor::control::protocol::InstanceStatus;
use gapless_supervisor::control::{InstanceStatistics, RouteStatistics, SupervisorStatistics};
use std::fmt::Write as _;

const HEADS: [&str; 8] = ["INSTANCE", "STATE", "PID", "SINCE", "RESTARTS", "CPU", "MEMORY", "LAST END"];
const HEADS_OF_ROUTES: [&str; 4] = ["CALLS", "QUEUE", "P50", "P99"];

const QUOTE_CHARACTERS_MAX: usize = 60;

pub(crate) fn table(figures: &SupervisorStatistics) -> String {
    let mut heads: Vec<String> = HEADS.iter().map(|head| (*head).to_owned()).collect();
    let mut rows: Vec<Vec<String>> = figures.instances.iter().map(|instance| row(instance).to_vec()).collect();
    if figures.instances.iter().any(|instance| !instance.routes.is_empty()) {
        let last = heads.len() - 1;
        heads.splice(last..last, HEADS_OF_ROUTES.map(str::to_owned));
        for (row, instance) in rows.iter_mut().zip(&figures.instances) {
            row.splice(last..last, of_routes(&instance.routes));
        }
    }
    rows.insert(0, heads);
    let count = rows[0].len();
    let widths: Vec<usize> =
        (0..count).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let is_figure = (2..count - 1).contains(&column);
            let padded = if is_figure { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            line = line + &padded + "  ";
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(figures: &InstanceStatistics) -> [String; 8] {
    let instance = &figures.instance;
    let figure = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
    [
        instance.instance.to_string(),
        instance.state.to_string(),
        figure(
            instance
                .process_id
                .map(|pid| format!("{pid}{}", if instance.process_in_other_namespace { "*" } else { "" })),
        ),
        duration(instance.since_ms),
        instance.restarts.to_string(),
        figure(figures.cpu_percent.map(|percent| format!("{percent:.1} %"))),
        figure(instance.memory_bytes.map(|bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)))),
        described(instance, cut),
    ]
}

/// Sums of calls and queues, times of the slowest route.
fn of_routes(routes: &[RouteStatistics]) -> [String; 4] {
    if routes.is_empty() {
        return ["-"; 4].map(str::to_owned);
    }
    let sum = |of: fn(&RouteStatistics) -> u64| routes.iter().map(of).fold(0, u64::saturating_add).to_string();
    let most = |of: fn(&RouteStatistics) -> u64| time(routes.iter().map(of).max().unwrap_or(0));
    [sum(|route| route.calls), sum(|route| route.queued), most(|route| route.p50_ns), most(|route| route.p99_ns)]
}

pub(crate) fn last_end(instance: &InstanceStatus) -> String {
    described(instance, |line| line)
}

fn described(instance: &InstanceStatus, quote: impl FnOnce(String) -> String) -> String {
    let end = instance.last_end.as_ref().map(ToString::to_string);
    let line = instance.last_lines.last().map(|line| quote(format!("{line:?}")));
    let words = [end, instance.last_reason.as_deref().map(escaped), line];
    words.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn cut(quoted: String) -> String {
    if quoted.chars().count() <= QUOTE_CHARACTERS_MAX {
        return quoted;
    }
    let begin: String = quoted.chars().take(QUOTE_CHARACTERS_MAX - 2).collect();
    format!("{begin}…\"")
}

pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_supervisor::EndStatus;
    use gapless_supervisor::control::protocol::{InstanceCondition, SupervisorStatus};
    use gapless_supervisor::supervision::instance::InstanceEnd;

    fn figures(line: &str) -> SupervisorStatistics {
        let instance = InstanceStatus {
            instance: "chatty.1".parse().unwrap(),
            state: InstanceCondition::Ready,
            process_id: Some(4711),
            process_in_other_namespace: false,
            since_ms: 1,
            restarts: 2,
            last_end: Some(InstanceEnd::Status(EndStatus::Exited(7))),
            last_reason: None,
            says: None,
            last_lines: vec![line.to_owned()],
            log: None,
            cpu_ms: None,
            running_ms: None,
            memory_bytes: None,
        };
        let instances = vec![InstanceStatistics { instance, cpu_percent: None, standstill: None, routes: Vec::new() }];
        SupervisorStatistics { supervisor: SupervisorStatus::default(), instances, missing: None }
    }

    #[test]
    fn long_last_line_is_cut_in_table() {
        let quote = |figures: &SupervisorStatistics| {
            let text = table(figures);
            text.lines().nth(1).unwrap().split_once("exited with 7; ").unwrap().1.to_owned()
        };
        let long = figures(&"0123456789".repeat(20));
        let found = quote(&long);
        assert!(found.starts_with("\"0123456") && found.ends_with("…\""), "{found}");
        assert_eq!(found.chars().count(), 60, "{found}");
        assert!(last_end(&long.instances[0].instance).ends_with("789\""), "elsewhere it is whole");
        let fitting = "é".repeat(58);
        assert_eq!(quote(&figures(&fitting)), format!("\"{fitting}\""));
    }
}
