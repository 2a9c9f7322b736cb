use super::run;
use std::path::Path;
use std::process::{Command, Stdio};

/// Root inside, no privileges outside; processes end with the namespaces.
const UNSHARE: [&str; 8] =
    ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"];
/// `ip netns` keeps names in /run, which belongs to another user outside.
const OWN_RUN: &str = "mount -t tmpfs tmpfs /run";
const TRIAL: &str = "ip netns add a && ip netns add b && ip link add va netns a type veth peer name vb netns b \
                     && ip netns exec a true";

pub const LEFT: &str = "10.99.0.1";

fn unshared(script: &str) -> Command {
    let mut command = Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).args(["sh", "-c"]).arg(format!("{OWN_RUN} && {script}")).stdin(Stdio::null());
    command
}

pub fn missing() -> Option<String> {
    let reason = match unshared(TRIAL).output() {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("network namespaces cannot be made with unshare and ip: {reason}"))
}

pub fn inside(program: &Path) -> Command {
    let mut command = unshared("exec \"$0\" \"$@\"");
    command.arg(program);
    command
}

pub struct Link;

impl Link {
    pub fn new() -> Self {
        for words in [
            "ip netns add left",
            "ip netns add right",
            "ip link add left netns left type veth peer name right netns right",
            "ip -n left address add 10.99.0.1/24 dev left",
            "ip -n right address add 10.99.0.2/24 dev right",
            "ip -n left link set lo up",
            "ip -n right link set lo up",
            "ip -n left link set left up",
            "ip -n right link set right up",
            // A rule may precede the table of local addresses only if that table is not the first.
            "ip -n left rule add pref 100 lookup local",
            "ip -n left rule del pref 0",
        ] {
            run_words(words);
        }
        // Only a forwarding host reports that a destination is prohibited.
        run(&["ip", "netns", "exec", "left", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
        Self
    }

    pub fn set(&self, is_up: bool) {
        run(&["ip", "-n", "right", "link", "set", "right", if is_up { "up" } else { "down" }]);
    }

    pub fn move_right(&self) {
        run_words("ip -n right address add 10.99.0.3/24 dev right");
        run_words("ip -n right address del 10.99.0.2/24 dev right");
        // Removing the first address makes the kernel remove all of its network.
        run_words("ip -n right address replace 10.99.0.3/24 dev right");
    }

    /// By ICMP.
    pub fn prohibit(&self, is_prohibited: bool) {
        let action = if is_prohibited { "add" } else { "del" };
        run_words(&format!("ip -n left rule {action} pref 50 iif left ipproto udp prohibit"));
    }

    pub fn on_left(&self) -> Command {
        self.on("left")
    }

    pub fn on_right(&self) -> Command {
        self.on("right")
    }

    fn on(&self, side: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", side]).arg(std::env::current_exe().unwrap());
        command
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for side in ["left", "right"] {
            run(&["ip", "netns", "delete", side]);
        }
    }
}

fn run_words(words: &str) {
    run(&words.split(' ').collect::<Vec<_>>());
}
