//! `RunExtent`: how much of a benchmark is measured.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunExtent {
    /// Little of everything, to see that it works.
    Quick,
    /// Within three minutes.
    #[default]
    Usual,
    /// Length of the committed or the published tables.
    Full,
}

impl RunExtent {
    /// `--quick` wins.
    #[must_use]
    pub const fn of(is_quick: bool, is_full: bool) -> Self {
        match (is_quick, is_full) {
            (true, _) => Self::Quick,
            (false, true) => Self::Full,
            (false, false) => Self::Usual,
        }
    }

    #[must_use]
    pub fn pick<T>(self, quick: T, usual: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Usual => usual,
            Self::Full => full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_a_value() {
        let pick = |is_quick, is_full| RunExtent::of(is_quick, is_full).pick("quick", "usual", "full");
        assert_eq!(pick(false, false), "usual");
        assert_eq!((pick(false, true), pick(true, false), pick(true, true)), ("full", "quick", "quick"));
        assert_eq!(RunExtent::default(), RunExtent::Usual);
    }
}
