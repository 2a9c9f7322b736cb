//! Injects faults into the machines of a `Simulation` and the network between them, as often as its profile says.

use crate::checker::Violation;
use crate::disk;
use crate::options::MS;
use crate::simulation::Simulation;
use crate::system_under_test::SystemUnderTest;
use gapless_cluster::ClusterMember;
use gapless_cluster::consensus::MemberId;
use gapless_cluster::member::requests::AdminCommand;
use gapless_transport::Tier;

impl<A: SystemUnderTest> Simulation<'_, A> {
    pub(crate) fn inject_faults(&mut self) -> Result<(), Violation> {
        let profile = self.profile;
        let is_synced = profile.tier == Tier::QuorumSync;
        for at in 0..self.machines.len() {
            let number = self.machines[at].number;
            if profile.copy > 0 && self.machines[at].is_up() && self.random.happens_per_100_000(profile.copy) {
                self.roll_back_directory(at)?;
            }
            if self.machines[at].is_up() {
                if self.random.happens_per_100_000(profile.crash) {
                    self.tally.crashes += 1;
                    self.log(format_args!("member {number} is killed"));
                    self.take_down(at, 200 * MS);
                } else if self.random.happens_per_100_000(profile.power) && (is_synced || self.may_lose(at)) {
                    self.lose_power(at)?;
                } else if self.random.happens_per_100_000(profile.flip) {
                    self.flip(at)?;
                } else if self.random.happens_per_100_000(profile.disk) && self.may_lose(at) && self.have_all_met() {
                    self.tally.disks += 1;
                    self.log(format_args!("member {number} loses its disk"));
                    self.take_down(at, 400 * MS);
                    self.machines[at].replace_disk(&mut self.random)?;
                } else if self.random.happens_per_100_000(profile.kill) {
                    let sends = 1 + self.random.below(6);
                    self.network.lock().kill(number, sends);
                } else if self.random.happens_per_100_000(profile.pause) {
                    let pause_ns = self.random.below(400 * MS);
                    self.tally.pauses += 1;
                    self.log(format_args!("member {number} is paused for {} ms", pause_ns / MS));
                    self.machines[at].paused_until_ns = self.now_ns + pause_ns;
                }
            }
            if self.machines[at].disk.is_full() {
                if self.random.happens_per_100_000(400) {
                    self.log(format_args!("the disk of member {number} has room again"));
                    self.machines[at].disk.set_full(false);
                }
            } else if self.random.happens_per_100_000(profile.full) {
                self.log(format_args!("the disk of member {number} is full"));
                self.machines[at].disk.set_full(true);
            }
            if self.random.happens_per_100_000(profile.disk_error) {
                let (syncs, writes) = (1 + self.random.below(4), 1 + self.random.below(20));
                self.log(format_args!("the disk of member {number} will fail"));
                self.machines[at].disk.fail(syncs, writes);
            }
            if self.random.happens_per_100_000(profile.jump) {
                // Even draws: up to ten seconds; odd ones: up to an hour.
                let jump_ns = self.random.below(20_000 * MS) as i64 - 10_000 * MS as i64;
                let jump_ns = if jump_ns % 2 == 0 { jump_ns } else { 360 * jump_ns };
                self.tally.jumps += 1;
                self.log(format_args!("the clock of member {number} jumps by {} ms", jump_ns / MS as i64));
                self.machines[at].jump_clock(jump_ns);
            }
            if self.random.happens_per_100_000(profile.broken) {
                self.tally.broken += 1;
                self.log(format_args!("a connection of member {number} breaks"));
                self.network.lock().break_one(number);
            }
            if self.random.happens_per_100_000(profile.transfer) {
                self.transfer(at);
            }
        }
        if self.random.happens_per_100_000(profile.change) {
            self.begin_change()?;
        }
        if self.random.happens_per_100_000(profile.cut) {
            self.cut();
        }
        if self.random.happens_per_100_000(profile.slow_route) {
            self.slow_route();
        }
        for at in 0..self.workloads.len() {
            if self.random.happens_per_100_000(profile.publisher) {
                self.tally.publishers += 1;
                self.log(format_args!("publisher {} is started anew", at + 1));
                self.workloads[at].restart();
            }
        }
        Ok(())
    }

    /// A majority must keep everything acknowledged, so few may lose their data.
    fn may_lose(&self, at: usize) -> bool {
        let is_synced = self.profile.tier == Tier::QuorumSync;
        let lacks = |other: &usize| *other != at && self.machines[*other].may_lack_frames(is_synced);
        (0..self.machines.len()).filter(lacks).count() < (self.machines.len() - 1) / 2
    }

    /// A member that loses its disk before this was never in the cluster.
    fn have_all_met(&self) -> bool {
        self.machines.iter().all(|machine| machine.is_gone || machine.has_met_all())
    }

    fn lose_power(&mut self, at: usize) -> Result<(), Violation> {
        let number = self.machines[at].number;
        self.network.lock().set_powered_off(number, true);
        self.take_down(at, 400 * MS);
        let loss =
            disk::lose_power(&self.machines[at].journal(), &mut self.random).map_err(|error| error.to_string())?;
        self.tally.power_losses += 1;
        self.machines[at].has_lost_power = true;
        let (kept, unsynced) = (loss.kept_sequence, loss.unsynced_bytes);
        self.log(format_args!("member {number} loses power; synced to {kept}, {unsynced} bytes behind it at risk"));
        Ok(())
    }

    fn flip(&mut self, at: usize) -> Result<(), Violation> {
        if self.machines[at].running().is_some_and(ClusterMember::must_start_again) {
            // The journal is about to be replaced by a fetched one.
            return Ok(());
        }
        self.take_down(at, 200 * MS);
        let bit =
            disk::random_bit(&self.machines[at].journal(), &mut self.random).map_err(|error| error.to_string())?;
        let Some(bit) = bit else { return Ok(()) };
        bit.flip().map_err(|error| error.to_string())?;
        self.machines[at].flipped = Some(bit);
        self.tally.flips += 1;
        self.log(format_args!("member {} is killed, and a bit of its journal changes", at + 1));
        Ok(())
    }

    fn transfer(&mut self, at: usize) {
        let to = 1 + self.random.below(self.machines.len() as u64);
        let machine = &self.machines[at];
        if machine.leading_term().is_none() || to == machine.number {
            return;
        }
        if let (Some(member), Some(to)) = (machine.running(), MemberId::new(to)) {
            // The checks see the effects.
            let _ = member.shared().post(AdminCommand::Transfer(to));
            self.tally.transfers += 1;
            self.log(format_args!("member {} is asked to hand over to member {to}", machine.number));
        }
    }

    fn cut(&mut self) {
        let members = self.machines.len() as u64;
        let until_ns = self.now_ns + self.random.below(400 * MS);
        let is_one_way = self.random.happens_per_100_000(30_000);
        let group: Vec<bool> = (0..members).map(|_| self.random.happens_per_100_000(50_000)).collect();
        let mut state = self.network.lock();
        for from in 1..=members {
            for to in 1..=members {
                let is_between = group[from as usize - 1] != group[to as usize - 1];
                if is_between && (!is_one_way || group[from as usize - 1]) {
                    state.route_mut(from, to).cut_until_ns = until_ns;
                }
            }
        }
        drop(state);
        self.tally.cuts += 1;
        let how = if is_one_way { "one way" } else { "both ways" };
        self.log(format_args!("the network is cut {how} between {group:?} until {} ms", until_ns / MS));
    }

    fn slow_route(&mut self) {
        let members = self.machines.len() as u64;
        let (from, to) = (1 + self.random.below(members), 1 + self.random.below(members));
        let (delay_ns, bytes_per_ms) = match self.random.below(3) {
            0 => (0, 0),
            1 => (self.random.below(60 * MS), 0),
            _ => (0, 20 + self.random.below(400)),
        };
        let mut state = self.network.lock();
        let route = state.route_mut(from, to);
        (route.delay_ns, route.bytes_per_ms) = (delay_ns, bytes_per_ms);
        drop(state);
        self.log(format_args!("from {from} to {to}: {delay_ns} ns more, {bytes_per_ms} bytes a millisecond"));
    }
}
