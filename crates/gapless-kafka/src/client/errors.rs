//! Errors as plain kinds, with the words of the broker or of librdkafka.

use crate::config::is_secret;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode as Code;

/// Cause of a [`BrokerError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BrokerErrorKind {
    /// No broker can be reached, or the connection was lost. Ends by itself.
    Unreachable,
    /// No answer in time. Ends by itself.
    TimedOut,
    /// The broker refuses this client: user, password, certificate, mechanism.
    Authentication,
    /// The broker refuses this operation to this user.
    NotAuthorized,
    /// No such topic, or no such partition.
    UnknownTopic,
    /// Longer than the broker or this producer allows.
    TooLarge,
    /// The producer's own queue is full; room comes with each delivery.
    QueueFull,
    /// The broker's disk: full, or broken.
    Storage,
    /// The offset is outside of the topic's records: retention has removed them, or the log was made again.
    OffsetOutOfRange,
    /// A record that does not decode, or whose compression this build does not read.
    Unreadable,
    /// A property or an option that librdkafka does not accept.
    Configuration,
    /// The record was withdrawn by [`discard`](super::Producer::discard), or by the end of its producer.
    Discarded,
    /// Any other code.
    Other,
}

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}: {reason} ({code})")]
pub struct BrokerError {
    /// Cause.
    pub kind: BrokerErrorKind,
    /// The operation and its topic, such as `send to shop.inbox.b`.
    pub operation: String,
    /// librdkafka's name of the error, such as `TopicAuthorizationFailed`.
    pub code: String,
    /// Words of the broker or of librdkafka; never a secret property.
    pub reason: String,
    /// The client is unusable from now on: open another one.
    pub is_fatal: bool,
}

impl BrokerError {
    pub(super) fn from_code(operation: &str, code: Code, reason: Option<String>) -> Self {
        let own = code.to_string();
        let own = own.split_once(" (").map_or(own.as_str(), |(_, words)| words.trim_end_matches(')'));
        let mut reason = reason.filter(|reason| !reason.is_empty()).unwrap_or_else(|| own.to_owned());
        // librdkafka does not tell these causes apart.
        if reason.contains("certificate verify failed") {
            reason += "; it has expired, or an authority signed it that this client does not trust";
        }
        let (operation, is_fatal) = (operation.to_owned(), code == Code::Fatal);
        Self { kind: kind(code), operation, code: format!("{code:?}"), reason, is_fatal }
    }

    pub(super) fn from_kafka(operation: &str, error: &KafkaError) -> Self {
        match error {
            KafkaError::ClientConfig(result, words, name, _) => {
                let words = if is_secret(name) { "its value is not accepted" } else { words.as_str() };
                let reason = format!("property {name}: {words}");
                Self::plain(BrokerErrorKind::Configuration, operation, &format!("{result:?}"), reason)
            }
            KafkaError::ClientCreation(words) | KafkaError::AdminOpCreation(words) => {
                Self::plain(BrokerErrorKind::Configuration, operation, "InvalidArgument", words.clone())
            }
            KafkaError::Nul(_) => {
                let reason = "a name has a zero byte".to_owned();
                Self::plain(BrokerErrorKind::Configuration, operation, "InvalidArgument", reason)
            }
            KafkaError::AdminOp(code) => Self::from_code(operation, *code, None),
            KafkaError::MessageConsumptionFatal(code) => {
                Self { is_fatal: true, ..Self::from_code(operation, *code, None) }
            }
            error => match error.rdkafka_error_code() {
                Some(code) => Self::from_code(operation, code, None),
                None => Self::plain(BrokerErrorKind::Other, operation, "Other", error.to_string()),
            },
        }
    }

    pub(super) fn plain(kind: BrokerErrorKind, operation: &str, code: &str, reason: String) -> Self {
        Self { kind, operation: operation.to_owned(), code: code.to_owned(), reason, is_fatal: false }
    }
}

fn kind(code: Code) -> BrokerErrorKind {
    match code {
        Code::BrokerTransportFailure
        | Code::AllBrokersDown
        | Code::Resolve
        | Code::NetworkException
        | Code::BrokerNotAvailable
        | Code::LeaderNotAvailable
        | Code::NotLeaderForPartition
        | Code::ReplicaNotAvailable
        | Code::UnknownBroker
        | Code::NotController => BrokerErrorKind::Unreachable,
        Code::MessageTimedOut | Code::OperationTimedOut | Code::TimedOutQueue | Code::RequestTimedOut => {
            BrokerErrorKind::TimedOut
        }
        Code::Authentication
        | Code::SSL
        | Code::SaslAuthenticationFailed
        | Code::UnsupportedSASLMechanism
        | Code::IllegalSASLState
        | Code::SecurityDisabled => BrokerErrorKind::Authentication,
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed
        | Code::PolicyViolation => BrokerErrorKind::NotAuthorized,
        Code::UnknownTopic
        | Code::UnknownTopicOrPartition
        | Code::UnknownPartition
        | Code::UnknownTopicId
        | Code::InvalidTopic => BrokerErrorKind::UnknownTopic,
        Code::MessageSizeTooLarge | Code::InvalidMessageSize | Code::MessageBatchTooLarge => BrokerErrorKind::TooLarge,
        Code::QueueFull => BrokerErrorKind::QueueFull,
        Code::KafkaStorageError | Code::LogDirNotFound | Code::CriticalSystemResource => BrokerErrorKind::Storage,
        Code::OffsetOutOfRange | Code::NoOffset | Code::AutoOffsetReset | Code::LogTruncation => {
            BrokerErrorKind::OffsetOutOfRange
        }
        Code::BadMessage
        | Code::BadCompression
        | Code::InvalidMessage
        | Code::UnsupportedCompressionType
        | Code::NotImplemented => BrokerErrorKind::Unreadable,
        Code::InvalidArgument
        | Code::InvalidConfig
        | Code::InvalidReplicationFactor
        | Code::InvalidPartitions
        | Code::UnsupportedFeature
        | Code::NotConfigured => BrokerErrorKind::Configuration,
        Code::PurgeQueue | Code::PurgeInflight | Code::DestroyBroker => BrokerErrorKind::Discarded,
        _ => BrokerErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_quote_the_broker() {
        let error =
            BrokerError::from_kafka("send to a.b", &KafkaError::MessageProduction(Code::TopicAuthorizationFailed));
        assert_eq!(error.kind, BrokerErrorKind::NotAuthorized);
        assert_eq!(error.to_string(), "send to a.b: Broker: Topic authorization failed (TopicAuthorizationFailed)");
        let words = "SASL authentication error: wrong".to_owned();
        let error = BrokerError::from_code("connect", Code::Authentication, Some(words));
        assert_eq!(error.to_string(), "connect: SASL authentication error: wrong (Authentication)");
    }

    #[test]
    fn secrets_stay_out_of_errors() {
        let words = |name: &str, value: &str| {
            let refused = rdkafka::ClientConfig::new().set(name, value).create_native_config().map(drop).unwrap_err();
            BrokerError::from_kafka("open", &refused).to_string()
        };
        assert_eq!(words("linger.ms", "hidden").matches("hidden").count(), 0);
        assert_eq!(
            words("my.password", "hidden"),
            "open: property my.password: its value is not accepted (RD_KAFKA_CONF_UNKNOWN)"
        );
    }
}
