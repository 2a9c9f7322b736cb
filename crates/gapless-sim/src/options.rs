//! [`Options`]: size and kind of a run; its events follow from the seed.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterShape {
    /// Members that run the service, 1 to 7.
    pub full: u64,
    /// Members that vote and run no service, 0 to 2; never more than the full members.
    pub witnesses: u64,
}

impl ClusterShape {
    #[must_use]
    pub const fn members(self) -> u64 {
        self.full + self.witnesses
    }
}

impl std::fmt::Display for ClusterShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.witnesses {
            0 => write!(f, "{}", self.full),
            1 => write!(f, "{}+witness", self.full),
            count => write!(f, "{}+{count}", self.full),
        }
    }
}

impl std::str::FromStr for ClusterShape {
    type Err = String;

    /// `3`, `2+witness` or `3+2`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no cluster; a number of members is expected, as in 3, 5 or 2+witness");
        let (full, witnesses) = text.split_once('+').unwrap_or((text, "0"));
        let witnesses = if witnesses == "witness" { Ok(1) } else { witnesses.parse() };
        let shape = Self { full: full.parse().map_err(|_| wrong())?, witnesses: witnesses.map_err(|_| wrong())? };
        let is_possible = (1..=7).contains(&shape.full) && shape.witnesses <= 2 && shape.witnesses <= shape.full;
        if is_possible { Ok(shape) } else { Err(wrong()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationKind {
    /// Nodes publish and read; the service folds the released frames.
    EventStream,
    /// Clients send commands and get replies; each member runs the handlers.
    Service,
    /// The leader alone runs the handlers; the others apply the changes.
    State,
    /// Aggregates decide on the leader, and are folded from their events.
    Commands,
}

impl ApplicationKind {
    const ALL: [Self; 4] = [Self::EventStream, Self::Service, Self::State, Self::Commands];
}

impl std::fmt::Display for ApplicationKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::EventStream => "event-stream",
            Self::Service => "service",
            Self::State => "state",
            Self::Commands => "commands",
        })
    }
}

impl std::str::FromStr for ApplicationKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|offer| offer.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is no offer; event-stream, service, state or commands is expected"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `None` leaves them to the seed: 3, 2 and a witness, or 5.
    pub shape: Option<ClusterShape>,
    /// Messages of each publisher.
    pub messages: u64,
    /// Virtual time.
    pub faults_ms: u64,
    /// Limit for every message to arrive everywhere after the last fault, virtual time.
    pub calm_ms: u64,
    /// Frames between two comparisons of states; 1 finds the exact frame.
    pub compare_interval: u64,
    /// Some runs put older copies of directories back or exchange them. Then the only check is that no member silently
    /// continues a different history.
    pub puts_copies_back: bool,
    /// One line per event on standard output, with virtual time.
    pub prints_trace: bool,
    /// Repetition in a second process, at another time of day.
    pub second_pass: SecondPass,
}

/// State that members of one process share differs in a second process, which exposes a handler that depends on more
/// than its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecondPass {
    /// Starts this executable again, with the test's name on the thread of a test, or with this process's arguments on
    /// the main thread; it repeats everything up to the call. On other threads [`simulate`](crate::simulate) returns an
    /// error.
    #[default]
    Again,
    /// Starts this executable with these arguments, which must lead to a call with the same seed.
    With(Vec<std::ffi::OsString>),
    /// Misses a handler that reads the clock in whole minutes, a static or its process identifier.
    Off,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shape: None,
            messages: 60,
            faults_ms: 1_500,
            calm_ms: 20_000,
            compare_interval: 1,
            puts_copies_back: false,
            prints_trace: false,
            second_pass: SecondPass::Again,
        }
    }
}

pub(crate) const MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_round_trips_through_text() {
        for (text, full, witnesses) in [("3", 3, 0), ("2+witness", 2, 1), ("3+2", 3, 2)] {
            assert_eq!(text.parse(), Ok(ClusterShape { full, witnesses }));
            assert_eq!(ClusterShape { full, witnesses }.to_string(), text);
        }
        for wrong in ["", "0", "8", "1+2", "3+", "+witness", "2+witnesses", "3+3"] {
            assert!(wrong.parse::<ClusterShape>().is_err(), "{wrong:?}");
        }
    }
}
