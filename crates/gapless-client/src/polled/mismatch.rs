//! Requests that the service does not handle: their errors name the first difference, for which the client asks the
//! service.

use super::PolledClient;
use crate::ClientError;
use crate::error::QueryError;
use gapless_message::request_description::{Describe, RequestKind, difference_to};
use gapless_message::{Request, contract};
use std::time::Duration;

/// Longest wait for a description.
pub(crate) const DESCRIPTION_WITHIN: Duration = Duration::from_secs(1);

pub(crate) const fn describe<R: Request>(kind: RequestKind) -> Describe {
    Describe { kind, key: contract::name_key(R::TYPE_NAME) }
}

impl PolledClient {
    /// Asks the service why it does not handle requests `R`, within `timeout`: the first difference of the types, as a
    /// sentence with the versions of both sides. `None` if the service handles them. For a client that polls and gets the
    /// refusal [`RefusalCode::Unhandled`](gapless_wire::control::RefusalCode); [`PolledClient::call_request`] asks by
    /// itself.
    ///
    /// # Errors
    /// As for [`PolledClient::query_request`].
    pub fn find_mismatch<R: Request>(
        &mut self,
        kind: RequestKind,
        timeout: Duration,
    ) -> Result<Option<String>, QueryError> {
        let Ok(described) = self.run_query(&describe::<R>(kind), 0, timeout)?;
        Ok(difference_to::<R>(kind, &described))
    }

    #[cold]
    pub(super) fn explained_command<R: Request>(&mut self, error: ClientError, timeout: Duration) -> ClientError {
        match self.find_mismatch::<R>(RequestKind::Command, timeout.min(DESCRIPTION_WITHIN)) {
            Ok(Some(difference)) => ClientError::Mismatch { name: R::TYPE_NAME, difference },
            _ => error,
        }
    }

    #[cold]
    pub(super) fn explained_query<Q: Request>(&mut self, error: QueryError, timeout: Duration) -> QueryError {
        match self.find_mismatch::<Q>(RequestKind::Query, timeout.min(DESCRIPTION_WITHIN)) {
            Ok(Some(difference)) => QueryError::Mismatch { name: Q::TYPE_NAME, difference },
            _ => error,
        }
    }
}
