use gapless::prelude::*;

/// From an order entry: [`Numbers`] with a quantity.
pub const ORDER: MessageType = MessageType { schema: 7 << 16 | 1, encoding: Encoding::Opaque };
/// From the matching service: the same order, and the total quantity filled so far.
pub const FILLED: MessageType = MessageType { schema: 7 << 16 | 2, encoding: Encoding::Opaque };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub entry: u64,
    pub order: u64,
    pub quantity: u64,
}

impl Numbers {
    pub fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (at, number) in [self.entry, self.order, self.quantity].into_iter().enumerate() {
            bytes[8 * at..][..8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 24] = bytes.try_into().ok()?;
        let at = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some(Self { entry: at(0), order: at(8), quantity: at(16) })
    }
}
