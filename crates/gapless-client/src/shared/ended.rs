//! [`Ended`]: the future of a client's end.

use super::Client;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Future of the end of a client, with its reason. See [`Client::ended`].
#[must_use = "await it"]
pub struct Ended {
    client: Client,
    entry: Option<u64>,
}

impl Ended {
    pub(super) const fn new(client: Client) -> Self {
        Self { client, entry: None }
    }
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").finish_non_exhaustive()
    }
}

impl Future for Ended {
    type Output = String;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<String> {
        let Self { client, entry } = self.get_mut();
        let channel = client.channel();
        if let Some(reason) = channel.outbox.ended.reason_or_register(entry, context.waker()) {
            return Poll::Ready(reason);
        }
        if !channel.start_helper() {
            channel.turn();
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            self.client.channel().outbox.ended.forget(entry);
        }
    }
}
