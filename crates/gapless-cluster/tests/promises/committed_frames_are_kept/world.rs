use super::checker::Checker;
use super::node::{MS, Node, Packet};
use gapless_cluster::consensus::{ChangeStep, MemberId, Members, MembershipChange};
use gapless_testkit::random::Random;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

const MEMBERS: u64 = 6;
const CHAOS_MS: u64 = 700;
const HEALED_MS: u64 = 4_000;

/// In thousandths; another mixture for each seed.
struct FaultProfile {
    loss: u64,
    double: u64,
    delay_ns_max: u64,
    lapped_or_damaged: u64,
    crash: u64,
    power: u64,
    pause: u64,
    change: u64,
    transfer: u64,
    proposal: u64,
}

#[derive(Default, Debug)]
pub struct EventCounts {
    pub released: u64,
    pub crashes: u64,
    pub power_losses: u64,
    pub cuts: u64,
    pub restored: u64,
    pub changes: u64,
    pub transfers: u64,
    pub refused: u64,
    pub early: u64,
}

pub fn has_mutant() -> bool {
    std::env::var_os("GAPLESS_MUTANT").is_some()
}

pub struct SimulatedCluster {
    random: Random,
    now_ns: u64,
    nodes: Vec<Node>,
    checker: Checker,
    profile: FaultProfile,
    voters: u64,
    /// By arrival; the second number keeps equal times apart.
    network: BTreeMap<(u64, u64), Packet>,
    packets: u64,
    severed: HashMap<(u64, u64), u64>,
    out: Vec<Packet>,
    tally: EventCounts,
}

impl SimulatedCluster {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = random.pick(&[1, 2, 3, 3, 3, 4, 5]);
        let voters: Vec<_> = (1..=count).filter_map(MemberId::new).collect();
        let mut members = Members::of_voters(&voters);
        if count >= 3 && random.happens(500) {
            members.witnesses = vec![voters[count as usize - 1]];
        }
        let entries_kept_max = random.pick(&[2, 8, 64]);
        let node = |number| {
            let known = if number <= count { members.clone() } else { Members::default() };
            Node::new(number, known, seed, entries_kept_max)
        };
        let mut nodes: Vec<_> = (1..=MEMBERS).map(node).collect();
        for node in &mut nodes {
            node.write_ns_max = random.pick(&[0, 0, MS, 6 * MS]);
        }
        let mut dice = Random::new(!seed);
        let mut early = Random::new(seed ^ 0x5a5a);
        nodes.iter_mut().for_each(|node| node.is_early = !has_mutant() && early.happens(500));
        let may_lose = count >= 3 && dice.happens(400);
        let profile = FaultProfile {
            power: if may_lose { dice.pick(&[4, 12]) } else { 0 },
            loss: random.pick(&[0, 0, 20, 150]),
            double: random.pick(&[0, 20, 150]),
            delay_ns_max: random.pick(&[0, MS, 8 * MS]),
            lapped_or_damaged: random.pick(&[0, 2, 8]),
            crash: random.pick(&[0, 2, 8]),
            pause: random.pick(&[0, 2]),
            change: random.pick(&[0, 0, 10, 30]) * u64::from(!may_lose),
            transfer: random.pick(&[0, 5]),
            proposal: random.pick(&[100, 500]),
        };
        Self {
            random,
            now_ns: 0,
            nodes,
            checker: Checker::default(),
            profile,
            voters: count,
            network: BTreeMap::new(),
            packets: 0,
            severed: HashMap::new(),
            out: Vec::new(),
            tally: EventCounts::default(),
        }
    }

    pub fn run(mut self) -> EventCounts {
        for node in &mut self.nodes {
            node.start(&mut self.checker);
        }
        for _ in 0..CHAOS_MS {
            self.inject_faults();
            self.requests();
            self.step();
        }
        self.heal();
        let released = self.checker.released_end();
        let deadline_ns = self.now_ns + HEALED_MS * MS;
        let mut target = None;
        while !target.is_some_and(|(target, leader)| self.all_have(target, leader)) {
            assert!(self.now_ns < deadline_ns, "healed, and no progress: {}", self.describe());
            self.step();
            let leader = (0..self.nodes.len()).find(|at| self.is_sound_leader(*at));
            if target.is_none_or(|(_, known)| leader.is_some_and(|at| at != known))
                && let Some(at) = leader
                && self.nodes[at].propose(3, &mut self.random)
            {
                target = Some((self.nodes[at].disk.last_sequence(), at));
            }
        }
        self.tally.released = self.checker.released_end();
        assert!(self.tally.released >= released + 3, "new batches are released");
        for node in &self.nodes {
            self.tally.cuts += node.cuts;
            self.tally.restored += node.restored;
            self.tally.refused += node.refused;
            self.tally.early += node.early;
        }
        self.tally
    }

    fn step(&mut self) {
        self.now_ns += MS;
        while let Some(entry) = self.network.first_entry().filter(|entry| entry.key().0 <= self.now_ns) {
            let packet = entry.remove();
            let at = packet.to as usize - 1;
            if self.nodes[at].is_up(self.now_ns) {
                self.nodes[at].receive(&packet, self.now_ns, &mut self.random, &mut self.checker, &mut self.out);
                self.post();
            } else if self.nodes[at].core.is_some() {
                self.packets += 1;
                self.network.insert((self.nodes[at].paused_until_ns, self.packets), packet);
            }
        }
        for at in 0..self.nodes.len() {
            if self.nodes[at].is_up(self.now_ns) {
                self.nodes[at].turn(self.now_ns, &mut self.random, &mut self.checker, &mut self.out);
                self.fetch(at);
                self.post();
            }
        }
    }

    fn post(&mut self) {
        let sent = std::mem::take(&mut self.out);
        for packet in &sent {
            let is_severed = self.severed.get(&(packet.from, packet.to)).is_some_and(|until| *until > self.now_ns);
            let is_known = (1..=MEMBERS).contains(&packet.to);
            if is_severed || !is_known || self.random.happens(self.profile.loss) {
                continue;
            }
            let copies = if self.random.happens(self.profile.double) { 2 } else { 1 };
            for _ in 0..copies {
                self.packets += 1;
                let arrival = self.now_ns + self.random.below(self.profile.delay_ns_max + 1);
                self.network.insert((arrival, self.packets), packet.clone());
            }
        }
        self.out = sent;
        self.out.clear();
    }

    fn fetch(&mut self, at: usize) {
        let Some((due_ns, fetch)) = &self.nodes[at].fetch else { return };
        let (position, behind) = (fetch.position, fetch.base);
        if *due_ns > self.now_ns {
            return;
        }
        let source = self.nodes.iter().find(|node| {
            node.is_up(self.now_ns)
                && node.id != self.nodes[at].id
                && node.disk.chain(position.sequence) == Some(position.hash)
        });
        let Some(source) = source else { return };
        let frame = |sequence| source.disk.frame(sequence).expect("the source has the frame").clone();
        let frames: Vec<Rc<[u8]>> = (behind.sequence + 1..=position.sequence).map(frame).collect();
        self.nodes[at].fetched(&frames, self.now_ns, &mut self.random, &mut self.checker, &mut self.out);
    }

    fn inject_faults(&mut self) {
        for at in 0..self.nodes.len() {
            let is_down = self.nodes[at].core.is_none();
            if is_down && self.random.happens(60) {
                self.nodes[at].start(&mut self.checker);
                let came = self.nodes[at].id;
                self.nodes.iter_mut().filter_map(|node| node.core.as_mut()).for_each(|core| core.peer_connected(came));
            } else if !is_down && (self.loses_power(at) || self.random.happens(self.profile.crash)) {
                if self.nodes[at].core.is_some() {
                    self.nodes[at].crash(&mut self.random);
                    self.tally.crashes += 1;
                }
                for other in 0..self.nodes.len() {
                    let gone = self.nodes[at].id;
                    if self.random.happens(500)
                        && let Some(core) = &mut self.nodes[other].core
                    {
                        core.peer_disconnected(gone);
                    }
                }
            }
            if self.random.happens(self.profile.pause) {
                self.nodes[at].paused_until_ns = self.now_ns + self.random.below(80 * MS);
            }
        }
        if self.random.happens(self.profile.lapped_or_damaged) {
            let until = self.now_ns + self.random.below(150 * MS);
            let group: Vec<bool> = (0..=MEMBERS).map(|_| self.random.happens(500)).collect();
            let is_one_way = self.random.happens(300);
            for from in 1..=MEMBERS {
                for to in 1..=MEMBERS {
                    let is_between = group[from as usize] != group[to as usize];
                    if is_between && (!is_one_way || group[from as usize]) {
                        self.severed.insert((from, to), until);
                    }
                }
            }
        }
    }

    /// Never if a majority of the voters could then lack entries.
    fn loses_power(&mut self, at: usize) -> bool {
        if self.profile.power == 0 || !self.random.happens(self.profile.power) {
            return false;
        }
        let voters = self.voters as usize;
        let lacking = (0..voters).filter(|other| *other != at && self.nodes[*other].may_lack_something()).count();
        let may_lose = at < voters && lacking < (voters - 1) / 2;
        if may_lose {
            self.nodes[at].lose_power(&mut self.random);
            self.tally.power_losses += 1;
        }
        may_lose
    }

    fn requests(&mut self) {
        for at in 0..self.nodes.len() {
            if !self.nodes[at].is_up(self.now_ns) {
                continue;
            }
            if self.nodes[at].leads() {
                if self.random.happens(self.profile.proposal) {
                    let count = 1 + self.random.below(4);
                    self.nodes[at].propose(count, &mut self.random);
                }
                if self.random.happens(self.profile.change) {
                    self.change(at);
                }
                if self.random.happens(self.profile.transfer) {
                    let core = self.nodes[at].core.as_mut().unwrap();
                    let voters = core.members().voters.clone();
                    self.tally.transfers += u64::from(core.transfer_to(self.random.pick(&voters)).is_ok());
                }
            }
            // Draws of a former request: without them the seeds would mean other runs.
            if self.random.happens(20) {
                let _ = self.random.number();
            }
        }
    }

    fn change(&mut self, at: usize) {
        let any = MemberId::new(1 + self.random.below(MEMBERS)).unwrap();
        let core = self.nodes[at].core.as_mut().unwrap();
        let voters = core.members().voters.clone();
        let one = self.random.pick(&voters);
        let change = match self.random.below(5) {
            0 => MembershipChange::of(ChangeStep::Voter(any)),
            1 => MembershipChange::of(ChangeStep::Learner(any)),
            2 if voters.len() > 2 => MembershipChange::of(ChangeStep::Remove(one)),
            3 if !voters.contains(&any) => MembershipChange::replace(one, any),
            _ => MembershipChange::default(),
        };
        self.tally.changes += u64::from(core.propose_members(&change).is_ok());
    }

    fn heal(&mut self) {
        self.severed.clear();
        self.profile = FaultProfile {
            loss: 0,
            double: 0,
            crash: 0,
            power: 0,
            lapped_or_damaged: 0,
            pause: 0,
            change: 0,
            ..self.profile
        };
        for node in &mut self.nodes {
            node.paused_until_ns = 0;
            node.crash_in_cut = 0;
            if node.core.is_none() {
                node.start(&mut self.checker);
            }
        }
    }

    fn is_sound_leader(&self, at: usize) -> bool {
        let term = |node: &Node| node.core.as_ref().map_or(0, |core| core.term());
        self.nodes[at].leads() && self.nodes.iter().all(|node| !node.leads() || term(node) <= term(&self.nodes[at]))
    }

    fn all_have(&self, sequence: u64, leader: usize) -> bool {
        let Some(core) = &self.nodes[leader].core else { return false };
        core.members().all().iter().all(|member| self.checker.released_by(member.get()) >= sequence)
    }

    fn describe(&self) -> String {
        let state = |node: &Node| match &node.core {
            Some(core) => format!(
                "\n{}: {:?} released {} fetch {:?} members {:?}",
                node.id,
                core.status(),
                self.checker.released_by(node.id.get()),
                node.fetch,
                core.members()
            ),
            None => format!("\n{}: down", node.id),
        };
        self.nodes.iter().map(state).collect()
    }
}
