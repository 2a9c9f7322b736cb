//! [`Application`] and [`StateApplication`]: the application of the simulated cluster: a service on every member, and
//! the messages for it.

use crate::options::Offer;
use crate::random::Random;
use gapless_client::Reply;
use gapless_client::client::MessageType;
use gapless_engine::store::Store;
use gapless_engine::{Service, StateService};

/// A user's service and messages for it.
pub trait Application: Sync {
    /// The service, a copy of which runs on each full member. [`Service::snapshot`] must write equal states as equal bytes:
    /// sorted, without clocks and addresses.
    type Service: Service;

    /// Whether messages are commands, sent by clients that get replies, or events of a stream. A replicated state is for
    /// [`StateApplication`]: with [`Offer::State`] this does not compile.
    const OFFER: Offer = Offer::Service;

    /// The state before the first message. The same for each member and each start.
    fn service(&self) -> Self::Service;

    /// The message number `index`, from 0, of `publisher`, from 1. Must follow from its arguments alone: a publisher that
    /// is started again publishes it again.
    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>);

    /// The fault of the reply to that message, as far as the sent message shows it; a refusal is a reply, too. That
    /// each message has its effect once, and each reply is the service's own, is checked in any case.
    ///
    /// # Errors
    /// The reply is another one than it has to be, in words.
    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        let _ = (publisher, index, reply);
        Ok(())
    }

    /// A message in words, for the report of a failure: its type and its fields; one that was sent, a reply, a notice, or what a handler
    /// publishes. Without this function, or where it is `None`, the report has the type's name, if a schema's type is registered with a
    /// handler, and the bytes.
    fn describe(&self, message: MessageType, payload: &[u8]) -> Option<String> {
        let _ = (message, payload);
        None
    }
}

/// A user's service whose state is replicated, and messages for it, which are commands.
pub trait StateApplication: Sync + 'static {
    /// The service, a copy of which runs on each full member.
    type Service: StateService;

    /// Declares its collections in `store`, and makes the service that knows them. The same for each member and each start.
    fn service(store: &mut Store) -> Self::Service;

    /// As [`Application::message`].
    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>);

    /// As [`Application::check_reply`].
    ///
    /// # Errors
    /// The reply is another one than it has to be, in words.
    fn check_reply(&self, publisher: u64, index: u64, reply: &Reply<'_>) -> Result<(), String> {
        let _ = (publisher, index, reply);
        Ok(())
    }

    /// As [`Application::describe`].
    fn describe(&self, message: MessageType, payload: &[u8]) -> Option<String> {
        let _ = (message, payload);
        None
    }
}
