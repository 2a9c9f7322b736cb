//! `CommandMember`: a command bus on a member of a cluster.

use crate::bus::{BusOptions, CommandBus};
use crate::event_filter::EventFilter;
use crate::events::EventReader;
use crate::found_events::FoundEvents;
use crate::host::{AggregateOptions, BusParts, BusReader, CommandCounters, HostError, bus_parts};
use crate::identity::Position;
use crate::model::CommandModel;
use gapless_agent::Now;
use gapless_agent::progress::ProgressCounter;
use gapless_client::polled::ClientOptions;
use gapless_cluster::config::ClusterConfig;
use gapless_engine::Replica;
use std::sync::Arc;

/// Command bus on a cluster's member. The leader answers once a quorum has the events; a deposed one forgets aggregates
/// whose last events may be lost.
pub struct CommandMember {
    replica: Replica,
    bus_reader: BusReader,
}

impl CommandMember {
    /// Recovers the member's directory, and starts. All members must have the same model and options.
    ///
    /// # Errors
    /// An invalid model; senseless options (snapshots would let events be deleted that the writer needs); a directory
    /// in use; damage; no threads; no port.
    pub fn start(model: CommandModel, options: AggregateOptions, config: &ClusterConfig) -> Result<Self, HostError> {
        let BusParts { released, make_writer, bus_reader } = bus_parts(model, options)?;
        Ok(Self { replica: Replica::start_transactions(released, make_writer, config)?, bus_reader })
    }

    /// [`CommandMember::start`] without threads: [`CommandMember::turn`] does all work, for instance if member and
    /// clients share a core.
    ///
    /// # Errors
    /// The same as for [`CommandMember::start`].
    pub fn start_by_hand(
        model: CommandModel,
        options: AggregateOptions,
        config: &ClusterConfig,
    ) -> Result<Self, HostError> {
        let BusParts { released, make_writer, bus_reader } = bus_parts(model, options)?;
        Ok(Self { replica: Replica::start_transactions_by_hand(released, make_writer, config)?, bus_reader })
    }

    /// Polls every agent once, without threads; returns the work done.
    ///
    /// # Errors
    /// A fatal error of an agent.
    pub fn turn(&mut self, now: Now) -> Result<usize, HostError> {
        Ok(self.replica.turn(now)?)
    }

    /// A handle, valid while this member leads. Without threads, a waiting caller has to call `turn`.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn bus(&self, options: &BusOptions) -> Result<CommandBus, HostError> {
        Ok(CommandBus::over(self.replica.connect(ClientOptions::default())?, options)?)
    }

    /// All events released here, from a position on.
    #[must_use]
    pub fn events(&self, from: Position) -> EventReader {
        self.bus_reader.events(self.replica.member().stream().reader(from.sequence), from, self.progress())
    }

    /// Like [`CommandHost::found_events`](crate::CommandHost::found_events), if released here.
    #[must_use]
    pub fn found_events(&self, filter: EventFilter, from: Position) -> FoundEvents {
        self.bus_reader.found_events(filter, from, self.replica.member().stream().reader(1), self.progress())
    }

    fn progress(&self) -> Arc<ProgressCounter> {
        self.replica.progress().expect("a member with a bus has a service")
    }

    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Counters of commands decided as leader.
    #[must_use]
    pub fn counters(&self) -> CommandCounters {
        self.bus_reader.counters()
    }

    /// Stops, as leader after handing over; returns the last sequence released here.
    ///
    /// # Errors
    /// The error that made it stop by itself.
    pub fn stop(self) -> Result<u64, HostError> {
        Ok(self.replica.stop()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::EventDirectory;
    use crate::host::version_tests::{
        LampCommand, SecondLamp, check_every_outcome, lamp, model_that_quarantines, write_unreadable_events,
    };
    use crate::samples::{Account, AccountCommand, AccountRefusal, Transfer, TransferHandler};
    use crate::{
        AcceptedCommand, Aggregate, BusError, CommandError, CommandHandler, CommandHost, HandlerInterceptor,
        InterceptedCommand, PendingOutcome, RetryPolicy,
    };
    use gapless_client::PolledClient;
    use gapless_client::stream_layout::StreamLayout;
    use gapless_cluster::consensus::{MemberId, MemberRole};
    use gapless_cluster::member::requests::{AdminCommand, AdminOutcome};
    use gapless_engine::ServiceHostOptions;
    use gapless_testkit::ports::free_ports;
    use gapless_testkit::random::{Random, printed_seed, rounds};
    use gapless_testkit::wait;
    use std::collections::VecDeque;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    struct GuardInterceptor;

    impl HandlerInterceptor for GuardInterceptor {
        fn before(&mut self, command: &InterceptedCommand<'_>) -> Result<(), String> {
            match command.decode() {
                Ok(Some(AccountCommand::Withdraw(1_000_000))) => Err("a million stays".to_owned()),
                _ => Ok(()),
            }
        }
    }

    struct Cluster {
        root: tempfile::TempDir,
        options: AggregateOptions,
        members: Vec<Option<CommandMember>>,
        model: fn() -> CommandModel,
    }

    impl Cluster {
        fn start(model: fn() -> CommandModel) -> Self {
            Self::start_with(model, AggregateOptions::default())
        }

        fn start_with(model: fn() -> CommandModel, options: AggregateOptions) -> Self {
            let root = tempfile::tempdir().unwrap();
            let members: String = (1..)
                .zip(free_ports(3))
                .map(|(id, port)| format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{port}\"]\n"))
                .collect();
            for member in 1..=3 {
                let directory = root.path().join(format!("member-{member}"));
                let text = format!(
                    "[cluster]\nname = \"bank\"\nmember = {member}\n{members}[stream]\ndirectory = \"{}\"\n\
                     window = \"8 MiB\"\n[journal]\nsegment_length = \"2 MiB\"\n",
                    directory.display()
                );
                std::fs::write(root.path().join(format!("{member}.toml")), text).unwrap();
            }
            let mut cluster = Self { root, options, members: (0..3).map(|_| None).collect(), model };
            (0..3).for_each(|member| cluster.start_member(member));
            cluster
        }

        fn start_member(&mut self, member: usize) {
            let file = self.root.path().join(format!("{}.toml", member + 1));
            let config = ClusterConfig::load(file).unwrap();
            self.members[member] = Some(CommandMember::start((self.model)(), self.options.clone(), &config).unwrap());
        }

        fn leader(&self) -> usize {
            wait::until_some("a leader", || {
                let leads = |member: &Option<CommandMember>| {
                    let status = member.as_ref()?.replica().member().status()?;
                    Some(status.consensus.role == MemberRole::Leader)
                };
                self.members.iter().position(|member| leads(member) == Some(true))
            })
        }

        fn bus(&self) -> CommandBus {
            self.bus_with(&BusOptions::default())
        }

        fn bus_with(&self, options: &BusOptions) -> CommandBus {
            let sockets =
                self.sockets().iter().map(|socket| socket.display().to_string()).collect::<Vec<_>>().join(",");
            CommandBus::connect(&sockets, options).unwrap()
        }

        fn stop(&mut self) {
            self.members.iter_mut().for_each(|member| _ = member.take().unwrap().stop().unwrap());
        }

        fn begin_version(&self, version: u32) {
            wait::until("the members have said that they have the version", || {
                let member = self.members[self.leader()].as_ref().unwrap().replica().member();
                matches!(member.ask(AdminCommand::Upgrade(version), Duration::from_secs(10)), Some(AdminOutcome::Begun))
            });
        }

        fn sockets(&self) -> Vec<PathBuf> {
            let socket = |member| StreamLayout::new(self.root.path().join(format!("member-{member}"))).socket();
            (1..=3).map(socket).collect()
        }
    }

    #[test]
    fn new_leader_has_accepted_commands() {
        let model =
            || CommandModel::new().aggregate::<Account>().handler(TransferHandler).interceptor(GuardInterceptor);
        let mut cluster = Cluster::start(model);
        let bus = cluster.bus();
        bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        bus.call(Account::command(&2, &AccountCommand::Open)).unwrap();
        bus.call(Account::command(&1, &AccountCommand::Deposit(100))).unwrap();
        let paid = || Account::command(&2, &AccountCommand::Deposit(5));
        let first = bus.call(paid().identified_by(7)).unwrap();
        let mut left = 100;
        for _ in 0..4 {
            let leader = cluster.leader();
            let transferred = bus.call(TransferHandler::command(&Transfer { from: 1, to: 2, amount: 10 })).unwrap();
            left -= 10;
            assert_eq!(transferred.reply.left, left);
            cluster.members[leader].take().unwrap().stop().unwrap();
            let again: AcceptedCommand = bus.call(paid().identified_by(7)).unwrap();
            assert_eq!(again, first);
            let refused = bus.call(Account::command(&1, &AccountCommand::Withdraw(1000)));
            assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: left })));
            let intercepted = bus.call(Account::command(&1, &AccountCommand::Withdraw(1_000_000)).identified_by(8));
            assert_eq!(intercepted, Err(CommandError::Intercepted("a million stays".to_owned())));
            cluster.start_member(leader);
        }
        for (member, number) in cluster.members.iter().zip(1..) {
            let mut reader = member.as_ref().unwrap().events(Position::default());
            let transactions = || {
                let outside = EventDirectory::open(&cluster.root.path().join(format!("member-{number}"))).unwrap();
                outside.statistics().unwrap().transactions
            };
            let mut expected = 0;
            wait::until("all of it is released there", || {
                while reader.next_transaction().unwrap().is_some() {
                    expected += 1;
                }
                expected > 0 && transactions() == expected
            });
        }
        cluster.members.into_iter().flatten().for_each(|member| _ = member.stop().unwrap());
    }

    /// Thousands in flight in dozens of sessions, while `lose` disconnects the bus.
    fn keeps_order(bus: &CommandBus, mut lose: impl FnMut()) {
        let ids = [1, 2, 3];
        ids.iter().for_each(|id| assert_eq!(bus.call(Account::command(id, &AccountCommand::Open)).unwrap().version, 1));
        let mut last = [1; 3];
        for _ in 0..4 {
            let is_over = AtomicBool::new(false);
            let send = || {
                let (mut pending, mut versions) = (VecDeque::new(), [const { Vec::new() }; 3]);
                let mut take = |pending: &mut VecDeque<_>| {
                    let Some((place, sent)): Option<(usize, PendingOutcome<(), AccountRefusal>)> = pending.pop_front()
                    else {
                        return false;
                    };
                    versions[place].push(sent.wait().unwrap().version);
                    true
                };
                while !is_over.load(Ordering::Relaxed) {
                    for (place, id) in ids.iter().enumerate() {
                        pending.push_back((place, bus.send(Account::command(id, &AccountCommand::Deposit(1)))));
                    }
                    while pending.len() > 3000 && take(&mut pending) {}
                }
                while take(&mut pending) {}
                versions
            };
            let versions = std::thread::scope(|scope| {
                let sender = scope.spawn(send);
                wait::until("many are in flight", || bus.sessions() > 4);
                lose();
                is_over.store(true, Ordering::Relaxed);
                sender.join().unwrap()
            });
            for (last, versions) in last.iter_mut().zip(versions) {
                for version in versions {
                    assert_eq!(version, *last + 1);
                    *last = version;
                }
            }
        }
    }

    #[test]
    fn order_holds_across_lost_leaders() {
        let mut cluster = Cluster::start(|| CommandModel::new().aggregate::<Account>());
        keeps_order(&cluster.bus(), || {
            let leader = cluster.leader();
            cluster.members[leader].take().unwrap().stop().unwrap();
            cluster.start_member(leader);
            cluster.bus().call(Account::command(&4, &AccountCommand::Note)).unwrap_err();
        });
        cluster.members.into_iter().flatten().for_each(|member| _ = member.stop().unwrap());
    }

    #[test]
    fn order_holds_across_host_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            let (model, stream) =
                (CommandModel::new().aggregate::<Account>(), ServiceHostOptions::in_directory(directory.path()));
            Some(CommandHost::start(model, AggregateOptions::default(), stream).unwrap())
        };
        let mut host = start();
        let socket = StreamLayout::new(directory.path()).node_socket();
        let bus = CommandBus::connect(socket.to_str().unwrap(), &BusOptions::default()).unwrap();
        keeps_order(&bus, || {
            host.take().unwrap().stop().unwrap();
            host = start();
        });
        host.unwrap().stop().unwrap();
    }

    #[test]
    fn lost_host_does_not_block_try_wait() {
        let directory = tempfile::tempdir().unwrap();
        let (model, stream) =
            (CommandModel::new().aggregate::<Account>(), ServiceHostOptions::in_directory(directory.path()));
        let host = CommandHost::start(model, AggregateOptions::default(), stream).unwrap();
        let sockets = [StreamLayout::new(directory.path()).node_socket()];
        let options = ClientOptions { timeout: Duration::from_millis(500), ..ClientOptions::default() };
        let bus =
            CommandBus::over(PolledClient::connect_any(&sockets, options).unwrap(), &BusOptions::default()).unwrap();
        bus.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        host.stop().unwrap();
        let send = || bus.try_send(&Account::command(&1, &AccountCommand::Deposit(1)));
        let mut pending = send().unwrap();
        let short = send().unwrap().wait_within(Duration::from_millis(1));
        assert_eq!(short, Err(CommandError::Bus(BusError::TimedOut)));
        let mut looks = 0;
        let outcome = loop {
            match pending.try_wait() {
                Ok(outcome) => break outcome,
                Err(left) => pending = left,
            }
            looks += 1;
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(outcome, Err(CommandError::Bus(BusError::Disconnected)));
        assert!(looks > 10, "{looks}");
    }

    #[test]
    fn retry_survives_cluster_restart() {
        let mut cluster = Cluster::start(|| CommandModel::new().aggregate::<Account>());
        let options = ClientOptions { timeout: Duration::from_millis(200), ..ClientOptions::default() };
        let client =
            wait::until_some("a leader", || PolledClient::connect_any(&cluster.sockets(), options.clone()).ok());
        let bus = CommandBus::over(client, &BusOptions::default()).unwrap();
        let retry =
            RetryPolicy { attempts_max: 10_000, delay_max: Duration::from_millis(50), ..RetryPolicy::default() };
        let retrying = bus.clone().with_retry(retry);
        retrying.call(Account::command(&1, &AccountCommand::Open)).unwrap();
        cluster.stop();
        let deposit = AccountCommand::Deposit(5);
        wait::until("a handle alone gives up", || {
            bus.call(Account::command(&1, &deposit)) == Err(CommandError::Bus(BusError::Disconnected))
        });
        let pending = retrying.send(Account::command(&1, &deposit));
        (0..3).for_each(|member| cluster.start_member(member));
        let version = pending.wait().unwrap().version;
        // An attempt that was given up may have had its effect; the last one has it once.
        assert!(version >= 2);
        assert_eq!(bus.call(Account::command(&1, &deposit)).unwrap().version, version + 1);
        cluster.members.into_iter().flatten().for_each(|member| _ = member.stop().unwrap());
    }

    #[test]
    fn next_leader_keeps_event_version() {
        let model = || CommandModel::new().aggregate::<SecondLamp>().versions(1..=2);
        let mut cluster = Cluster::start(model);
        let bus = cluster.bus();
        bus.call(lamp(1, &LampCommand::Switch(true))).unwrap();
        let failed = bus.call(lamp(1, &LampCommand::Dim(30)));
        assert!(matches!(failed, Err(CommandError::Failed(_))), "{failed:?}");
        cluster.begin_version(2);
        let dims = |percent| bus.call(lamp(1, &LampCommand::Dim(percent)));
        wait::until("the new version has begun", || dims(30).is_ok());
        for percent in 0..3 {
            let leader = cluster.leader();
            cluster.members[leader].take().unwrap().stop().unwrap();
            assert_eq!(dims(percent).unwrap().version, 3 + u64::from(percent));
            cluster.start_member(leader);
        }
        cluster.members.into_iter().flatten().for_each(|member| _ = member.stop().unwrap());
    }

    #[test]
    fn quarantine_blocks_no_member() {
        let seed = printed_seed();
        let mut cluster = Cluster::start(|| CommandModel::new().aggregate::<SecondLamp>().versions(1..=2));
        write_unreadable_events(&cluster.bus(), || cluster.begin_version(2));
        cluster.model = model_that_quarantines;
        for (aggregates_max, in_flight_max, handles) in [(2, 128, 2), (8, 512, 3)] {
            cluster.stop();
            cluster.options.aggregates_max = aggregates_max;
            (0..3).for_each(|member| cluster.start_member(member));
            let leader = cluster.leader();
            let case = format!("{aggregates_max} in memory, {in_flight_max} in flight, {handles} handles");
            std::thread::scope(|scope| {
                for handle in 0..handles {
                    let (bus, case) = (cluster.bus_with(&BusOptions { in_flight_max }), &case);
                    let random = Random::of(seed, &format!("{case}, {handle}"));
                    scope
                        .spawn(move || check_every_outcome(&bus, (rounds(20_000, 1_000), in_flight_max), random, case));
                }
                let decided = || cluster.members[leader].as_ref().unwrap().counters().quarantined;
                wait::until("some were set apart", || decided() > 0);
                cluster.transfer((leader + 1) % 3);
            });
        }
        cluster.stop();
    }

    impl Cluster {
        fn transfer(&self, to: usize) {
            let leader = self.members[self.leader()].as_ref().unwrap().replica().member();
            leader.shared().post(AdminCommand::Transfer(MemberId::new(to as u64 + 1).unwrap())).unwrap();
        }

        /// Returns the longest time without an answer.
        fn hand_over(&self, bus: &CommandBus, to: usize) -> Duration {
            let (begun, mut silence) = (Instant::now(), Duration::ZERO);
            self.transfer(to);
            loop {
                let asked = Instant::now();
                bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap();
                silence = silence.max(asked.elapsed());
                if self.leader() == to {
                    let asked = Instant::now();
                    bus.call(Account::command(&1, &AccountCommand::Deposit(1))).unwrap();
                    return silence.max(asked.elapsed());
                }
                assert!(begun.elapsed() < wait::PATIENCE, "member {to} has not become the leader");
            }
        }
    }

    #[test]
    #[ignore = "a measurement that takes minutes: cargo test --release -p gapless-cqrs --lib -- --ignored --nocapture deposed"]
    fn large_cache_fails_over_in_200_ms() {
        let variable = std::env::var("GAPLESS_AGGREGATES").ok();
        let aggregates: u64 = variable.map_or(5_000_000, |count| count.parse().unwrap());
        for aggregates_max in [10_000, usize::MAX] {
            let model = || CommandModel::new().aggregate::<Account>();
            let options = AggregateOptions { aggregates_max, ..AggregateOptions::default() };
            let cluster = Cluster::start_with(model, options);
            let bus = cluster.bus();
            let home = cluster.leader();
            let mut pending = VecDeque::new();
            for id in 0..aggregates {
                pending.push_back(bus.send(Account::command(&id, &AccountCommand::Open)));
                if pending.len() == 4000 {
                    pending.pop_front().unwrap().wait().unwrap();
                }
            }
            pending.drain(..).for_each(|opened| _ = opened.wait().unwrap());
            assert_eq!(cluster.leader(), home, "the home member still leads");
            let mut silences = Vec::new();
            for round in 0..5 {
                let deposits = (0..500).map(|id| bus.send(Account::command(&id, &AccountCommand::Deposit(round + 1))));
                deposits.collect::<Vec<_>>().into_iter().for_each(|deposit| _ = deposit.wait().unwrap());
                let away = cluster.hand_over(&bus, (home + 1) % 3);
                silences.push((cluster.hand_over(&bus, home), away));
            }
            silences.sort_unstable();
            println!(
                "{aggregates} aggregates, {aggregates_max} in memory: silence when it leads again, and when it was deposed: {silences:?}"
            );
            assert!(silences[2].0 <= Duration::from_millis(200), "the median of {silences:?}");
            cluster.members.into_iter().flatten().for_each(|member| _ = member.stop().unwrap());
        }
    }
}
