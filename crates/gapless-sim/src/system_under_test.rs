//! `SystemUnderTest`: the applications of the members of a simulation and the messages to them, for each kind of
//! application.

use crate::application::{Application, StateApplication};
use crate::checker::Violation;
use crate::options::ApplicationKind;
use crate::output::describe_bytes;
use crate::random::Random;
use crate::reference::Reference;
use gapless_client::Reply;
use gapless_client::polled::MessageType;
use gapless_cluster::config::ClusterConfig;
use gapless_engine::fold::CheckRefusals;
use gapless_engine::state::fold_of;
use gapless_engine::store::StoreLimits;
use gapless_engine::{Fold, Handlers, Policy, Replica, ReplicaOptions, StateHandlers, StateOptions};
use gapless_stream::member_service::MemberService;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SNAPSHOT_INTERVAL_FRAMES: u64 = 30;

pub(crate) trait SystemUnderTest: Sync {
    const APPLICATION_KIND: ApplicationKind;

    fn deploy(&self, config: &ClusterConfig) -> Result<Deployment, Violation>;

    /// One more instance, to compare members and replies with.
    fn reference(&self) -> Reference;

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>);

    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String>;

    /// Commands in flight of each client, sent as soon as possible; `None`: the seed decides, and they are sent
    /// occasionally.
    fn crowd(&self) -> Option<u32> {
        None
    }

    /// Type and fields.
    fn describe(&self, message: MessageType, payload: &[u8]) -> String {
        describe_bytes(message.schema, None, payload)
    }

    /// Applies where the bytes do not tell. See [`Self::describe`].
    fn describe_sent(&self, _publisher: u64, _index: u64) -> Option<String> {
        None
    }
}

pub(crate) enum Deployment {
    /// Fold of the member's released stream.
    Folded(Box<Fold>),
    OwnService(Box<dyn MemberService>),
}

impl<A: Application> SystemUnderTest for A {
    const APPLICATION_KIND: ApplicationKind = A::APPLICATION_KIND;

    fn deploy(&self, config: &ClusterConfig) -> Result<Deployment, Violation> {
        Ok(match A::APPLICATION_KIND {
            ApplicationKind::EventStream => {
                let fold = Fold::new(self.service(), policy());
                Deployment::Folded(Box::new(fold.on_event_stream()))
            }
            ApplicationKind::Service | ApplicationKind::State | ApplicationKind::Commands => {
                let options = ReplicaOptions {
                    snapshot_interval_frames: Some(SNAPSHOT_INTERVAL_FRAMES),
                    policy: policy(),
                    ..ReplicaOptions::default()
                };
                Deployment::OwnService(Replica::member_service(self.service(), options, config))
            }
        })
    }

    fn reference(&self) -> Reference {
        let fold = Fold::new(self.service(), policy());
        let reference = match A::APPLICATION_KIND {
            ApplicationKind::EventStream => Reference::on_event_stream(fold),
            ApplicationKind::Service | ApplicationKind::State | ApplicationKind::Commands => Reference::new(fold),
        };
        reference.recording()
    }

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>) {
        Application::message(self, publisher, index, random)
    }

    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        Application::check_reply(self, publisher, index, reply)
    }

    fn describe(&self, message: MessageType, payload: &[u8]) -> String {
        let name = Handlers::<A::Service>::message_name(message.schema, message.encoding);
        // A panic in a description must not hide the failure.
        let described = catch_unwind(AssertUnwindSafe(|| Application::describe(self, message, payload)));
        described.ok().flatten().unwrap_or_else(|| describe_bytes(message.schema, name, payload))
    }
}

/// States are small, so each refusal is checked.
fn policy() -> Policy {
    Policy { check_refusals: CheckRefusals::Always, ..Policy::default() }
}

pub(crate) struct StateSystem<'a, A>(pub &'a A);

impl<A: StateApplication> SystemUnderTest for StateSystem<'_, A> {
    const APPLICATION_KIND: ApplicationKind = ApplicationKind::State;

    fn deploy(&self, config: &ClusterConfig) -> Result<Deployment, Violation> {
        let options =
            StateOptions { snapshot_interval_frames: Some(SNAPSHOT_INTERVAL_FRAMES), ..StateOptions::default() };
        Replica::member_state_service(A::service, options, config)
            .map(Deployment::OwnService)
            .map_err(|error| error.to_string())
    }

    /// Transactions alone: handlers run on leaders, and need not repeat their results.
    fn reference(&self) -> Reference {
        Reference::new(fold_of(A::service, StoreLimits::default()))
    }

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>) {
        self.0.message(publisher, index, random)
    }

    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        self.0.check_reply(publisher, index, reply)
    }

    fn describe(&self, message: MessageType, payload: &[u8]) -> String {
        let name = StateHandlers::<A::Service>::message_name(message.schema, message.encoding);
        let described = catch_unwind(AssertUnwindSafe(|| self.0.describe(message, payload)));
        described.ok().flatten().unwrap_or_else(|| describe_bytes(message.schema, name, payload))
    }
}
