//! [`HandledCommands`]: the typed commands of a service, which its sequencer knows. Others get
//! [`UNHANDLED_FLAG`], so that members with different programs, and every replay, treat a command alike.

use gapless_wire::descriptor::UNHANDLED_FLAG;
use gapless_wire::{Encoding, Frame, Kind};
use rustc_hash::FxHashSet;

/// Keys of names, each with a contract (`gapless-message`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandledCommands(FxHashSet<(u32, u32)>);

impl FromIterator<(u32, u32)> for HandledCommands {
    /// Pairs of `schema` and contract.
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl HandledCommands {
    /// [`UNHANDLED_FLAG`] for a typed command outside of the set, else 0. `frame` is the command's first. A first frame
    /// without a whole contract is outside.
    #[must_use]
    pub fn flags_for(&self, frame: &Frame<'_>) -> u16 {
        if frame.kind() != Kind::Command || frame.encoding() != Encoding::Postcard {
            return 0;
        }
        let contract = frame.payload().first_chunk().map(|contract| u32::from_le_bytes(*contract));
        match contract.is_some_and(|contract| self.0.contains(&(frame.schema(), contract))) {
            true => 0,
            false => UNHANDLED_FLAG,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH};

    #[test]
    fn only_other_typed_commands_are_flagged() {
        let handled: HandledCommands = [(7, 0x0403_0201), (7, 9)].into_iter().collect();
        let flags = |kind: Kind, schema: u32, encoding: Encoding, payload: &[u8]| {
            let mut bytes = vec![0; HEADER_LENGTH + 16];
            let mut writer = FrameWriter::new(&mut bytes);
            writer.payload_mut()[..payload.len()].copy_from_slice(payload);
            let header = FrameHeader { kind, schema, flags: encoding.flags(), ..FrameHeader::default() };
            let length = writer.finish(&header, payload.len());
            handled.flags_for(&Frame::parse(&bytes[..length]).expect("it is a frame"))
        };
        let command = |schema: u32, payload: &[u8]| flags(Kind::Command, schema, Encoding::Postcard, payload);
        assert_eq!(command(7, &[1, 2, 3, 4, 5]), 0);
        assert_eq!(command(7, &[9, 0, 0, 0]), 0);
        for (schema, payload) in [(8, &[1, 2, 3, 4][..]), (7, &[1, 2, 3, 5]), (7, &[1, 2, 3]), (7, &[])] {
            assert_eq!(command(schema, payload), UNHANDLED_FLAG, "{schema} {payload:?}");
        }
        for encoding in [Encoding::Opaque, Encoding::Sbe, Encoding::Protobuf] {
            assert_eq!(flags(Kind::Command, 8, encoding, &[1, 2, 3, 4]), 0, "{encoding:?}");
        }
        assert_eq!(flags(Kind::Event, 8, Encoding::Postcard, &[1, 2, 3, 4]), 0);
    }
}
