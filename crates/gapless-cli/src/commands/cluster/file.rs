//! Makes the file of a new member from that of another; entries that are common to all members are copied.

use gapless_cluster::config::ClusterConfig;
use gapless_cluster::member::control::MemberReport;
use std::fmt::Write;

pub(super) struct OwnEntry<'a> {
    pub member: u64,
    pub joins: bool,
    pub incarnation: u64,
    pub directory: &'a str,
}

/// Number, addresses, kind.
pub(super) type MemberEntry = (u64, Vec<String>, &'static str);

pub(super) fn listed(report: &MemberReport, config: &ClusterConfig) -> MemberEntry {
    let in_file = config.members.iter().find(|each| each.id == report.member);
    let addresses = match (&report.addresses[..], in_file) {
        ([], Some(each)) => each.addresses.clone(),
        (agreed, _) => agreed.to_vec(),
    };
    let kind = match report.kind.as_str() {
        "witness" => "witness",
        "learner" => "learner",
        _ => "full",
    };
    (report.member, addresses, kind)
}

pub(super) fn rewritten(template: &str, members: &[MemberEntry], own: &OwnEntry<'_>) -> Result<String, String> {
    let mut text = String::new();
    let (mut section, mut is_listed) = ("", false);
    for line in template.lines() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("# Member ").and_then(|rest| rest.split_once(' ')) {
            let _ = writeln!(text, "# Member {} {}", own.member, rest.1);
            continue;
        }
        if let Some(header) = trimmed.strip_prefix('[').filter(|_| trimmed.ends_with(']') && !trimmed.contains('"')) {
            section = header.trim_matches(['[', ']']).trim();
            if section == "member" && !is_listed {
                is_listed = true;
                list(members, &mut text);
            }
            if section != "member" {
                let _ = writeln!(text, "{line}");
            }
            match section {
                "cluster" => {
                    let join = if own.joins { "join = true\n" } else { "" };
                    let _ = writeln!(text, "member = {}\n{join}incarnation = {}", own.member, own.incarnation);
                }
                "stream" => {
                    let _ = writeln!(text, "directory = {:?}", own.directory);
                }
                _ => {}
            }
            continue;
        }
        let key = trimmed.split('=').next().unwrap_or_default().trim();
        let is_own = matches!((section, key), ("cluster", "member" | "join" | "incarnation") | ("stream", "directory"));
        if section != "member" && !is_own {
            let _ = writeln!(text, "{line}");
        }
    }
    let config = ClusterConfig::parse(&text, "the new file").map_err(|error| error.to_string())?;
    let is_right = config.member == own.member
        && config.joins == own.joins
        && config.incarnation == own.incarnation
        && config.members.len() == members.len()
        && config.stream().directory().is_some_and(|directory| directory.to_str() == Some(own.directory));
    if is_right {
        Ok(text)
    } else {
        Err("the other file is written in a way that this program cannot change".to_owned())
    }
}

fn list(members: &[MemberEntry], text: &mut String) {
    for (member, addresses, kind) in members {
        let _ = writeln!(text, "[[member]]\nid = {member}\naddresses = {addresses:?}");
        if *kind != "full" {
            let _ = writeln!(text, "kind = \"{kind}\"");
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_entries_are_copied() {
        let template = "# A remark.\n[cluster]\nname = \"orders\"\nmember = 1\ntier = \"quorum-sync\"\n\n[[member]]\nid = 1\n\
                        addresses = [\n  \"a:1\",\n]\n\n[election]\ntimeout = \"1 s\"\n\n[stream]\nwindow = \"64 MiB\"\n\
                        directory = \"member-1\"\n";
        let members = [(1, vec!["a:1".to_owned()], "full"), (2, vec!["b:2".to_owned(), "c:3".to_owned()], "witness")];
        let own = OwnEntry { member: 2, joins: true, incarnation: 4, directory: "member-2" };
        let text = rewritten(template, &members, &own).unwrap_or_default();
        assert!(text.starts_with("# A remark.\n") && text.contains("timeout = \"1 s\""), "{text}");
        assert!(text.contains("tier = \"quorum-sync\"") && text.contains("window = \"64 MiB\""), "{text}");
        assert!(text.contains("addresses = [\"b:2\", \"c:3\"]\nkind = \"witness\""), "{text}");
        assert_eq!(rewritten(&text, &members, &own), Ok(text));
    }

    #[test]
    fn unfit_template_is_an_error() {
        let own = OwnEntry { member: 2, joins: true, incarnation: 1, directory: "d" };
        assert!(rewritten("[cluster]\nname = \"orders\"\n", &[], &own).is_err());
    }
}
