//! `Application` and `StateApplication`: the service that runs on every simulated member, and the messages sent to it.

use crate::options::ApplicationKind;
use crate::random::Random;
use gapless_client::Reply;
use gapless_client::polled::MessageType;
use gapless_engine::store::Store;
use gapless_engine::{Service, StateService};

pub trait Application: Sync {
    /// One instance runs on each full member. [`Service::snapshot`] must write equal states as equal bytes: sorted,
    /// without clocks and addresses.
    type Service: Service;

    /// Commands of clients that get replies, or events of a stream. [`ApplicationKind::State`] does not compile here;
    /// use [`StateApplication`].
    const APPLICATION_KIND: ApplicationKind = ApplicationKind::Service;

    /// The state before the first message, the same for each member and each start.
    fn service(&self) -> Self::Service;

    /// Returns message `index` (from 0) of `publisher` (from 1). It must depend on the arguments alone: a restarted
    /// publisher publishes the same message again.
    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>);

    /// Checks a reply, which may be a refusal, against its message. The simulator itself checks that each message takes
    /// effect once, and that each reply is the service's own.
    ///
    /// # Errors
    /// The text says how the reply is wrong.
    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        let _ = (publisher, index, reply);
        Ok(())
    }

    /// Describes a message for the report of a failure. Without this function, or for `None`, the report has the bytes,
    /// and the type's name if a handler is registered with a schema's type.
    fn describe(&self, message: MessageType, payload: &[u8]) -> Option<String> {
        let _ = (message, payload);
        None
    }
}

pub trait StateApplication: Sync + 'static {
    type Service: StateService;

    /// Declares the collections and makes the service on them, the same for each member and each start.
    fn service(store: &mut Store) -> Self::Service;

    /// See [`Application::message`].
    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>);

    /// See [`Application::check_reply`].
    ///
    /// # Errors
    /// The text says how the reply is wrong.
    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        let _ = (publisher, index, reply);
        Ok(())
    }

    /// See [`Application::describe`].
    fn describe(&self, message: MessageType, payload: &[u8]) -> Option<String> {
        let _ = (message, payload);
        None
    }
}
