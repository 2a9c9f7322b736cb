//! Creates or checks the two topics of a bridge, on a thread of its own.

use super::ready::{ReadySources, WorkSource};
use super::{BridgeEvent, RunError};
use crate::client::{BrokerConnection, BrokerError, BrokerErrorKind, TopicCreation, TopicSpec, Topics};
use std::sync::mpsc::Sender;
use std::time::Duration;

const PAUSE: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct OwnTopics {
    pub(super) inbox: TopicSpec,
    pub(super) presence: TopicSpec,
}

pub(super) enum TopicPreparation {
    Event(BridgeEvent),
    Pending,
    Done(Result<(), RunError>),
}

pub(super) fn prepare_topics(
    connection: &BrokerConnection,
    topics: &OwnTopics,
    progress: &Sender<TopicPreparation>,
    ready: &ReadySources,
) {
    let mut reported = None;
    loop {
        let done = try_topics(connection, topics, progress);
        let prepared = match done {
            Err(RunError::Broker(error)) if is_transient(&error) => {
                let is_new = reported.as_ref() != Some(&error);
                reported = Some(error.clone());
                if is_new { TopicPreparation::Event(BridgeEvent::Waiting(error)) } else { TopicPreparation::Pending }
            }
            done => TopicPreparation::Done(done),
        };
        let is_done = matches!(prepared, TopicPreparation::Done(_));
        if progress.send(prepared).is_err() {
            return;
        }
        ready.signal(WorkSource::Broker);
        if is_done {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

const fn is_transient(error: &BrokerError) -> bool {
    !matches!(
        error.kind,
        BrokerErrorKind::Authentication | BrokerErrorKind::NotAuthorized | BrokerErrorKind::Configuration
    )
}

fn try_topics(
    connection: &BrokerConnection,
    topics: &OwnTopics,
    progress: &Sender<TopicPreparation>,
) -> Result<(), RunError> {
    let client = Topics::connect(connection, ANSWER_MAX)?;
    for spec in [&topics.presence, &topics.inbox] {
        match client.ensure(spec, ANSWER_MAX)? {
            TopicCreation::New => {}
            TopicCreation::Existing(differences) if differences.is_empty() => {}
            TopicCreation::Existing(differences) => {
                let topic = spec.name.clone();
                if let Some(fatal) = differences.iter().find(|difference| difference.is_fatal) {
                    return Err(RunError::Topic { topic, reason: fatal.to_string() });
                }
                let event = BridgeEvent::TopicDiffers { topic, differences };
                // After the end of the bridge there is no receiver.
                let _ = progress.send(TopicPreparation::Event(event));
            }
        }
    }
    Ok(())
}
