//! Finding, choosing and deposing the leader of a [`Cluster`].

use super::{Cluster, PATIENCE};
use std::time::{Duration, Instant};

/// Attempts of a scenario that may miss its moment on a busy machine.
pub const ATTEMPTS_MAX: u32 = 5;

/// Former leader and its last term, and the member that the others have elected.
pub struct Deposed {
    pub leader: usize,
    pub term: u64,
    pub next: usize,
}

impl Cluster {
    /// Term in which it leads.
    pub fn leading_term(&self, member: usize) -> Option<u64> {
        self.status(member).filter(|status| status.role == "leader").map(|status| status.term)
    }

    pub fn leader_of(&self, among: &[usize]) -> Option<usize> {
        let leads = |member: &usize| self.leading_term(*member).is_some();
        among.iter().copied().filter(|member| self.is_running(*member)).find(leads)
    }

    #[track_caller]
    pub fn leader_among(&mut self, among: &[usize]) -> usize {
        self.wait("a leader", |cluster| cluster.leader_of(among))
    }

    #[track_caller]
    pub fn leader(&mut self) -> usize {
        let all: Vec<usize> = self.all().collect();
        self.leader_among(&all)
    }

    #[track_caller]
    fn leader_and_term(&mut self, among: &[usize]) -> (usize, u64) {
        self.wait("a leader", |cluster| {
            let leader = cluster.leader_of(among)?;
            Some((leader, cluster.leading_term(leader)?))
        })
    }

    /// Begins a fault of a full leader, at which the others elect another one. If it did not lead any more, the fault
    /// ends, and begins at the present leader.
    #[track_caller]
    pub fn depose(&mut self, fault: impl Fn(&Self, usize, bool)) -> Deposed {
        let full = self.full();
        for _ in 0..ATTEMPTS_MAX {
            let (leader, term) = self.leader_and_term(&full);
            fault(self, leader, true);
            let (next, next_term) = self.leader_and_term(&self.others(leader));
            if next_term > term {
                return Deposed { leader, term, next };
            }
            println!("member {leader} did not lead any more in term {next_term}");
            fault(self, leader, false);
        }
        panic!("the leader was deposed before each of {ATTEMPTS_MAX} attempts");
    }

    /// Runs a fault that must not cost the leader its lead. On a busy machine a healthy leader may be deposed, too: then
    /// the fault is repeated.
    #[track_caller]
    pub fn keeps_leader<T>(&mut self, what: &str, mut fault: impl FnMut(&mut Self, usize) -> T) -> T {
        // Few, because they could hide a fault that deposes only at times.
        const REPEATS_MAX: u32 = 3;
        let full = self.full();
        for _ in 0..REPEATS_MAX {
            let (leader, term) = self.leader_and_term(&full);
            let found = fault(self, leader);
            if self.leading_term(leader) == Some(term) {
                return found;
            }
            println!("member {leader} leads no more in term {term}");
            for member in self.all() {
                self.caught_up(member);
            }
        }
        panic!("{what} deposed the leader in each of {REPEATS_MAX} attempts");
    }

    #[track_caller]
    pub fn make_leader(&mut self, member: usize) -> bool {
        let mut next_ask = Instant::now();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.has_died(member) {
                return false;
            }
            let all: Vec<usize> = self.all().collect();
            match self.leader_of(&all) {
                Some(leader) if leader == member => return true,
                Some(leader) if Instant::now() >= next_ask => {
                    self.transfer(leader, member);
                    next_ask = Instant::now() + Duration::from_millis(300);
                }
                _ => {}
            }
            assert!(Instant::now() < deadline, "member {member} does not become leader:\n{}", self.log(member));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
