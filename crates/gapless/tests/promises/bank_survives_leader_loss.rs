//! Three members of the example `bank`, each a process; the leader is killed in the middle of the work, and started again.

use crate::ledger_process::{Run, example};
use gapless::cluster::control::{AdminAnswer, AdminRequest, StatusReport, ask};
use gapless_testkit::ports::free_ports;
use gapless_testkit::wait::{until, until_some};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

const MEMBERS: [usize; 3] = [1, 2, 3];
const TRANSFERS: u64 = 6000;

struct Bank {
    root: tempfile::TempDir,
    members: Vec<Option<Run>>,
}

impl Bank {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let addresses = free_ports(MEMBERS.len());
        let member = |id: usize| format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{}\"]\n", addresses[id - 1]);
        let members: String = MEMBERS.map(member).concat();
        for id in MEMBERS {
            let own = format!("[cluster]\nname = \"bank\"\nmember = {id}\n[stream]\ndirectory = \"member-{id}\"\n");
            std::fs::write(root.path().join(format!("member-{id}.toml")), own + &members).unwrap();
        }
        let members = MEMBERS.map(|id| Some(member_of(root.path(), id))).into();
        Self { root, members }
    }

    fn directory(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("member-{member}"))
    }

    fn status(&self, member: usize) -> Option<StatusReport> {
        match ask(&self.directory(member), &AdminRequest::Status) {
            Ok(AdminAnswer::Status(status)) => Some(*status),
            _ => None,
        }
    }

    fn leader(&self) -> usize {
        let leads = |member: &usize| self.status(*member).is_some_and(|status| status.role == "leader");
        until_some("a member leads", || MEMBERS.into_iter().find(leads))
    }

    fn released(&self, member: usize) -> u64 {
        self.status(member).map_or(0, |status| status.released_sequence)
    }

    fn work(&self) -> Run {
        let members = MEMBERS.map(|member| self.directory(member).display().to_string()).join(",");
        let transfers = TRANSFERS.to_string();
        run(&["--at", &members, "--accounts", "20", "--transfers", &transfers])
    }

    fn signal(&mut self, member: usize, signal: Signal) -> crate::ledger_process::Ended {
        let run = self.members[member - 1].take().unwrap();
        run.signal(signal);
        run.end()
    }
}

fn member_of(root: &Path, member: usize) -> Run {
    run(&[root.join(format!("member-{member}.toml")).to_str().unwrap()])
}

fn run(words: &[&str]) -> Run {
    Run::start(Command::new(example("bank")).args(words))
}

/// Number before `what` in a report.
fn number(report: &str, what: &str) -> u64 {
    let before = report.split(what).next().unwrap();
    before.rsplit(|at: char| !at.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn no_transfer_is_lost() {
    let mut bank = Bank::start();
    let leader = bank.leader();
    let mut work = bank.work();
    until("a third of the transfers", || bank.released(leader) > TRANSFERS / 3);
    assert!(bank.signal(leader, Signal::KILL).was_killed());
    assert_ne!(bank.leader(), leader);
    bank.members[leader - 1] = Some(member_of(bank.root.path(), leader));
    let report = work.wait().report();
    let (accepted, refused) = (number(&report, " transfers, "), number(&report, " refused;"));
    assert_eq!(accepted + refused, TRANSFERS, "{report}");

    let last = bank.released(bank.leader());
    for member in MEMBERS {
        until("the member has everything", || bank.released(member) >= last);
        let audit = run(&[bank.directory(member).to_str().unwrap(), "--audit"]).end().report();
        assert_eq!(number(&audit, " transfers in"), accepted, "{audit}");
        assert!(audit.ends_with("the sum is what was paid in, no account is overdrawn\n"), "{audit}");
    }
    for member in MEMBERS {
        let ended = bank.signal(member, Signal::INT);
        assert!(ended.status.success(), "{}", ended.err);
    }
}
