//! Errors and log lines of librdkafka.

use super::errors::BrokerError;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::BorrowedMessage;
use rdkafka::types::RDKafkaErrorCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Lost connections are a warning: the bridge tells the consequences itself.
pub(super) fn log(level: RDKafkaLogLevel, facility: &str, line: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
            tracing::warn!(target: "gapless_kafka::librdkafka", facility, "{line}");
        }
        RDKafkaLogLevel::Warning | RDKafkaLogLevel::Notice => {
            tracing::info!(target: "gapless_kafka::librdkafka", facility, "{line}");
        }
        RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
            tracing::debug!(target: "gapless_kafka::librdkafka", facility, "{line}");
        }
    }
}

pub(super) struct ErrorContext {
    operation: String,
    last: Mutex<String>,
}

impl ErrorContext {
    pub fn new(operation: String) -> Self {
        Self { operation, last: Mutex::new(String::new()) }
    }

    /// An error as librdkafka reports it; "All brokers are down" gets the reason of the error before it.
    pub fn error(&self, error: &KafkaError, reason: &str) -> BrokerError {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match code {
            RDKafkaErrorCode::AllBrokersDown if !last.is_empty() => format!("{reason}: {last}"),
            RDKafkaErrorCode::AllBrokersDown => reason.to_owned(),
            _ => {
                reason.clone_into(&mut last);
                reason.to_owned()
            }
        };
        BrokerError::from_code(&self.operation, code, Some(reason))
    }
}

/// Polls without waiting. `rdkafka` returns `None` for a log line, too; further events may then wait without a wake-up.
pub(super) fn poll<'a, C: ConsumerContext>(
    consumer: &'a BaseConsumer<C>,
    was_called: &AtomicBool,
) -> Option<KafkaResult<BorrowedMessage<'a>>> {
    loop {
        // Relaxed: callbacks are called by the poll, in this thread.
        was_called.store(false, Ordering::Relaxed);
        let event = consumer.poll(Duration::ZERO);
        if event.is_some() || !was_called.load(Ordering::Relaxed) {
            return event;
        }
    }
}

pub(super) struct LoggingContext;

impl ClientContext for LoggingContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        log(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "gapless_kafka::librdkafka", %error, "{reason}");
    }
}
