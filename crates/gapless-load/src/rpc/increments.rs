//! Requests and their expected replies, all written before the clock runs.

/// Distinct payloads; they differ in the first byte, so that payloads of one byte are told apart.
const DISTINCT: u64 = 64;

pub struct IncrementPayloads {
    size: usize,
    all: Vec<u8>,
}

impl IncrementPayloads {
    pub fn new(size: usize) -> Self {
        assert!(size > 0, "a payload has at least one byte");
        let byte = |number: usize, index: usize| (number * 31 + index * 7 + size) as u8;
        let all = (0..DISTINCT as usize).flat_map(|number| (0..size).map(move |index| byte(number, index))).collect();
        Self { size, all }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// `ticket` may be the number in a stream.
    #[inline]
    pub fn of(&self, ticket: u64) -> &[u8] {
        let begin = (ticket % DISTINCT) as usize * self.size;
        &self.all[begin..begin + self.size]
    }

    pub fn is_answered_by(&self, ticket: u64, reply: &[u8]) -> bool {
        let request = self.of(ticket);
        reply.len() == request.len() && request.iter().zip(reply).all(|(sent, found)| sent.wrapping_add(1) == *found)
    }

    /// Detects lost or reordered messages.
    #[inline]
    pub fn begins(&self, number: u64, message: &[u8]) -> bool {
        message.len() == self.size && message[0] == self.of(number)[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_must_increment_each_byte() {
        for size in [1, 2, 300] {
            let payloads = IncrementPayloads::new(size);
            for ticket in [0, 1, 63, 64, u64::MAX] {
                let mut reply: Vec<u8> = payloads.of(ticket).iter().map(|byte| byte.wrapping_add(1)).collect();
                assert!(payloads.is_answered_by(ticket, &reply));
                assert!(!payloads.is_answered_by(ticket ^ 1, &reply), "the reply of the next payload");
                assert!(!payloads.is_answered_by(ticket, payloads.of(ticket)), "the request itself");
                reply[size - 1] ^= 1;
                assert!(!payloads.is_answered_by(ticket, &reply));
                assert!(!payloads.is_answered_by(ticket, &reply[1..]));
                assert!(
                    payloads.begins(ticket, payloads.of(ticket)) && !payloads.begins(ticket ^ 1, payloads.of(ticket))
                );
            }
        }
    }
}
