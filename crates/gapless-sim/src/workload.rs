//! [`Workload`]: a publishing process: a node of an event stream, or a client of a service.

use crate::checker::Violation;
use crate::random::Random;
use crate::reference::ReferenceAnswers;
use crate::system_under_test::SystemUnderTest;
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;

pub(crate) trait Workload<A> {
    /// Keeps only the token.
    fn restart(&mut self);

    /// All messages are acknowledged.
    fn is_done(&self) -> bool;

    /// Looks for a member.
    fn is_searching(&self) -> bool;

    /// Returns the sequence of the message whose reply or notice is wrong.
    fn mismatch_sequence(&self) -> Option<u64> {
        None
    }

    fn connected_member(&self) -> Option<u64>;

    fn connect_to(&mut self, member: u64, stream: &EventStream) -> Result<(), Violation>;

    fn disconnect(&mut self);

    /// Publishes as allowed, and checks received messages against `answers`. Returns how many were received.
    fn poll(
        &mut self,
        now_ns: u64,
        application: &A,
        answers: &ReferenceAnswers,
        random: &mut Random,
    ) -> Result<usize, Violation>;

    /// Counts messages acknowledged for good.
    fn acknowledged(&self) -> u64;

    /// Answered repeat requests.
    fn repeated(&self) -> u64 {
        0
    }

    /// Answered queries about commands of earlier lives.
    fn resolved(&self) -> u64 {
        0
    }

    fn describe(&self) -> String;
}

/// Depends on the arguments alone.
pub(crate) fn message_of(
    application: &impl SystemUnderTest,
    seed: u64,
    publisher: u64,
    index: u64,
) -> (MessageType, Vec<u8>) {
    application.message(publisher, index, &mut Random::of(seed, &[7, publisher, index]))
}
