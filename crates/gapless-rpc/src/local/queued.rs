//! `QueuedRequest`: a request that waits for a worker.

use std::sync::Arc;

use super::offer::LocalOffer;
use super::one_shot::OneShot;
use crate::outcome::CallError;

#[derive(Debug)]
pub(super) struct QueuedRequest<Request, Reply> {
    pub(super) request: Request,
    /// `None` for a one-way request.
    pub(super) one_shot: Option<Arc<OneShot<Reply>>>,
    pub(super) offer: LocalOffer,
}

/// A forwarded request had begun elsewhere.
pub(super) fn lose<Reply>(one_shot: Option<&OneShot<Reply>>, offer: &LocalOffer, route: &str, reason: &str) {
    let Some(one_shot) = one_shot else { return };
    let (route, attempts, reason) = (route.to_owned(), offer.attempt.into(), reason.to_owned());
    one_shot.answer(Err(if one_shot.has_begun() {
        CallError::Unknown { route, attempts, reason }
    } else {
        CallError::NotBegun { route, attempts, reason }
    }));
}
