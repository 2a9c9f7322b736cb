use super::disk::Disk;
use gapless_wire::Frame;
use std::collections::HashMap;

#[derive(Default)]
pub struct Checker {
    leaders: HashMap<u64, u64>,
    /// Checksums of everything ever released anywhere.
    released: Vec<(u32, u32)>,
    by_member: HashMap<u64, u64>,
}

impl Checker {
    pub fn released_end(&self) -> u64 {
        self.released.len() as u64
    }

    pub fn released_by(&self, member: u64) -> u64 {
        self.by_member.get(&member).copied().unwrap_or(0)
    }

    pub fn leads(&mut self, member: u64, term: u64) {
        let leader = *self.leaders.entry(term).or_insert(member);
        assert_eq!(leader, member, "two leaders in term {term}");
    }

    pub fn starts(&mut self, member: u64) {
        self.by_member.insert(member, 0);
    }

    pub fn releases(&mut self, member: u64, sequence: u64, disk: &Disk) {
        let before = self.released_by(member);
        assert!(sequence > before, "member {member} releases {sequence} after {before}");
        assert!(disk.is_durable(sequence), "member {member} releases {sequence}, which it could lose");
        for at in before + 1..=sequence {
            let bytes = disk.frame(at).expect("a released frame is in the journal");
            let frame = Frame::parse(bytes).unwrap();
            let checksums = (frame.payload_crc(), frame.header_crc());
            match self.released.get(at as usize - 1) {
                Some(known) => assert_eq!(*known, checksums, "member {member} releases another frame {at}"),
                None => self.released.push(checksums),
            }
        }
        self.by_member.insert(member, sequence);
    }

    pub fn keeps(&self, member: u64, disk: &Disk) {
        let released = self.released_by(member);
        assert!(disk.last_sequence() >= released, "member {member} has lost a released frame");
    }
}
