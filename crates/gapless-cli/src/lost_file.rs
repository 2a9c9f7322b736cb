//! A file in use was truncated, removed or replaced: one exit code, regardless of whether the program or the kernel
//! noticed.

use gapless_agent::AgentFailure;
use gapless_cluster::ClusterError;
use gapless_engine::EngineError;
use gapless_journal::JournalError;
use gapless_stream::StreamError;
use std::error::Error;

pub(crate) fn is_reason_of(error: &(dyn Error + 'static)) -> bool {
    let is_lost = |error: &JournalError| matches!(error, JournalError::FileLost { .. });
    if let Some(error) = error.downcast_ref::<JournalError>() {
        is_lost(error)
    } else if let Some(failure) = error.downcast_ref::<AgentFailure>() {
        is_reason_of(&*failure.error)
    } else if let Some(error) = error.downcast_ref::<StreamError>() {
        match error {
            StreamError::Journal(error) => is_lost(error),
            StreamError::Stopped(failure) => is_reason_of(failure),
            _ => false,
        }
    } else if let Some(error) = error.downcast_ref::<ClusterError>() {
        match error {
            ClusterError::Journal(error) => is_lost(error),
            ClusterError::Stream(error) => is_reason_of(error),
            _ => false,
        }
    } else if let Some(error) = error.downcast_ref::<EngineError>() {
        match error {
            EngineError::Journal(error) => is_lost(error),
            EngineError::Stream(error) => is_reason_of(error),
            EngineError::Stopped(failure) => is_reason_of(failure),
            EngineError::Cluster(error) => is_reason_of(&**error),
            _ => false,
        }
    } else {
        false
    }
}
