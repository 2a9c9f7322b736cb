//! [`Priority`]: the four classes.

/// How urgent a record is, and the call that it holds. Of work that waits, classes are served 8 : 4 : 2 : 1, so none starves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Priority {
    /// Before everything else.
    Urgent = 0,
    /// Before the normal.
    High = 1,
    /// Most calls.
    #[default]
    Normal = 2,
    /// What can wait.
    Low = 3,
}

impl Priority {
    /// From the most urgent on, as they are numbered.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::High, Self::Normal, Self::Low];
}
