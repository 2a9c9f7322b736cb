//! The two topics of a bridge: they are made, or looked at, on a thread of their own.

use super::ready::{Ready, Source};
use super::{BridgeEvent, RunError};
use crate::client::{BrokerError, Connection, Created, ErrorKind, TopicSpec, Topics};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Pause between two attempts to prepare the topics.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest wait for the broker's answer about a topic.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The names and settings of a bridge's two topics.
#[derive(Clone)]
pub(super) struct OwnTopics {
    pub(super) inbox: TopicSpec,
    pub(super) presence: TopicSpec,
}

/// News of the thread.
pub(super) enum Prepared {
    /// Not yet; the thread goes on.
    Event(BridgeEvent),
    /// Not yet, and nothing new.
    Still,
    Done(Result<(), RunError>),
}

/// Makes sure that both topics are there. Ends with the first answer that no further attempt can change, and when nobody listens.
pub(super) fn prepare_topics(connection: &Connection, topics: &OwnTopics, tell: &Sender<Prepared>, ready: &Ready) {
    let mut told = None;
    loop {
        let done = try_topics(connection, topics, tell);
        let prepared = match done {
            Err(RunError::Broker(error)) if may_pass(&error) => {
                let is_new = told.as_ref() != Some(&error);
                told = Some(error.clone());
                if is_new { Prepared::Event(BridgeEvent::Waiting(error)) } else { Prepared::Still }
            }
            done => Prepared::Done(done),
        };
        let is_done = matches!(prepared, Prepared::Done(_));
        if tell.send(prepared).is_err() {
            return;
        }
        ready.signal(Source::Broker);
        if is_done {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether another attempt may end otherwise.
const fn may_pass(error: &BrokerError) -> bool {
    !matches!(error.kind, ErrorKind::Authentication | ErrorKind::NotAuthorized | ErrorKind::Configuration)
}

fn try_topics(connection: &Connection, topics: &OwnTopics, tell: &Sender<Prepared>) -> Result<(), RunError> {
    let client = Topics::connect(connection, ANSWER_MAX)?;
    for spec in [&topics.presence, &topics.inbox] {
        match client.ensure(spec, ANSWER_MAX)? {
            Created::New => {}
            Created::Existing(differences) if differences.is_empty() => {}
            Created::Existing(differences) => {
                let topic = spec.name.clone();
                if let Some(fatal) = differences.iter().find(|difference| difference.is_fatal) {
                    return Err(RunError::Topic { topic, reason: fatal.to_string() });
                }
                let event = BridgeEvent::TopicDiffers { topic, differences };
                // Nobody listens to a bridge that has ended.
                let _ = tell.send(Prepared::Event(event));
            }
        }
    }
    Ok(())
}
