//! Checks across options and against the machine.

use super::SupervisorConfig;
use super::process::{CpusConfig, Dependency, InvalidProcess, ProcessConfig, Readiness, RestartPolicy, StopSignal};
use crate::launch::is_input;
use crate::state_directory::StateDirectory;
use gapless_agent::CpuMask;
use gapless_config::{ConfigError, KeyLines, Refusals};
use gapless_rpc::route_name::check_own;
use rustix::fs::Access;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;

pub(super) fn check(config: &SupervisorConfig, invalid: &[InvalidProcess], lines: &KeyLines, refusals: &mut Refusals) {
    if config.processes.is_empty() && invalid.is_empty() {
        refusals.add(lines.refuse("process", "no process is named; [process.NAME] with a command is expected"));
        return;
    }
    refusals.keep(environment(lines));
    if let Some(reason) = StateDirectory::refusal(&config.directory) {
        refusals.add(lines.refuse("supervisor.directory", format!("{} {reason}", config.directory.display())));
    }
    for process in &config.processes {
        refusals.keep(program(process, lines));
        refusals.keep(input(process, lines));
        one(process, lines, refusals);
        routes(process, lines, refusals);
    }
    dependencies(config, invalid, lines, refusals);
    cpus(config, lines, refusals);
}

fn key(process: &ProcessConfig, name: &str) -> String {
    format!("process.{}.{name}", process.name)
}

/// The inherited environment must be valid UTF-8 as a whole.
fn environment(lines: &KeyLines) -> Result<(), ConfigError> {
    let is_text = |(name, value): &(OsString, OsString)| name.to_str().is_some() && value.to_str().is_some();
    let Some((name, _)) = std::env::vars_os().find(|variable| !is_text(variable)) else { return Ok(()) };
    let reason =
        format!("the variable {name:?} of the environment is not UTF-8, and no instance could have it: unset it");
    Err(lines.refuse("process", reason))
}

fn program(process: &ProcessConfig, lines: &KeyLines) -> Result<(), ConfigError> {
    let refuse =
        |reason: String| Err(lines.refuse(&key(process, "command"), format!("{} {reason}", process.program.display())));
    if !process.program.has_root() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Files in the current directory are not searched; ./NAME is needed.
        return refuse(format!(
            "is not on the PATH, which is {:?} here; a supervisor has that of the `gapless up` that has started it",
            path.display().to_string()
        ));
    }
    match std::fs::metadata(&process.program) {
        Err(error) => refuse(format!("cannot be started: {error}")),
        Ok(found) if !found.is_file() => refuse("is no program".to_owned()),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => refuse("is not executable".to_owned()),
        Ok(_) if process.folder.is_dir() => Ok(()),
        Ok(_) => {
            let reason = format!("{} is no folder that is there", process.folder.display());
            Err(lines.refuse(&key(process, "folder"), reason))
        }
    }
}

/// The launcher checks access by another user.
fn input(process: &ProcessConfig, lines: &KeyLines) -> Result<(), ConfigError> {
    let Some(path) = &process.input else {
        let reason = "there is no `input` whose file could change";
        let is_wrong = process.reload.on_input;
        return if is_wrong { Err(lines.refuse(&key(process, "reload.input"), reason)) } else { Ok(()) };
    };
    let reason = match std::fs::metadata(path) {
        Ok(found) if !is_input(found.file_type()) => "is no file".to_owned(),
        Ok(_) if process.user.is_some() => return Ok(()),
        Ok(_) => match rustix::fs::access(path, Access::READ_OK) {
            Ok(()) => return Ok(()),
            Err(errno) => format!("cannot be read: {errno}"),
        },
        Err(error) => format!("cannot be read: {error}"),
    };
    Err(lines.refuse(&key(process, "input"), format!("{} {reason}", path.display())))
}

fn one(process: &ProcessConfig, lines: &KeyLines, refusals: &mut Refusals) {
    let mut refuse = |name: &str, reason: &str| refusals.add(lines.refuse(&key(process, name), reason));
    let own = rustix::process::geteuid();
    if process.user.as_ref().is_some_and(|user| !own.is_root() && own.as_raw() != user.id) {
        refuse("user", "only a supervisor that runs as root can start a process as another user");
    }
    for secret in &process.secrets {
        if !process.environment.contains_key(secret) && std::env::var_os(secret).is_none() {
            refuse("secrets", &format!("{secret} is neither in the environment nor in `environment`"));
        }
    }
    if process.is_once && process.restart.policy == RestartPolicy::Always && lines.has(&key(process, "restart.policy"))
    {
        refuse(
            "restart.policy",
            "a task (`once`) that always starts again is never done; on-failure and never are allowed",
        );
    }
    if process.is_once && process.is_singleton {
        refuse("singleton", "a task (`once`) is none");
    }
    if process.is_singleton && process.reload.is_overlapping && lines.has(&key(process, "reload.overlap")) {
        refuse("reload.overlap", "a singleton has one active instance");
    }
    if process.stop.signal == StopSignal::Kill && lines.has(&key(process, "stop.grace")) {
        refuse("stop.grace", "SIGKILL leaves no time");
    }
}

fn routes(process: &ProcessConfig, lines: &KeyLines, refusals: &mut Refusals) {
    let ready = match &process.ready {
        Readiness::Route(route) => Some(("ready.route", route)),
        _ => None,
    };
    // A ping without its own route uses that of `ready`, which is reported only once.
    let has_own = lines.has(&key(process, "ping.route"));
    let ping = process.ping.as_ref().filter(|_| has_own).map(|ping| ("ping.route", &ping.route));
    for (name, route) in ready.into_iter().chain(ping) {
        if let Err(error) = check_own(route) {
            refusals.add(lines.refuse(&key(process, name), error.to_string()));
        }
        if let Some(user) = process.user.as_ref().filter(|user| user.id != rustix::process::geteuid().as_raw()) {
            let reason = format!(
                "{} serves in a domain of its own; routes of the supervisor's own user are looked for",
                user.name
            );
            refusals.add(lines.refuse(&key(process, name), reason));
        }
    }
}

fn dependencies(config: &SupervisorConfig, invalid: &[InvalidProcess], lines: &KeyLines, refusals: &mut Refusals) {
    let read = config.processes.iter().map(|process| (process.name.as_str(), &process.after[..]));
    let all: Vec<_> = read.chain(invalid.iter().map(|process| (process.name.as_str(), &process.after[..]))).collect();
    let key = |name: &str| format!("process.{name}.after");
    let mut left: BTreeMap<&str, &[Dependency]> = all.iter().copied().collect();
    for (name, after) in &all {
        for missing in after.iter().filter(|other| !left.contains_key(other.process.as_str())) {
            let names = all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            let reason = format!("{:?} is no process of this file; {names} are", missing.process);
            refusals.add(lines.refuse(&key(name), reason));
        }
    }
    // Topological sort: removes processes without remaining dependencies until none is left, or a cycle.
    let waits = |left: &BTreeMap<&str, _>, after: &[Dependency]| {
        after.iter().filter(|other| left.contains_key(other.process.as_str())).count()
    };
    let mut counts: BTreeMap<&str, usize> = left.iter().map(|(name, after)| (*name, waits(&left, after))).collect();
    let mut dependents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, after) in &all {
        after.iter().for_each(|other| dependents.entry(&other.process).or_default().push(name));
    }
    let mut free: Vec<&str> = counts.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
    while let Some(name) = free.pop() {
        left.remove(name);
        for dependent in dependents.remove(name).unwrap_or_default() {
            let Some(count) = counts.get_mut(dependent) else { continue };
            *count -= 1;
            free.extend(Some(dependent).filter(|_| *count == 0));
        }
    }
    // Any path ends in a cycle: each remaining process depends on another.
    let Some((mut name, mut after)) = left.first_key_value().map(|(name, after)| (*name, *after)) else { return };
    let mut seen: Vec<&str> = Vec::new();
    while !seen.contains(&name) {
        seen.push(name);
        let next = after.iter().find_map(|other| left.get_key_value(other.process.as_str()));
        (name, after) = next.map_or((name, after), |(name, after)| (*name, *after));
    }
    let begin = seen.iter().position(|other| *other == name).unwrap_or(0);
    let circle = seen[begin..].iter().copied().chain([name]).collect::<Vec<_>>().join(" → ");
    let reason = format!("a circle, in which each waits for the next: {circle}");
    refusals.add(lines.refuse(&key(name), reason));
}

fn cpus(config: &SupervisorConfig, lines: &KeyLines, refusals: &mut Refusals) {
    let machine = CpuMask::of_machine();
    if let Some(Err(warning)) = config.cpus.map(|cpus| cpus.check(&machine)) {
        refusals.add(lines.refuse("supervisor.cpus", warning));
    }
    let shared = config.cpus.unwrap_or(machine);
    let (mut asked, mut is_refused) = (0, false);
    for process in &config.processes {
        match &process.cpus {
            CpusConfig::Any => {}
            CpusConfig::Masks(masks) => {
                for warning in masks.iter().filter_map(|mask| mask.check(&machine).err()) {
                    refusals.add(lines.refuse(&key(process, "cpus"), warning));
                }
            }
            CpusConfig::Own(each) => {
                asked += each * process.instances_max;
                if asked as usize > shared.count() && !is_refused {
                    let reason = format!(
                        "{asked} CPUs are asked for up to here, {} are there ({shared}); an instance beyond `instances.min` counts, too",
                        shared.count()
                    );
                    refusals.add(lines.refuse(&key(process, "cpus"), reason));
                    is_refused = true;
                }
            }
        }
    }
}
