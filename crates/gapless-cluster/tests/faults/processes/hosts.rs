//! A network namespace for each member, inside a user namespace of the test, which the kernel removes with its last
//! process: needs no privilege where users may create such namespaces.

use super::PATIENCE;
use gapless_testkit::process::started_as;
use gapless_testkit::random::Random;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const INSIDE: &str = "processes::hosts::inside";
/// In units of [`PATIENCE`].
const LIMIT: u32 = 6;
/// Root inside, an unprivileged user outside.
const UNSHARE: [&str; 9] =
    ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"];
/// `ip netns` keeps its names in /run.
const OWN_RUN: &str = "mount -t tmpfs tmpfs /run";
/// The commands that the tests need; the last line is a filter that drops one packet in ten.
const TRIAL: &str = "ip netns add a && ip netns exec a true && ip link add name bridge type bridge \
     && ip link add name eth0 netns a type veth peer name port && tc -n a qdisc add dev eth0 clsact \
     && tc -n a qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms \
     && tc -n a filter add dev eth0 ingress bpf da bytecode '4,32 0 0 4294963256,53 0 1 429496730,6 0 0 0,6 0 0 2'";
const PORT: u16 = 7_000;

pub type IsolatedScenario = fn(&mut Random);

pub fn run_if_inside(scenarios: &[(&str, IsolatedScenario)]) {
    let Some(arguments) = started_as(INSIDE) else { return };
    let [scenario, seed] = &arguments[..] else { panic!("a scenario and a seed are expected, not {arguments:?}") };
    std::thread::spawn(move || {
        std::thread::sleep(LIMIT * PATIENCE);
        eprintln!("the scenario hangs");
        std::process::exit(1);
    });
    let (_, run) = scenarios.iter().find(|(name, _)| name == scenario).expect("a listed scenario");
    run(&mut Random::new(seed.parse().unwrap()));
    std::process::exit(0);
}

pub fn run_inside(scenario: &str, random: &mut Random) {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    if let Some(reason) = MISSING.get_or_init(missing) {
        println!("SKIPPED: {reason}");
        return;
    }
    let mut command = unshared("exec \"$0\" \"$@\"");
    command.arg(std::env::current_exe().unwrap()).args([INSIDE, scenario, &random.number().to_string()]);
    let status = command.status().unwrap();
    assert!(status.success(), "the scenario failed inside the namespaces: {status}");
}

fn unshared(script: &str) -> Command {
    let mut command = Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).args(["sh", "-c"]).arg(format!("{OWN_RUN} && {script}")).stdin(Stdio::null());
    command
}

fn missing() -> Option<String> {
    let reason = match unshared(TRIAL).output() {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("hosts cannot be made with unshare, ip and tc: {reason}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    In,
    Out,
}

impl PacketDirection {
    pub const BOTH: [Self; 2] = [Self::In, Self::Out];

    fn name(self) -> &'static str {
        match self {
            Self::In => "ingress",
            Self::Out => "egress",
        }
    }
}

pub struct Hosts {
    count: usize,
}

impl Hosts {
    pub fn new(count: usize) -> Self {
        run("ip netns add switch");
        run("ip -n switch link add name bridge type bridge");
        run("ip -n switch link set bridge up");
        for host in 1..=count {
            run(&format!("ip netns add host{host}"));
            run(&format!("ip link add name eth0 netns host{host} type veth peer name port{host} netns switch"));
            run(&format!("ip -n host{host} address add 10.98.0.{host}/24 dev eth0"));
            run(&format!("ip -n host{host} link set lo up"));
            run(&format!("ip -n host{host} link set eth0 up"));
            run(&format!("ip -n switch link set port{host} master bridge up"));
            run(&format!("tc -n host{host} qdisc add dev eth0 clsact"));
        }
        Self { count }
    }

    pub fn address(host: usize) -> String {
        format!("10.98.0.{host}:{PORT}")
    }

    pub fn command(host: usize, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("host{host}")]).arg(program);
        command
    }

    pub fn cut(&self, host: usize, is_cut: bool) {
        run(&format!("ip -n switch link set port{host} {}", if is_cut { "down" } else { "up" }));
    }

    /// Drops packets at random: 1,000 are all, 0 none.
    pub fn lose(&self, host: usize, way: PacketDirection, per_mille: u32) {
        let place = format!("tc -n host{host} filter replace dev eth0 {} pref 1 handle 1 bpf da bytecode", way.name());
        // Load a random number, compare, pass (0) or drop (2): tc-bpf(8), SKF_AD_RANDOM of linux/filter.h.
        let bound = u64::from(per_mille) * u64::from(u32::MAX) / 1_000;
        let program = match per_mille {
            0 => "1,6 0 0 0".to_owned(),
            1_000 => "1,6 0 0 2".to_owned(),
            _ => format!("4,32 0 0 4294963256,53 0 1 {bound},6 0 0 0,6 0 0 2"),
        };
        let mut words: Vec<&str> = place.split(' ').collect();
        words.push(&program);
        run_words(&words);
    }

    /// Either way, with up to 400 ms of queueing.
    pub fn limit(&self, host: usize, kilobits_per_second: Option<u32>) {
        for (place, device) in
            [(format!("host{host}"), "eth0".to_owned()), ("switch".to_owned(), format!("port{host}"))]
        {
            let what = match kilobits_per_second {
                Some(rate) => {
                    format!("qdisc replace dev {device} root tbf rate {rate}kbit burst 64kbit latency 400ms")
                }
                None => format!("qdisc del dev {device} root"),
            };
            run(&format!("tc -n {place} {what}"));
        }
    }

    pub fn dropped(&self) -> u64 {
        let of_host = |host| {
            let said = run(&format!("tc -n host{host} -s qdisc show dev eth0 clsact"));
            let number = said.split("(dropped ").nth(1).and_then(|rest| rest.split(',').next());
            number.and_then(|number| number.parse::<u64>().ok()).unwrap_or_else(|| panic!("no count in {said}"))
        };
        (1..=self.count).map(of_host).sum()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        (1..=self.count).for_each(|host| drop(run(&format!("ip netns delete host{host}"))));
        run("ip netns delete switch");
    }
}

fn run(words: &str) -> String {
    run_words(&words.split(' ').collect::<Vec<_>>())
}

fn run_words(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
