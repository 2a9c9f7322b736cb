//! Timed calls and streams. Payloads are written before the clock runs, and replies checked after it has stopped.

use super::failed;
use super::increments::IncrementPayloads;
use crate::Result;
use crate::histogram::LatencyHistogram;
use crate::peers::subject::PeerCaller;
use crate::resources::process_cpu_ns;
use crate::time_sources::elapsed_ns;
use std::time::Instant;

/// The clock stops between blocks.
const BLOCK_CALLS: usize = 1024;
/// Replies of a block, unless one is longer.
const BLOCK_BYTES: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEdge {
    Begin,
    /// After a block, before its replies are checked.
    End,
}

/// Totals without the work between blocks.
#[derive(Debug, Default)]
pub struct CallTotals {
    pub histogram: LatencyHistogram,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    pub wrong: u64,
    pub doubled: u64,
}

impl CallTotals {
    /// Each call had exactly one answer, the right one.
    pub fn is_verified(&self) -> bool {
        self.wrong == 0 && self.doubled == 0
    }
}

pub struct CallExchange<'a> {
    caller: &'a mut dyn PeerCaller,
    payloads: IncrementPayloads,
    /// Tickets are never reused, so that a late answer is not attributed to another call.
    next_ticket: &'a mut u64,
    replies: Vec<u8>,
    /// Start of each call of a block, its duration (0: unanswered), and the length of its reply.
    begun_ns: Vec<u64>,
    taken_ns: Vec<u64>,
    lengths: Vec<usize>,
}

impl<'a> CallExchange<'a> {
    pub fn new(caller: &'a mut dyn PeerCaller, size: usize, next_ticket: &'a mut u64) -> Self {
        let calls = (BLOCK_BYTES / size).clamp(1, BLOCK_CALLS);
        Self {
            caller,
            payloads: IncrementPayloads::new(size),
            next_ticket,
            replies: vec![0; calls * size],
            begun_ns: vec![0; calls],
            taken_ns: vec![0; calls],
            lengths: vec![0; calls],
        }
    }

    /// Calls `edge` around each block; its error ends the calls.
    pub fn calls(
        &mut self,
        count: u64,
        in_flight: usize,
        edge: &mut dyn FnMut(BlockEdge) -> Result<()>,
    ) -> Result<CallTotals> {
        let mut sum = CallTotals::default();
        let mut left = count as usize;
        while left > 0 {
            edge(BlockEdge::Begin)?;
            let calls = left.min(self.begun_ns.len());
            let cpu_ns = process_cpu_ns();
            let (elapsed_ns, doubled) = self.block(calls, in_flight)?;
            sum.cpu_ns += process_cpu_ns() - cpu_ns;
            edge(BlockEdge::End)?;
            sum.elapsed_ns += elapsed_ns;
            sum.doubled += doubled;
            let (first, size) = (*self.next_ticket, self.payloads.size());
            for call in 0..calls {
                let reply = &self.replies[call * size..][..self.lengths[call].min(size)];
                let is_right = self.lengths[call] == size && self.payloads.is_answered_by(first + call as u64, reply);
                sum.wrong += u64::from(!is_right);
                sum.histogram.record(self.taken_ns[call]);
            }
            *self.next_ticket += calls as u64;
            left -= calls;
        }
        Ok(sum)
    }

    /// Duration, and the number of duplicate answers.
    fn block(&mut self, calls: usize, in_flight: usize) -> Result<(u64, u64)> {
        let (first, size) = (*self.next_ticket, self.payloads.size());
        self.taken_ns[..calls].fill(0);
        let (mut begun, mut done, mut doubled, mut stray) = (0, 0, 0, None);
        let begin = Instant::now();
        while done < calls {
            while begun < calls && begun - done < in_flight {
                self.begun_ns[begun] = elapsed_ns(begin);
                let ticket = first + begun as u64;
                self.caller.begin(ticket, self.payloads.of(ticket)).map_err(failed)?;
                begun += 1;
            }
            let (replies, taken_ns, lengths) = (&mut self.replies, &mut self.taken_ns, &mut self.lengths);
            let begun_ns = &self.begun_ns;
            let mut take = |ticket: u64, reply: &[u8]| {
                let now_ns = elapsed_ns(begin);
                let call = ticket.wrapping_sub(first) as usize;
                if ticket < first || (call < begun && taken_ns[call] > 0) {
                    doubled += 1;
                } else if call >= begun {
                    stray = Some(ticket);
                } else {
                    let length = reply.len().min(size);
                    replies[call * size..][..length].copy_from_slice(&reply[..length]);
                    lengths[call] = reply.len();
                    taken_ns[call] = (now_ns - begun_ns[call]).max(1);
                    done += 1;
                }
            };
            self.caller.receive(&mut take).map_err(failed)?;
            if let Some(ticket) = stray {
                return Err(failed(format!("an answer to call {ticket}, which was not made")));
            }
        }
        Ok((elapsed_ns(begin), doubled))
    }

    /// Returns the CPU time of this process, ns.
    pub fn stream(&mut self, count: u64) -> Result<u64> {
        let cpu_ns = process_cpu_ns();
        for number in 0..count {
            self.caller.send(self.payloads.of(number)).map_err(failed)?;
        }
        self.caller.flush().map_err(failed)?;
        Ok(process_cpu_ns() - cpu_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::subject::increment;

    /// Answers in reverse order, a few at a time.
    struct FakeCaller {
        waiting: Vec<(u64, Vec<u8>)>,
        spoil: fn(u64, &mut Vec<u8>),
        twice: Option<u64>,
        most_waiting: usize,
    }

    impl FakeCaller {
        fn new() -> Self {
            Self { waiting: Vec::new(), spoil: |_, _| (), twice: None, most_waiting: 0 }
        }
    }

    impl PeerCaller for FakeCaller {
        fn begin(&mut self, ticket: u64, request: &[u8]) -> crate::peers::Result<()> {
            let mut reply = Vec::new();
            increment(request, &mut reply);
            (self.spoil)(ticket, &mut reply);
            self.waiting.push((ticket, reply));
            self.most_waiting = self.most_waiting.max(self.waiting.len());
            Ok(())
        }

        fn receive(&mut self, take: &mut dyn FnMut(u64, &[u8])) -> crate::peers::Result<()> {
            for _ in 0..self.waiting.len().min(3) {
                let (ticket, reply) = self.waiting.pop().unwrap();
                take(ticket, &reply);
                if self.twice == Some(ticket) {
                    take(ticket, &reply);
                }
            }
            Ok(())
        }

        fn send(&mut self, message: &[u8]) -> crate::peers::Result<()> {
            self.waiting.push((self.waiting.len() as u64, message.to_vec()));
            Ok(())
        }

        fn flush(&mut self) -> crate::peers::Result<()> {
            Ok(())
        }
    }

    fn run(fake: &mut FakeCaller, size: usize, in_flight: usize) -> Result<CallTotals> {
        let mut ticket = 5;
        let calls = CallExchange::new(fake, size, &mut ticket).calls(2_500, in_flight, &mut |_| Ok(()));
        assert!(calls.is_err() || ticket == 2_505);
        calls
    }

    #[test]
    fn reordered_answers_are_counted_once() {
        for (size, in_flight) in [(1, 1), (1, 64), (4096, 64)] {
            let mut fake = FakeCaller::new();
            let calls = run(&mut fake, size, in_flight).unwrap();
            assert_eq!((calls.histogram.count(), calls.is_verified()), (2_500, true));
            assert_eq!(fake.most_waiting, in_flight);
            assert!(calls.elapsed_ns > 0);
        }
    }

    #[test]
    fn bad_answers_are_detected() {
        let spoil: [fn(u64, &mut Vec<u8>); 3] = [
            |ticket, reply| {
                if ticket == 2_000 {
                    reply[63] ^= 1
                }
            },
            |ticket, reply| {
                if ticket == 2_000 {
                    reply.push(0)
                }
            },
            |ticket, reply| {
                if ticket == 2_000 {
                    reply.truncate(3)
                }
            },
        ];
        for spoil in spoil {
            let calls = run(&mut FakeCaller { spoil, ..FakeCaller::new() }, 64, 8).unwrap();
            assert_eq!((calls.wrong, calls.is_verified()), (1, false));
        }
        let calls = run(&mut FakeCaller { twice: Some(7), ..FakeCaller::new() }, 64, 8).unwrap();
        assert_eq!((calls.doubled, calls.is_verified()), (1, false));
        let mut fake = FakeCaller::new();
        fake.waiting.push((9_999_999, vec![0]));
        assert!(run(&mut fake, 64, 1).unwrap_err().to_string().contains("9999999"));
        let mut late = FakeCaller::new();
        late.waiting.push((1, vec![0]));
        assert_eq!(run(&mut late, 64, 1).unwrap().doubled, 1, "a reply of a much earlier block");
    }

    #[test]
    fn interrupt_between_blocks_ends_calls() {
        let mut fake = FakeCaller::new();
        let (mut ticket, mut blocks) = (0, 0);
        let mut edge = |edge: BlockEdge| {
            blocks += u32::from(edge == BlockEdge::Begin);
            if blocks == 2 { Err(failed("interrupted")) } else { Ok(()) }
        };
        let error = CallExchange::new(&mut fake, 1, &mut ticket).calls(5_000, 1, &mut edge).unwrap_err();
        assert!(error.to_string().contains("interrupted"));
        assert_eq!(ticket, BLOCK_CALLS as u64);
    }

    #[test]
    fn stream_has_payloads_in_order() {
        let mut fake = FakeCaller::new();
        let mut ticket = 0;
        CallExchange::new(&mut fake, 3, &mut ticket).stream(200).unwrap();
        let payloads = IncrementPayloads::new(3);
        assert_eq!(fake.waiting.len(), 200);
        assert!(fake.waiting.iter().all(|(number, message)| message == payloads.of(*number)));
    }
}
