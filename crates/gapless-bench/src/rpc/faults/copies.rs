//! The copies of a route, each a process, and their callers.

use super::killing::{Death, Dice, Victims, kill};
use crate::rpc::NAME;
use gapless_load::rpc::faults::calling::caller_of;
use gapless_load::rpc::faults::serving::{Assignment, Place, open};
use gapless_measure::Result;
use gapless_measure::child_process::{Child, Role, receive_all};
use gapless_rpc::{Caller, Domain, Retry};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The copies.
pub(super) struct Copies<'a> {
    copies: Vec<Child<'a>>,
    assignment: Assignment,
    caller: Caller<Vec<u8>, Vec<u8>>,
    _domain: Domain,
    interrupted: &'a AtomicBool,
}

impl<'a> Copies<'a> {
    /// Starts so many, in a domain below `directory`.
    pub(super) fn start((directory, count, retry): (&Path, usize, Retry), interrupted: &'a AtomicBool) -> Result<Self> {
        let domain = open(directory)?;
        let assignment =
            Assignment { place: Place::Domain(directory.to_owned()), begun: directory.with_extension("begun") };
        let mut copies = (0..count).map(|_| start(&assignment, interrupted)).collect::<Result<Vec<_>>>()?;
        receive_all::<bool>(&mut copies, &mut || Ok(()))?;
        let caller = caller_of(&domain, retry)?;
        Ok(Self { copies, assignment, caller, _domain: domain, interrupted })
    }
}

fn start<'a>(assignment: &Assignment, interrupted: &'a AtomicBool) -> Result<Child<'a>> {
    Child::start(NAME, "a copy", (Role::RpcFaults, assignment), interrupted)
}

impl Victims for Copies<'_> {
    type Line = Caller<Vec<u8>, Vec<u8>>;

    fn line(&mut self) -> Result<Self::Line> {
        Ok(self.caller.clone())
    }

    fn kill(&mut self, dice: &mut Dice) -> Result<Vec<Death>> {
        let victim = dice.below(self.copies.len());
        let deaths = kill(&[self.copies[victim].id()])?;
        self.copies[victim] = start(&self.assignment, self.interrupted)?;
        self.copies[victim].receive::<bool>()?;
        Ok(deaths)
    }

    fn begun(&self) -> PathBuf {
        self.assignment.begun.clone()
    }

    fn retried(&self) -> u64 {
        self.caller.statistics().retried
    }
}
