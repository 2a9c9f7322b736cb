//! The instances of a route, each a process, and their callers.

use super::killing::{Death, KillDice, Victims, kill};
use crate::rpc::NAME;
use gapless_load::rpc::faults::calling::caller_of;
use gapless_load::rpc::faults::serving::{FaultAssignment, ServerPlace, open};
use gapless_measure::Result;
use gapless_measure::child_process::{Child, ChildRole, receive_all};
use gapless_rpc::{Caller, Domain, Retry};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub(super) struct FaultInstances<'a> {
    instances: Vec<Child<'a>>,
    assignment: FaultAssignment,
    caller: Caller<Vec<u8>, Vec<u8>>,
    _domain: Domain,
    interrupted: &'a AtomicBool,
}

impl<'a> FaultInstances<'a> {
    pub(super) fn start((directory, count, retry): (&Path, usize, Retry), interrupted: &'a AtomicBool) -> Result<Self> {
        let domain = open(directory)?;
        let assignment = FaultAssignment {
            place: ServerPlace::Domain(directory.to_owned()),
            begun: directory.with_extension("begun"),
        };
        let mut instances = (0..count).map(|_| start(&assignment, interrupted)).collect::<Result<Vec<_>>>()?;
        receive_all::<bool>(&mut instances, &mut || Ok(()))?;
        let caller = caller_of(&domain, retry)?;
        Ok(Self { instances, assignment, caller, _domain: domain, interrupted })
    }
}

fn start<'a>(assignment: &FaultAssignment, interrupted: &'a AtomicBool) -> Result<Child<'a>> {
    Child::start(NAME, "an instance", (ChildRole::RpcFaults, assignment), interrupted)
}

impl Victims for FaultInstances<'_> {
    type Caller = Caller<Vec<u8>, Vec<u8>>;

    fn line(&mut self) -> Result<Self::Caller> {
        Ok(self.caller.clone())
    }

    fn kill(&mut self, dice: &mut KillDice) -> Result<Vec<Death>> {
        let victim = dice.below(self.instances.len());
        let deaths = kill(&[self.instances[victim].id()])?;
        self.instances[victim] = start(&self.assignment, self.interrupted)?;
        self.instances[victim].receive::<bool>()?;
        Ok(deaths)
    }

    fn begun(&self) -> PathBuf {
        self.assignment.begun.clone()
    }

    fn retried(&self) -> u64 {
        self.caller.statistics().retried
    }
}
