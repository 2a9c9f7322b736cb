//! `Priority`: the four classes.

/// Urgency. Classes are served 8 : 4 : 2 : 1 while all have work, so none starves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Priority {
    /// Before all other classes.
    Urgent = 0,
    /// Before `Normal`.
    High = 1,
    /// The default for a call.
    #[default]
    Normal = 2,
    /// Work that can wait.
    Low = 3,
}

impl Priority {
    /// All classes, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::High, Self::Normal, Self::Low];
}
