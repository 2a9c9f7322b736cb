//! Shared support for the tests of every crate. It depends on no other crate of the workspace and on little else,
//! because all tests wait for its build.
//!
//! | module | what lives there |
//! |---|---|
//! | `scenarios` | tests of a program without a harness, whose processes are the program itself; requires the feature `scenarios` |
//! | [`limits`] | a process that has no descriptor left |
//! | [`kafka_broker`] | a broker of Kafka 4 |
//! | [`process`] | a process that is started, read, killed, and ends with its test |
//! | [`folder`] | copies of directories, small file systems |
//! | [`ports`] | ports, addresses and groups that no other test uses |
//! | [`random`] | random numbers from a seed that is printed and can be given again |
//! | `reference` | pages of `docs/reference`, compared with the code |
//! | [`turns`] | tests of one program that are too large to run all at once |
//! | [`wait`] | waiting for a condition, with a deadline |
//! | [`wake_count`] | a waker that counts |
//! | [`allocations`] | an allocator that counts |
//! | [`documents`] | the parts of a document that the house tests check |

#[cfg(feature = "certificates")]
pub use rcgen;

pub mod allocations;
pub mod documents;
pub mod folder;
pub mod kafka_broker;
pub mod limits;
pub mod ports;
pub mod process;
pub mod random;
pub mod reference;
#[cfg(feature = "scenarios")]
pub mod scenarios;
pub mod turns;
pub mod wait;
pub mod wake_count;
