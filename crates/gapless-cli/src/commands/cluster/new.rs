//! `gapless cluster new`.

use crate::commands::{CommandResult, UsageError, print};
use clap::Args;
use gapless_agent::checked_file;
use gapless_cluster::config::{CLUSTER_MEMBERS_MAX, CLUSTER_NAME_LENGTH_MAX, ClusterConfig};
use std::fmt::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory for the files and the members' data; created if missing
    directory: PathBuf,
    /// Number of members
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    members: usize,
    /// Make the last member a witness, which stores and votes only
    #[arg(long)]
    witness: bool,
    /// Name of the cluster [default: that of the directory]
    #[arg(long)]
    name: Option<String>,
    /// Port of the first member; the others take the following ones [default: free ports]
    #[arg(long)]
    port: Option<u16>,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let count = arguments.members;
    if !(1..=CLUSTER_MEMBERS_MAX).contains(&count) {
        return Err(UsageError(format!("--members: 1 to {CLUSTER_MEMBERS_MAX} are allowed, not {count}")).into());
    }
    if arguments.witness && count < 3 {
        return Err(UsageError("--witness: two members and a witness at least are expected".to_owned()).into());
    }
    let own_name = arguments.directory.file_name().and_then(|name| name.to_str());
    let name = arguments.name.as_deref().or(own_name).unwrap_or("cluster");
    if name.is_empty()
        || name.len() > CLUSTER_NAME_LENGTH_MAX
        || name.chars().any(|each| each.is_control() || each == '"')
    {
        return Err(
            UsageError(format!("--name: 1 to {CLUSTER_NAME_LENGTH_MAX} bytes are allowed, without quotes")).into()
        );
    }
    let ports = ports(arguments, count)?;
    std::fs::create_dir_all(&arguments.directory)
        .map_err(|error| format!("making {}: {error}", arguments.directory.display()))?;
    let mut written = String::new();
    for member in 1..=count {
        let text = file(name, member, &ports, arguments.witness);
        let path = arguments.directory.join(format!("member-{member}.toml"));
        ClusterConfig::parse(&text, &path.display().to_string())?;
        let opened = checked_file::create_new(&path, 0o666);
        let mut file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => format!(
                "{} is there already: a cluster was made here; start its members (`gapless cluster start {}`), or choose \
                 another directory",
                path.display(),
                quoted(&path.display().to_string())
            ),
            _ => format!("writing {}: {error}", path.display()),
        })?;
        std::io::Write::write_all(&mut file, text.as_bytes())
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
        let _ = writeln!(written, "gapless cluster start {}", quoted(&path.display().to_string()));
    }
    print(&written)
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@%=".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn file(name: &str, member: usize, ports: &[u16], witness: bool) -> String {
    let mut text = format!(
        "# Member {member} of a cluster. docs/guides/cluster.toml describes every key, docs/guides/stream.toml those of \
         the stream.\n[cluster]\nname = \"{name}\"\nmember = {member}\n"
    );
    for (at, port) in ports.iter().enumerate() {
        let _ = write!(text, "\n[[member]]\nid = {}\naddresses = [\"127.0.0.1:{port}\"]\n", at + 1);
        if witness && at + 1 == ports.len() {
            text.push_str("kind = \"witness\"\n");
        }
    }
    let _ = write!(text, "\n[stream]\ndirectory = \"member-{member}\"\n");
    text
}

fn ports(arguments: &Arguments, count: usize) -> Result<Vec<u16>, Box<dyn std::error::Error>> {
    if let Some(first) = arguments.port {
        let last = u32::from(first) + count as u32 - 1;
        return match u16::try_from(last) {
            Ok(last) if first > 0 => Ok((first..=last).collect()),
            _ => Err(UsageError(format!("--port: {first} to {last} are not ports")).into()),
        };
    }
    // Ports below the ephemeral ones, so that a restarted member finds its port free. Parallel runs begin at different
    // ports.
    let first = 10_000 + (std::process::id().wrapping_mul(101) % 20_000) as u16;
    let candidates = (first..30_000).chain(10_000..first);
    let free = candidates.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let ports: Vec<u16> = free.take(count).collect();
    if ports.len() < count {
        return Err("no free ports from 10,000 to 29,999: name the first with --port".into());
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn printed_command_can_be_pasted() {
        assert_eq!(quoted("orders/member-1.toml"), "orders/member-1.toml");
        assert_eq!(quoted("a b/member-1.toml"), "'a b/member-1.toml'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("$HOME;é"), "'$HOME;é'");
    }
}
