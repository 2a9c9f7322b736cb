//! `gapless cluster status`.

use super::member::{MemberFile, NoMemberError};
use crate::commands::watch::{clear, sleep_until};
use crate::commands::{CommandResult, ExitError, NOT_RUNNING, UNHEALTHY, interrupt, is_printed};
use clap::Args;
use gapless_cluster::ClusterError;
use gapless_cluster::member::control::{DivergenceReport, MemberReport, StatusReport};
use std::error::Error;
use std::fmt::Write;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    member: MemberFile,
    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
    /// Print again every SECONDS, 1 without a value, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    watch: Option<u64>,
}

const CLOCK_TOLD_MS: u64 = 1_000;

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let interrupted = interrupt()?;
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let clear = clear(arguments.watch.is_some() && !arguments.json);
    loop {
        let report = arguments.member.status().map_err(not_running)?;
        let is_read = is_printed(&if arguments.json {
            format!("{}\n", serde_json::to_string(&report)?)
        } else {
            format!("{clear}{}", text(&report))
        })?;
        if !is_read {
            return Ok(());
        }
        let Some(seconds) = arguments.watch else {
            let ended =
                |reason| ExitError { code: UNHEALTHY, reason: format!("member {}: {reason}", report.member) }.into();
            return report.illness().map_or(Ok(()), |reason| Err(ended(reason)));
        };
        if !sleep_until(Instant::now() + Duration::from_secs(seconds), is_interrupted) {
            return Ok(());
        }
    }
}

fn not_running(error: Box<dyn Error>) -> Box<dyn Error> {
    let runs_not = match error.downcast_ref() {
        Some(ClusterError::System { source, .. }) => {
            matches!(source.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
        }
        _ => error.is::<NoMemberError>(),
    };
    if runs_not { ExitError { code: NOT_RUNNING, reason: error.to_string() }.into() } else { error }
}

fn text(report: &StatusReport) -> String {
    let leader = match report.leader {
        Some(leader) if leader == report.member => String::new(),
        Some(leader) => format!(" of member {leader}"),
        None => ", no leader is known".to_owned(),
    };
    let mut text = format!(
        "member {} of {}: {}{leader}, term {}, tier {}\nreleased {}, journaled {}, sessions {}\n",
        report.member,
        report.cluster,
        report.role,
        report.term,
        report.tier,
        report.released_sequence,
        report.journaled_sequence,
        report.sessions
    );
    if let Some(to) = report.fetching_to {
        let _ = writeln!(text, "fetching frames up to {to}");
    }
    if !report.waits_for.is_empty() {
        let numbers: Vec<_> = report.waits_for.iter().map(u64::to_string).collect();
        let _ = writeln!(text, "new, and takes part once it has heard from member {}", numbers.join(", "));
    }
    // A new cluster waits for all members, as `waits_for` reports.
    if report.leader.is_none() && report.waits_for.is_empty() {
        let is_absent = |each: &&MemberReport| !each.is_connected && matches!(&*each.kind, "voter" | "witness");
        let absent: Vec<_> = report.members.iter().filter(is_absent).map(|each| each.member.to_string()).collect();
        if !absent.is_empty() {
            let absent = absent.join(", ");
            let _ = writeln!(text, "it takes a majority of those that vote; not connected: member {absent}");
        }
    }
    if report.is_behind {
        let _ =
            writeln!(text, "its machine has lost power: its vote counts only with everybody's until it has caught up");
    }
    for DivergenceReport { member, same_sequence, index, sequence } in &report.parted {
        let same = same_sequence
            .map_or_else(|| "nothing is known to be the same".to_owned(), |same| format!("the same up to {same}"));
        let _ = writeln!(
            text,
            "OTHER HISTORY: the log of member {member} parts from this one's: {same}, another one at {sequence} (entry {index})"
        );
    }
    if let Some(ahead_ms) = report.time_ahead_ms.filter(|ahead_ms| ahead_ms.unsigned_abs() >= CLOCK_TOLD_MS) {
        let (side, ms) = (if ahead_ms > 0 { "ahead of" } else { "behind" }, ahead_ms.unsigned_abs());
        let _ = writeln!(text, "the stream's time is {ms} ms {side} this machine's clock");
    }
    if let Some(compared) = report.compared_sequence {
        let _ = writeln!(text, "states compared up to {compared}");
    }
    if report.messages_refused + report.messages_dropped > 0 {
        let (refused, dropped) = (report.messages_refused, report.messages_dropped);
        let _ = writeln!(text, "messages of members refused {refused}, dropped for want of room {dropped}");
    }
    let _ = writeln!(text, "{:>6}  {:<8} {:<12} {:>16} {:>12}", "member", "kind", "connection", "has up to", "lags by");
    for member in &report.members {
        let connection = match (member.member == report.member, member.is_connected) {
            (true, _) => "itself",
            (false, true) => "connected",
            (false, false) => "none",
        };
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let (has, lag) = (number(member.matched_sequence), number(member.lag_frames));
        let _ = writeln!(text, "{:>6}  {:<8} {connection:<12} {has:>16} {lag:>12}", member.member, member.kind);
    }
    for member in &report.members {
        if let Some(why) = &member.refused {
            let _ = writeln!(text, "member {} is not let in: {why}", member.member);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn missing_members_without_leader() {
        let of = |leader: Option<u64>, is_connected: bool| {
            let member = |member: u64, kind: &str, is_connected: bool| {
                serde_json::json!({ "member": member, "kind": kind, "is_connected": is_connected,
                    "matched_sequence": null, "lag_frames": null })
            };
            let members = [
                member(1, "voter", true),
                member(2, "voter", is_connected),
                member(3, "witness", is_connected),
                member(4, "learner", false),
            ];
            let report = serde_json::json!({ "cluster": "c", "member": 1, "role": "candidate", "term": 3, "leader": leader,
                "tier": "quorum", "released_sequence": 9, "journaled_sequence": 9, "sessions": 0, "fetching_to": null,
                "messages_refused": 0, "messages_dropped": 0, "members": members });
            text(&serde_json::from_value(report).unwrap())
        };
        let missing = "it takes a majority of those that vote; not connected: member 2, 3\n";
        assert!(of(None, false).contains(missing), "{}", of(None, false));
        assert!(!of(None, true).contains("majority") && !of(Some(2), false).contains("majority"));
        assert!(
            of(None, true).contains("     2  voter    connected                   -            -\n"),
            "{}",
            of(None, true)
        );
    }
}
