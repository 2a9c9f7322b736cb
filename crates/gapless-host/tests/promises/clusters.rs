//! Files of a cluster whose members run in this process.

use gapless_host::{Host, Role, Running};
use gapless_testkit::ports::free_ports;
use gapless_testkit::turns::{TestPermit, TestSemaphore};
use gapless_testkit::wait;
use std::path::PathBuf;

/// Clusters that run in parallel: each has more threads than the machine has cores, most of them waiting.
static TURNS: TestSemaphore = TestSemaphore::new(2);

pub(crate) struct Files {
    root: tempfile::TempDir,
    _turn: TestPermit,
}

impl Files {
    /// `kinds` has one kind for each member; `more` ends the table `[journal]`.
    pub fn new(kinds: &[&str], more: &str) -> Self {
        let turn = TURNS.take();
        let root = tempfile::tempdir().unwrap();
        let members: String = (1..)
            .zip(free_ports(kinds.len()).iter().zip(kinds))
            .map(|(id, (port, kind))| {
                format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{port}\"]\nkind = \"{kind}\"\n")
            })
            .collect();
        for member in 1..=kinds.len() {
            let text = format!(
                "[cluster]\nname = \"hosts\"\nmember = {member}\n{members}[stream]\ndirectory = \"member-{member}\"\n\
                 window = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n[journal]\nsegment_length = \"2 MiB\"\n{more}"
            );
            std::fs::write(root.path().join(format!("{member}.toml")), text).unwrap();
        }
        Self { root, _turn: turn }
    }

    pub fn file(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("{member}.toml"))
    }

    pub fn directory(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("member-{member}"))
    }

    pub fn host(&self, member: usize) -> Host {
        Host::at(self.file(member).to_str().unwrap()).unwrap()
    }
}

/// Number of the leading one of `members`.
#[track_caller]
pub(crate) fn leader<K>(members: &[Option<Running<K>>]) -> usize {
    wait::until_some("a leader", || {
        let leads = |host: &Option<Running<K>>| host.as_ref().is_some_and(|host| host.status().role == Role::Leader);
        Some(members.iter().position(leads)? + 1)
    })
}
