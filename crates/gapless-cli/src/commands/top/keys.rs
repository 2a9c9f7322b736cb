//! `KeyDecoder`: decodes the bytes that a terminal sends into keys.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenKey {
    /// q, Escape, Ctrl-C or Ctrl-D.
    End,
    Up,
    Down,
    PageUp,
    /// The key itself, or the space bar.
    PageDown,
}

const SEQUENCE_LENGTH_MAX: usize = 32;
const ESCAPE: u8 = 0x1b;

#[derive(Default)]
pub(super) struct KeyDecoder {
    begun: Vec<u8>,
}

impl KeyDecoder {
    pub(super) fn of(&mut self, bytes: &[u8]) -> Vec<ScreenKey> {
        let mut bytes = bytes.iter();
        std::iter::from_fn(|| bytes.next().map(|byte| self.next(*byte))).flatten().collect()
    }

    /// An Escape without a sequence was typed.
    pub(super) fn pause(&mut self) -> Option<ScreenKey> {
        let is_escape = self.begun == [ESCAPE];
        self.begun.clear();
        is_escape.then_some(ScreenKey::End)
    }

    fn next(&mut self, byte: u8) -> Option<ScreenKey> {
        self.begun.push(byte);
        let key = match &self.begun[..] {
            &[byte] => match byte {
                ESCAPE => return None,
                b'q' | 0x03 | 0x04 => Some(ScreenKey::End),
                b'j' => Some(ScreenKey::Down),
                b'k' => Some(ScreenKey::Up),
                b' ' => Some(ScreenKey::PageDown),
                _ => None,
            },
            [ESCAPE, b'[' | b'O'] => return None,
            // Alt: Escape twice, or before a letter; the second may begin a sequence.
            [ESCAPE, ESCAPE] => {
                self.begun.pop();
                return None;
            }
            [ESCAPE, _] => None,
            [ESCAPE, b'[', .., 0x20..=0x3f] if self.begun.len() < SEQUENCE_LENGTH_MAX => return None,
            [ESCAPE, _, rest @ ..] => match rest {
                [.., b'A'] => Some(ScreenKey::Up),
                [.., b'B'] => Some(ScreenKey::Down),
                b"5~" => Some(ScreenKey::PageUp),
                b"6~" => Some(ScreenKey::PageDown),
                _ => None,
            },
            _ => None,
        };
        self.begun.clear();
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_any_split_of_bytes() {
        let typed = b"jk \x1b[A\x1b[1;5B\x1bOA\x1b[5~\x1b[6~x\x1b[200~\xc3\xa4\x1bxq\x03\x04";
        let expected = {
            use ScreenKey::{Down, End, PageDown, PageUp, Up};
            [Down, Up, PageDown, Up, Down, Up, PageUp, PageDown, End, End, End]
        };
        assert_eq!(KeyDecoder::default().of(typed), expected);
        let mut keys = KeyDecoder::default();
        let single: Vec<ScreenKey> = typed.iter().flat_map(|byte| keys.of(&[*byte])).collect();
        assert_eq!(single, expected);
        assert_eq!(keys.pause(), None);
        assert_eq!((keys.of(b"\x1b"), keys.pause(), keys.of(b"[B")), (vec![], Some(ScreenKey::End), vec![]));
    }

    #[test]
    fn invalid_sequence_hides_no_key() {
        let mut keys = KeyDecoder::default();
        let flood = [b"\x1b[".as_slice(), &b"1;".repeat(1_000), b"q"].concat();
        assert!(keys.of(&flood).contains(&ScreenKey::End));
        assert!(keys.begun.len() < SEQUENCE_LENGTH_MAX);
    }
}
