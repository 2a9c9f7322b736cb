//! Finds the leader among several members, which takes all changes.

use super::member::MemberFile;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, StatusReport};
use std::error::Error;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits for an election to end.
pub(super) fn leading(members: &[MemberFile]) -> Result<(&MemberFile, StatusReport), Box<dyn Error>> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut why: Option<Box<dyn Error>> = None;
        let mut elsewhere = None;
        let mut answered = Vec::new();
        for member in members {
            match member.status() {
                Ok(report) if report.role == "leader" => return Ok((member, report)),
                Ok(report) => {
                    answered.push(report.member);
                    let leader = report.leader.filter(|leader| *leader != report.member);
                    elsewhere = elsewhere.or_else(|| {
                        let found = report.members.iter().find(|each| Some(each.member) == leader)?;
                        let at = found.addresses.first().map_or_else(String::new, |at| format!(" at {at}"));
                        Some((found.member, at))
                    });
                }
                Err(error) => why = Some(error),
            }
        }
        let is_late = Instant::now() > deadline;
        match (elsewhere, why) {
            // The leader is not among `members`: waiting does not help, unless it was the leader before and is down.
            (Some((leader, at)), why) if is_late || why.is_none() && !answered.contains(&leader) => {
                let asked: Vec<_> = answered.iter().map(u64::to_string).collect();
                let asked = asked.join(" and ");
                return Err(format!(
                    "member {asked} does not lead: member {leader}{at} leads; name its file or directory, too"
                )
                .into());
            }
            (None, Some(error)) if is_late || members.len() == 1 => return Err(error),
            _ if is_late => return Err("no member leads; a majority of those that vote is needed".into()),
            _ => std::thread::sleep(PAUSE),
        }
    }
}

pub(super) fn change(member: &MemberFile, request: &AdminRequest) -> Result<(), Box<dyn Error>> {
    match member.ask(request)? {
        AdminAnswer::Begun => Ok(()),
        AdminAnswer::Refused(reason) => Err(reason.into()),
        AdminAnswer::Status(_) | AdminAnswer::Snapshot { .. } => Err("the member answers something else".into()),
    }
}
