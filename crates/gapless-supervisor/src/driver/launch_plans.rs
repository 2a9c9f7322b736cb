//! Derives the launch plan of an instance from the configuration.

use crate::config::SupervisorConfig;
use crate::config::process::{CpusConfig, ProcessConfig, UserConfig};
use crate::instance_name::InstanceName;
use crate::role::OWN_VARIABLES;
use crate::state_directory::{LaunchPlan, ResourceLimits, UserIdentity};
use crate::variables::Variables;
use gapless_agent::CpuMask;
use gapless_rpc::domain::DOMAIN_VARIABLE;
use nix::unistd::{Gid, getgrouplist};
use std::ffi::CString;
use std::path::{Path, PathBuf};

pub fn launch_plan(
    config: &SupervisorConfig,
    process: &ProcessConfig,
    instance: &InstanceName,
    incarnation: u64,
    notify_socket: &Path,
) -> LaunchPlan {
    let inherited =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut environment: Variables = inherited.collect();
    OWN_VARIABLES.iter().for_each(|name| drop(environment.remove(*name)));
    environment.insert(DOMAIN_VARIABLE.to_owned(), config.domain.display().to_string());
    environment.extend(process.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
    LaunchPlan {
        incarnation,
        program: process.program.clone(),
        arguments: process.arguments.clone(),
        environment,
        folder: process.folder.clone(),
        input: process.input.clone(),
        identity: process.user.as_ref().and_then(identity),
        cpus: cpus(config, process, instance.number()),
        limits: ResourceLimits {
            files_max: process.files_max,
            core_bytes_max: process.core_bytes_max,
            memory_bytes_max: process.memory_bytes_max,
        },
        cgroup: None,
        singleton: None,
        log: log(process, instance),
        notify_socket: Some(notify_socket.to_owned()),
    }
}

/// Whether a changed configuration affects starts of the process; compares launch plans, so that global options count,
/// too.
pub fn launch_differs(old: (&SupervisorConfig, &ProcessConfig), new: (&SupervisorConfig, &ProcessConfig)) -> bool {
    let Ok(first) = InstanceName::new(&old.1.name, 1) else { return false };
    let plan = |(config, process): (&SupervisorConfig, &ProcessConfig)| {
        (launch_plan(config, process, &first, 0, Path::new("")), process.is_singleton)
    };
    let mut instances = 2..=old.1.instances_max.min(new.1.instances_max);
    plan(old) != plan(new) || instances.any(|number| cpus(old.0, old.1, number) != cpus(new.0, new.1, number))
}

pub fn log(process: &ProcessConfig, instance: &InstanceName) -> PathBuf {
    process.log_folder.join(format!("{instance}.log"))
}

/// `None` for the guardian's own user: only root may change the user.
fn identity(user: &UserConfig) -> Option<UserIdentity> {
    if user.id == rustix::process::geteuid().as_raw() {
        return None;
    }
    let name = CString::new(user.name.clone()).ok()?;
    // If the list cannot be read, the user has its primary group only, which grants less.
    let groups = getgrouplist(&name, Gid::from_raw(user.group_id)).unwrap_or_default();
    Some(UserIdentity { user: user.id, group: user.group_id, groups: groups.into_iter().map(Gid::as_raw).collect() })
}

/// In configuration order up to `instances_max`: an instance gets the same exclusive CPUs at each start.
fn cpus(config: &SupervisorConfig, process: &ProcessConfig, number: u32) -> Option<CpuMask> {
    match &process.cpus {
        CpusConfig::Any => config.cpus,
        CpusConfig::Masks(masks) => masks.get(number as usize - 1).or_else(|| masks.last()).copied(),
        CpusConfig::Own(each) => {
            let masks = config.processes.iter().filter_map(|process| match &process.cpus {
                CpusConfig::Masks(masks) => Some(masks),
                _ => None,
            });
            let taken: Vec<&CpuMask> = masks.flatten().collect();
            let shared = config.cpus.unwrap_or_else(CpuMask::of_machine);
            let is_taken = |cpu: &usize| taken.iter().any(|mask| mask.contains(*cpu));
            let (reserved, mut free): (Vec<usize>, Vec<usize>) = shared.iter().partition(is_taken);
            free.extend(reserved);
            let mut free = free.into_iter();
            for other in &config.processes {
                let CpusConfig::Own(others) = &other.cpus else { continue };
                for instance in 1..=other.instances_max {
                    let own: Vec<usize> = free.by_ref().take(*others as usize).collect();
                    if other.name == process.name && instance == number {
                        return if own.len() == *each as usize { CpuMask::of(&own) } else { None };
                    }
                }
            }
            // The extra instance of a reload has no exclusive CPUs.
            config.cpus
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cpus_do_not_overlap() {
        let text = "[supervisor]\ncpus = \"0\"\n[process.a]\ncommand = [\"/bin/true\"]\ncpus = { own = 1 }\n\
                    [process.b]\ncommand = [\"/bin/true\"]\nenvironment = { X = \"1\" }\n";
        let config = SupervisorConfig::parse_in_force(text, Path::new("/tmp/x.toml")).unwrap();
        let plan = |name: &str, number| {
            let process = config.process(name).unwrap();
            launch_plan(&config, process, &InstanceName::new(name, number).unwrap(), 3, Path::new("/n"))
        };
        assert_eq!(plan("a", 1).cpus, CpuMask::of(&[0]));
        assert_eq!(plan("a", 2).cpus, CpuMask::of(&[0]), "the extra instance of a reload uses shared CPUs");
        let b = plan("b", 1);
        assert_eq!((b.incarnation, b.environment["X"].as_str()), (3, "1"));
        assert_eq!(b.environment["GAPLESS_DOMAIN"], "/tmp/x.state/domain");
        assert_eq!(b.log, Path::new("/tmp/x.state/logs/b.1.log"));
        assert!(!format!("{b:?}").contains("/tmp/x.state/domain"), "values are not shown");
    }

    #[test]
    fn reload_needs_launch_changes() {
        let config = |supervisor: &str, a: &str, b: &str| {
            let text = format!(
                "[supervisor]\n{supervisor}\n[process.a]\ncommand = [\"/bin/true\"]\n{a}\n[process.b]\n\
                 command = [\"/bin/true\"]\n{b}\n"
            );
            SupervisorConfig::parse_in_force(&text, Path::new("/tmp/x.toml")).unwrap()
        };
        let own_domain = "environment = { GAPLESS_DOMAIN = \"/tmp/own\" }";
        let (own_cpus, two) = ("cpus = { own = 1 }", "cpus = { own = 1 }\ninstances = 2");
        for (what, old, new, expected) in [
            ("nothing", ("", "", ""), ("", "", ""), [false, false]),
            ("another domain", ("", "", own_domain), ("domain = \"/tmp/d\"", "", own_domain), [true, false]),
            ("other CPUs of all", ("", "", "cpus = \"0\""), ("cpus = \"0\"", "", "cpus = \"0\""), [true, false]),
            (
                "one more before it",
                ("cpus = \"0-3\"", own_cpus, own_cpus),
                ("cpus = \"0-3\"", two, own_cpus),
                [false, true],
            ),
            (
                "how it is stopped",
                ("", "", ""),
                ("", "stop = { grace = 1 }", "restart = { restarts_max = 3 }"),
                [false, false],
            ),
            (
                "another input",
                ("", "input = \"/dev/zero\"", ""),
                ("", "input = \"in\"", "reload = { program = true }"),
                [true, false],
            ),
            ("a singleton", ("", "", ""), ("", "singleton = true", "files_max = 100"), [true, true]),
        ] {
            let (old, new) = (config(old.0, old.1, old.2), config(new.0, new.1, new.2));
            let found = ["a", "b"].map(|name| {
                let of = |config| SupervisorConfig::process(config, name).unwrap();
                launch_differs((&old, of(&old)), (&new, of(&new)))
            });
            assert_eq!(found, expected, "{what}");
        }
    }
}
