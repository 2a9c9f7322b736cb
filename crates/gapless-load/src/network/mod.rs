//! Load of `gapless bench network`: calls between two domains, each with a bridge, over a Kafka broker.
//!
//! | module | what lives there |
//! |---|---|
//! | [`bare`] | the same payloads with a bare producer and consumer at each end |
//! | [`bridge_process`] | a bridge as a process of the benchmark |
//! | [`run_topics`] | topics of a run, removed at its end |

pub mod bare;
pub mod bridge_process;
pub mod run_topics;

use gapless_measure::BenchError;

pub const NAME: &str = "network";

pub fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Measurement { name: NAME, reason: error.to_string() }
}
