//! [`Application`] and [`StateApplication`]: the service that runs on every simulated member, and the messages sent to
//! it.

use crate::options::ApplicationKind;
use crate::random::Random;
use gapless_client::Reply;
use gapless_client::client::MessageType;
use gapless_engine::store::Store;
use gapless_engine::{Service, StateService};

/// A service and the messages for it.
pub trait Application: Sync {
    /// The service, one instance of which runs on each full member. [`Service::snapshot`] must write equal states as
    /// equal bytes: sorted, without clocks and addresses.
    type Service: Service;

    /// Kind of the messages: commands of clients that get replies, or events of a stream. [`ApplicationKind::State`]
    /// does not compile here; use [`StateApplication`].
    const APPLICATION_KIND: ApplicationKind = ApplicationKind::Service;

    /// Returns the state before the first message, the same for each member and each start.
    fn service(&self) -> Self::Service;

    /// Returns message number `index` (from 0) of `publisher` (from 1). It must depend on its arguments alone: a
    /// restarted publisher publishes the same message again.
    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>);

    /// Checks a reply, which may be a refusal, against the message that was sent. The simulator itself checks that each
    /// message takes effect once and that each reply is the one the service gave.
    ///
    /// # Errors
    /// The text says how the reply is wrong.
    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        let _ = (publisher, index, reply);
        Ok(())
    }

    /// Describes a message for the report of a failure: a sent message, a reply, a notice or a published one. Without
    /// this function, or where it returns `None`, the report has the bytes, and the type's name if a schema's type is
    /// registered with a handler.
    fn describe(&self, message: MessageType, payload: &[u8]) -> Option<String> {
        let _ = (message, payload);
        None
    }
}

/// A service whose state is replicated, and the commands for it.
pub trait StateApplication: Sync + 'static {
    /// The service, one instance of which runs on each full member.
    type Service: StateService;

    /// Declares the collections in `store` and makes the service on top of them, the same for each member and each
    /// start.
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
