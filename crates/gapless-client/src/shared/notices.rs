//! [`Notices`]: the stream of a service's notices.

use super::Client;
use super::notice::{Notice, NoticesLost};
use super::subscribers::Subscriber;
use futures_core::Stream;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Stream of the notices to all sessions of a client, from its making on; it ends with the client ([`Client::ended`]).
/// Each stream of a client gets every notice, once. Notices of one session come in their order, also over
/// reconnections.
///
/// A stream keeps [`NOTICES_KEPT_MAX`](super::NOTICES_KEPT_MAX) notices, and
/// [`NOTICE_BYTES_KEPT_MAX`](super::NOTICE_BYTES_KEPT_MAX) of their bytes, that its owner has not taken yet. A slow owner
/// delays no command: further notices are discarded, and an error stands in their place. The service is told that a
/// notice was received once it is in the streams: a process that dies loses those that it has not taken.
#[must_use = "notices come from the stream"]
pub struct Notices {
    client: Client,
    subscriber: Arc<Subscriber>,
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

impl Notices {
    pub(super) fn new(client: Client) -> Self {
        let channel = client.channel();
        let subscriber = channel.outbox.subscribers.add();
        // The helper receives notices also while no one takes any: the service keeps few.
        channel.enter_pending();
        // Opens the sessions of a client that sends no commands.
        channel.turn();
        channel.start_helper();
        Self { client, subscriber }
    }

    /// Next notice, or a gap; `None` after the end of the client.
    pub async fn next(&mut self) -> Option<Result<Notice, NoticesLost>> {
        poll_fn(|context| self.poll_item(context)).await
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Notice, NoticesLost>>> {
        let channel = self.client.channel();
        let taken = self.subscriber.take().map_or_else(
            || {
                channel.turn();
                self.subscriber.take_or_register(context.waker())
            },
            |item| Poll::Ready(Some(item)),
        );
        if taken.is_pending() && !channel.start_helper() {
            // Without a helper the task polls.
            context.waker().wake_by_ref();
        }
        taken
    }
}

impl Stream for Notices {
    type Item = Result<Notice, NoticesLost>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(context)
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        let channel = self.client.channel();
        channel.leave_pending();
        channel.outbox.subscribers.remove(&self.subscriber);
    }
}
