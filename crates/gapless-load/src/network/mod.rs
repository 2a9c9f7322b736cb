//! Load of `gapless bench network`: calls between two domains, each with a bridge, over a broker of Kafka.
//!
//! | module | what lives there |
//! |---|---|
//! | [`bare`] | the same payloads by a bare producer and consumer at each end |
//! | [`bridge_process`] | a bridge as a process of the benchmark |
//! | [`run_topics`] | topics of a run, removed at its end |

pub mod bare;
pub mod bridge_process;
pub mod run_topics;

use gapless_measure::BenchError;

/// The benchmark's name.
pub const NAME: &str = "network";

/// An error of a step, in the benchmark's name.
pub fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Measurement { name: NAME, reason: error.to_string() }
}
