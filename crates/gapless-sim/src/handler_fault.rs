//! [`HandlerFault`]: a handler's defect, described for its developer. The engine's own errors address an operator, who
//! cannot change the handler.

use gapless_cluster::ClusterError;
use gapless_engine::EngineError;
use std::error::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailurePlace {
    /// The handler broke a rule of the service at this sequence.
    Fault(u64),
    /// Two instances disagree on state or outputs after this sequence.
    Divergence(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandlerFault {
    pub place: FailurePlace,
    /// Description with the remedy.
    pub text: String,
}

impl HandlerFault {
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        // A transparent error is not among its own sources.
        if let Some(ClusterError::Service(service)) = error.downcast_ref() {
            return Self::of(&**service);
        }
        match error.downcast_ref::<EngineError>() {
            Some(error) => Self::of_engine(error),
            None => error.source().and_then(Self::of),
        }
    }

    pub(crate) fn of_engine(error: &EngineError) -> Option<Self> {
        let (place, text) = match error {
            EngineError::HandlerPanicked { message, sequence, reason, .. } => {
                (FailurePlace::Fault(*sequence), format!("the handler of {message} panicked: {reason}"))
            }
            EngineError::RefusalWithEffect { message, sequence, reason, .. } => (
                FailurePlace::Fault(*sequence),
                format!(
                    "the handler of {message} has changed the state and then refused: {reason}. A refusal takes nothing back, and its client \
                     hears that nothing happened: check first, then change"
                ),
            ),
            EngineError::Unhandled { message, sequence, reason, .. } => {
                (FailurePlace::Fault(*sequence), format!("no handler takes {message}: {reason}"))
            }
            EngineError::OtherOutputs { first, last, at, .. } => (
                FailurePlace::Divergence(*at.start()),
                format!(
                    "it replays its journal, and the handlers put out something else for the frames {first} to {last} than when it handled \
                     them first"
                ),
            ),
            _ => return None,
        };
        Some(Self { place, text })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use gapless_agent::AgentFailure;
    use gapless_stream::StreamError;

    fn panicked() -> EngineError {
        let (message, reason) = ("schema 9 template 1".to_owned(), "no".to_owned());
        EngineError::HandlerPanicked { message, sequence: 7, session: 2, session_seq: 3, reason }
    }

    #[test]
    fn fault_is_extracted_from_errors() {
        let fault = HandlerFault::of_engine(&panicked()).unwrap();
        assert_eq!(
            (fault.place, &*fault.text),
            (FailurePlace::Fault(7), "the handler of schema 9 template 1 panicked: no")
        );
        let in_turn = StreamError::from(AgentFailure::new("service", panicked().into()));
        assert_eq!(HandlerFault::of(&ClusterError::from(in_turn)), Some(fault.clone()));
        assert_eq!(HandlerFault::of(&ClusterError::Service(panicked().into())), Some(fault));
        let other = EngineError::Corrupt { sequence: 7, reason: "no".to_owned() };
        assert_eq!(HandlerFault::of(&ClusterError::Service(other.into())), None);
    }
}
