//! [`ObservedService`]: the shipped service, whose state hashes the simulator sees before the member does.

use gapless_agent::{Agent, AgentError, Now};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::FilePoint;
use gapless_log::StreamIdentity;
use gapless_stream::handled_commands::HandledCommands;
use gapless_stream::member_service::{
    MemberService, ServiceAgents, ServiceError, ServiceParts, StateHash, TransactionLinks,
};
use gapless_stream::transactions::Transactions;
use gapless_transport::mailbox::Mailbox;
use rustix::fd::BorrowedFd;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type ObservedHashes = Arc<Mutex<Vec<StateHash>>>;

pub(crate) fn take_hashes(hashes: &ObservedHashes) -> Vec<StateHash> {
    // A killed member unwinds, but never while it holds the lock.
    std::mem::take(&mut *hashes.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) struct ObservedService {
    pub service: Box<dyn MemberService>,
    pub hashes: ObservedHashes,
}

impl MemberService for ObservedService {
    fn points(&self, layout: &StreamLayout) -> Result<Vec<FilePoint>, ServiceError> {
        self.service.points(layout)
    }

    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError> {
        self.service.recover(layout, identity, sequence)
    }

    fn transactions(&mut self, links: &TransactionLinks<'_>) -> Option<Box<dyn Transactions>> {
        self.service.transactions(links)
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.service.versions()
    }

    fn handled_commands(&self) -> Option<HandledCommands> {
        self.service.handled_commands()
    }

    fn agent(self: Box<Self>, mut parts: ServiceParts<'_>) -> Result<ServiceAgents, ServiceError> {
        let Self { service, hashes } = *self;
        let own = Mailbox::new(HASHES_MAX);
        let member = std::mem::replace(&mut parts.hashes, own.clone());
        let ServiceAgents { service, sender } = service.agent(parts)?;
        Ok(ServiceAgents { service: Box::new(ObservedAgent { agent: service, own, member, hashes }), sender })
    }
}

/// More than a service applies in one poll.
const HASHES_MAX: usize = 4096;

struct ObservedAgent {
    agent: Box<dyn Agent>,
    own: Mailbox<StateHash>,
    member: Mailbox<StateHash>,
    hashes: ObservedHashes,
}

impl Agent for ObservedAgent {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn on_start(&mut self, now: Now) -> Result<(), AgentError> {
        self.agent.on_start(now)
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        let polled = self.agent.poll(now);
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(hash) = self.own.pop() {
            hashes.push(hash);
            // A full queue means that the member compares the next hash, as without an observer.
            let _ = self.member.push(hash);
        }
        polled
    }

    fn arm(&mut self) {
        self.agent.arm();
    }

    fn disarm(&mut self) {
        self.agent.disarm();
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        self.agent.watch(descriptors);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.agent.next_deadline_ns()
    }

    fn on_close(&mut self, now: Now) -> Result<(), AgentError> {
        self.agent.on_close(now)
    }

    fn is_drained(&self) -> bool {
        self.agent.is_drained()
    }
}
