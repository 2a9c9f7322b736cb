//! Errors of hosts: [`HostError`].

use gapless_client::ClientError;
use gapless_engine::EngineError;
use gapless_message::state::StateError;
use std::sync::Arc;

/// A host does not start, cannot answer, or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Leave the option out, or follow the reason.
    #[error("option {option} of a host {place}: {reason}")]
    Option { option: &'static str, place: String, reason: String },
    /// Name another place, or build with the feature that it needs.
    #[error("{place:?} is no place for a host: {reason}")]
    Place { place: String, reason: String },
    /// The place or the program refuses the call, without effect. Follow the reason.
    #[error("{call} on a host {place}: {reason}")]
    Refused { call: &'static str, place: String, reason: String },
    /// The service cannot start, or has stopped. Remove the cause and start again.
    #[error(transparent)]
    Engine(Box<EngineError>),
    /// No client can be connected.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The initial state is written for later starts and cannot be read again. Correct its serde attributes.
    #[error("the initial state: {0}")]
    State(#[from] StateError),
    /// The command bus cannot start: correct the model, or restore the named file.
    #[cfg(feature = "cqrs")]
    #[error(transparent)]
    Bus(Box<gapless_cqrs::HostError>),
    /// The member continues with the state of another member, and starts again by itself. Try again soon.
    #[error("the member starts again with the state of another member; try again")]
    Starting,
    /// The member fetched another member's state and could not continue with it. Remove the cause and start the program
    /// again.
    #[error("the member has fetched the state of another member, but its next start failed: {0}")]
    StartAgain(Box<HostError>),
    /// Reason of the end, which every handle is told.
    #[error(transparent)]
    Ended(Arc<HostError>),
    /// The service panicked where it is created or dropped. Correct it.
    #[error("the service panicked while it was created or dropped")]
    Panicked,
    /// No thread can be started. Remove the cause and start again.
    #[error("starting the thread that watches a member: {0}")]
    Thread(std::io::Error),
    /// The host was stopped by [`Running::stop`](crate::Running::stop).
    #[error("the host was stopped")]
    Stopped,
}

impl From<EngineError> for HostError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Box::new(error))
    }
}

#[cfg(feature = "cqrs")]
impl From<gapless_cqrs::HostError> for HostError {
    fn from(error: gapless_cqrs::HostError) -> Self {
        match error {
            gapless_cqrs::HostError::Engine(error) => error.into(),
            gapless_cqrs::HostError::Client(error) => error.into(),
            other => Self::Bus(Box::new(other)),
        }
    }
}
