//! Identifies the boot of the machine, which decides which mark is good (decision 7).

/// Drawn by the kernel at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(pub u128);

impl BootId {
    /// `None` if unavailable, for instance without `/proc`.
    #[must_use]
    pub fn of_this_machine() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
        if digits.len() != 32 {
            return None;
        }
        // 0 on disk means unknown.
        u128::from_str_radix(&digits, 16).ok().filter(|&id| id != 0).map(Self)
    }

    pub(crate) fn to_words(id: Option<Self>) -> (u64, u64) {
        let id = id.map_or(0, |id| id.0);
        (id as u64, (id >> 64) as u64)
    }

    pub(crate) fn from_words(low: u64, high: u64) -> Option<Self> {
        let id = u128::from(low) | u128::from(high) << 64;
        (id != 0).then_some(Self(id))
    }
}

impl std::fmt::Display for BootId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BootId;

    #[test]
    fn malformed_boot_id_is_unknown() {
        let id = BootId::parse("8e5b427f-d367-4921-81ca-52ffb7cf4c88\n");
        assert_eq!(id, Some(BootId(0x8e5b_427f_d367_4921_81ca_52ff_b7cf_4c88)));
        assert_eq!(BootId::parse("8e5b427f"), None);
        assert_eq!(BootId::parse("zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"), None);
        assert_eq!(BootId::parse("00000000-0000-0000-0000-000000000000"), None);
    }

    #[test]
    fn boot_id_survives_a_round_trip() {
        for id in [None, Some(BootId(1)), Some(BootId(u128::MAX))] {
            let (low, high) = BootId::to_words(id);
            assert_eq!(BootId::from_words(low, high), id);
        }
    }
}
