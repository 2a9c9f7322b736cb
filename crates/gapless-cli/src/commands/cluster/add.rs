//! `gapless cluster add`.

use super::file::{OwnEntry, listed, rewritten};
use super::leading::{change, leading};
use super::member::MemberFile;
use crate::commands::{CommandResult, UsageError, interrupt, print};
use clap::{Args, ValueEnum};
use gapless_agent::checked_file;
use gapless_agent::regular_file::read_text;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::member::control::{AdminRequest, MemberReport, StatusReport};
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[derive(Args)]
pub(super) struct Arguments {
    /// Files or directories of members, including the leader; the new member's file is made from the first file
    #[arg(value_name = "FILE", required = true)]
    members: Vec<PathBuf>,
    /// Number of the new member, higher than all earlier ones
    #[arg(long, value_name = "MEMBER")]
    member: u64,
    /// Address of the new member for the others, host:port; repeatable
    #[arg(long = "address", value_name = "ADDRESS", required = true)]
    addresses: Vec<String>,
    /// Role of the new member
    #[arg(long, value_enum, default_value_t = JoinKind::Full)]
    kind: JoinKind,
    /// Member to remove in the same change, once the new one has nearly caught up
    #[arg(long, value_name = "MEMBER")]
    replace: Option<u64>,
    /// File to write for the new member [default: member-MEMBER.toml next to the first file]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Return without waiting until the new member votes
    #[arg(long)]
    no_wait: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum JoinKind {
    /// Votes, leads, runs the service
    Full,
    /// Stores and votes
    Witness,
    /// Runs the service and does not vote
    Learner,
}

impl JoinKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Witness => "witness",
            Self::Learner => "learner",
        }
    }
}

const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let Some(first) = arguments.members.iter().find(|place| !place.is_dir()) else {
        let text = "a member's file is expected among those named, such as orders/member-1.toml: the new member's is made \
                    from it";
        return Err(UsageError(text.to_owned()).into());
    };
    let config = ClusterConfig::load(first)?;
    let template = read_text(first).map_err(|error| format!("reading {}: {error}", first.display()))?;
    let name = format!("member-{}", arguments.member);
    let output = arguments.output.clone().unwrap_or_else(|| first.with_file_name(format!("{name}.toml")));
    if output.exists() {
        return Err(format!("{} is there already; --output names another file", output.display()).into());
    }
    let members: Vec<_> = arguments.members.iter().map(|place| MemberFile::at(place)).collect();
    let (leader, report) = leading(&members)?;
    check_addresses(&report, &config, arguments)?;
    let text = file(&template, &config, &report, arguments, &name)?;
    change(leader, &request(arguments))?;
    write(&output, &text)?;
    print(&format!(
        "member {} is added; it begins as a learner\nwritten: {}\nstart it: gapless cluster start {}, or the program of its \
         service\n",
        arguments.member,
        output.display(),
        output.display()
    ))?;
    if arguments.no_wait { Ok(()) } else { wait(&members, arguments) }
}

/// The leader compares only the text of addresses; here, names are resolved.
fn check_addresses(report: &StatusReport, config: &ClusterConfig, arguments: &Arguments) -> Result<(), String> {
    for (owner, taken, _) in report.members.iter().map(|each| listed(each, config)) {
        if Some(owner) == arguments.replace {
            continue;
        }
        let taken: Vec<_> = taken.iter().flat_map(|address| resolved(address)).collect();
        if let Some(address) = arguments.addresses.iter().find(|it| resolved(it).iter().any(|at| taken.contains(at))) {
            return Err(format!(
                "{address} is the address of member {owner}; give the new member another address, or replace that member: \
                 --replace {owner}"
            ));
        }
    }
    Ok(())
}

fn resolved(address: &str) -> Vec<SocketAddr> {
    address.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

fn request(arguments: &Arguments) -> AdminRequest {
    AdminRequest::Add {
        member: arguments.member,
        addresses: arguments.addresses.clone(),
        kind: arguments.kind.name().to_owned(),
        replaces: arguments.replace,
    }
}

fn file(
    template: &str,
    config: &ClusterConfig,
    report: &StatusReport,
    arguments: &Arguments,
    directory: &str,
) -> Result<String, String> {
    let mut all: Vec<_> = report.members.iter().map(|each| listed(each, config)).collect();
    all.retain(|(member, ..)| *member != arguments.member);
    all.push((arguments.member, arguments.addresses.clone(), arguments.kind.name()));
    let own = OwnEntry { member: arguments.member, joins: true, incarnation: config.incarnation, directory };
    rewritten(template, &all, &own).map_err(|error| format!("making the new member's file: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error| format!("the member is added, and its file cannot be written to {}: {error}", path.display());
    let mut file = checked_file::create_new(path, 0o666).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

fn wait(members: &[MemberFile], arguments: &Arguments) -> CommandResult {
    let interrupted = interrupt()?;
    let (member, mut reported) = (arguments.member, String::new());
    while !interrupted.load(Ordering::Relaxed) {
        let (_, report) = leading(members)?;
        let found = report.members.iter().find(|each| each.member == member);
        // A new leader may not have applied the change yet.
        let state = found.map(|found| progress(found, arguments.kind)).unwrap_or_default();
        if let Some((state, is_done)) = state {
            if state != reported {
                print(&format!("member {member} {state}\n"))?;
                reported = state;
            }
            if is_done {
                return Ok(());
            }
        }
        std::thread::sleep(PAUSE);
    }
    print(&format!("member {member} goes on joining; gapless cluster status tells how far it is\n"))
}

fn progress(found: &MemberReport, kind: JoinKind) -> Option<(String, bool)> {
    if found.kind == "voter" || found.kind == "witness" {
        return Some(("votes".to_owned(), true));
    }
    if !found.is_connected {
        return Some(("is waited for".to_owned(), false));
    }
    let lag = found.lag_frames?;
    if matches!(kind, JoinKind::Learner) && lag == 0 {
        return Some(("follows as a learner".to_owned(), true));
    }
    // Rounded, so that not every frame makes a line.
    let step = 10_u64.pow(lag.checked_ilog10().unwrap_or(0));
    Some((format!("catches up: about {} frames behind", lag / step * step), false))
}
