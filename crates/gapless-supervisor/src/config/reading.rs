//! Parser of the configuration file.

use super::process::{
    CpusConfig, Dependency, DependencyStage, InvalidProcess, PingConfig, ProcessConfig, Readiness, ReloadConfig,
    RestartConfig, RestartPolicy, StopConfig, StopSignal, UserConfig,
};
use super::{GroupConfig, SupervisorConfig, checks};
use crate::instance_name::InstanceName;
use crate::logs::LOGS_KEPT_MAX;
use crate::variables::Variables;
use gapless_agent::CpuMask;
use gapless_config::{ConfigError, ConfigErrors, Document, Refusals, Table, Value, read_file};
use nix::unistd::{Group, User};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

const INSTANCES_MAX: u64 = 1000;
const LOG_BYTES: u64 = 64 << 20;
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MILLISECOND: Duration = Duration::from_millis(1);

impl SupervisorConfig {
    /// Reads and checks the file `path`; relative paths in it are relative to its directory.
    ///
    /// # Errors
    /// [`ConfigError::File`] if it cannot be read; see also [`SupervisorConfig::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigErrors> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = read_file(path)?;
        let absolute = std::path::absolute(path);
        let absolute = absolute.map_err(|source| ConfigError::File { path: name.clone(), source })?;
        Self::parse(&text, &name, &absolute)
    }

    /// Parses and checks `text`; `name` is the file's name in messages, `path` its absolute path.
    ///
    /// # Errors
    /// A [`ConfigError::Refused`] for each unknown key, wrong type, value out of range and inconsistency, with file,
    /// line, key, found and allowed value. A single one if the text is not TOML.
    pub fn parse(text: &str, name: &str, path: &Path) -> Result<Self, ConfigErrors> {
        let document = Document::new(name, text);
        let mut refusals = Refusals::default();
        let (mut config, invalid) = Self::read(&document, path, &mut refusals)?;
        config.warning = refusals.warning();
        checks::check(&config, &invalid, &document.into_lines(), &mut refusals);
        refusals.or(config)
    }

    /// Parses a text that is already in force, without checks against the machine: a program removed since does not
    /// keep the others from being supervised.
    ///
    /// # Errors
    /// See [`SupervisorConfig::parse`]; errors in the text only.
    pub fn parse_in_force(text: &str, path: &Path) -> Result<Self, ConfigErrors> {
        let mut refusals = Refusals::default();
        let (mut config, _) = Self::read(&Document::new(&path.display().to_string(), text), path, &mut refusals)?;
        config.warning = refusals.warning();
        refusals.or(config)
    }

    /// State directory that a text names, regardless of other errors; `None` if it cannot be parsed that far.
    #[must_use]
    pub fn directory_in(text: &str, path: &Path) -> Option<PathBuf> {
        let name = path.display().to_string();
        let document = Document::new(&name, text);
        let mut tables = document.tables().ok()?;
        let mut table = tables.take("supervisor")?.table().ok()?;
        let directory = table.get("directory", |value| value.text().map(|text| path.with_file_name(text)));
        directory.ok()?
    }

    fn read(
        document: &Document<'_>,
        path: &Path,
        refusals: &mut Refusals,
    ) -> Result<(Self, Vec<InvalidProcess>), ConfigError> {
        let base = path.parent().unwrap_or(Path::new("/"));
        let mut file = document.tables()?;
        let mut table = table_of(&mut file, "supervisor", refusals);
        let directory = table.get("directory", |value| value.text().map(|text| base.join(text)));
        let directory = refusals.optional(directory).unwrap_or_else(|| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            base.join(format!("{stem}.state"))
        });
        let domain = refusals.optional(table.get("domain", |value| value.text().map(|text| base.join(text))));
        let group = refusals.optional(table.get("group", group));
        let may_steer = refusals.optional(table.get("steer", Value::switch));
        if may_steer.is_some() && !document.has("supervisor.group") {
            refusals.add(document.refuse("supervisor.steer", "a group is missing, which it is about"));
        }
        let cpus = refusals.optional(table.get("cpus", |value| value.read(str::parse::<CpuMask>)));
        let log_bytes_max = refusals.optional(table.get("log_bytes_max", |value| value.size(4096..=1 << 40)));
        let logs_kept = refusals.optional(table.get("logs_kept", |value| value.whole(0..=u64::from(LOGS_KEPT_MAX))));
        refusals.extend(table.unknown());
        let base = BasePaths { folder: base, log_folder: directory.join("logs") };
        let (mut processes, mut invalid) = (Vec::new(), Vec::new());
        for (name, value) in table_of(&mut file, "process", refusals).named_values() {
            let Some(table) = refusals.keep(value.table()) else {
                invalid.push(InvalidProcess { name, after: Vec::new() });
                continue;
            };
            match process(document, &name, table, &base, refusals) {
                Ok(process) => processes.push(process),
                Err(after) => invalid.push(InvalidProcess { name, after }),
            }
        }
        refusals.extend(file.unknown());
        let config = Self {
            domain: domain.unwrap_or_else(|| directory.join("domain")),
            directory,
            group: group.map(|id| GroupConfig { id, may_steer: may_steer.unwrap_or(false) }),
            cpus,
            log_bytes_max: log_bytes_max.unwrap_or(LOG_BYTES),
            logs_kept: logs_kept.unwrap_or(1) as u32,
            processes,
            warning: None,
        };
        Ok((config, invalid))
    }
}

fn table_of<'a>(table: &mut Table<'a>, key: &'static str, refusals: &mut Refusals) -> Table<'a> {
    let (found, refusal) = table.table_or_refusal(key);
    refusals.extend(refusal);
    found
}

fn switch(table: &mut Table<'_>, key: &'static str, default: bool, refusals: &mut Refusals) -> bool {
    refusals.optional(table.get(key, Value::switch)).unwrap_or(default)
}

struct BasePaths<'a> {
    folder: &'a Path,
    log_folder: PathBuf,
}

fn process(
    document: &Document<'_>,
    name: &str,
    mut table: Table<'_>,
    base: &BasePaths<'_>,
    refusals: &mut Refusals,
) -> Result<ProcessConfig, Vec<Dependency>> {
    let before = refusals.count();
    let key = format!("process.{name}");
    if InstanceName::new(name, 1).is_err() {
        let reason = "letters, digits, - and _ are allowed in the name of a process, at most 64 of them";
        refusals.add(document.refuse(&key, reason));
    }
    let command = refusals.keep(command(&mut table));
    let path = |value: &Value<'_>| value.text().map(|text| base.folder.join(text));
    let folder = refusals.optional(table.get("folder", path));
    let input = refusals.optional(table.get("input", path));
    let log_folder = refusals.optional(table.get("log_folder", path));
    let environment = table.take("environment").map(|value| environment(document, &key, value, refusals));
    let secrets = refusals.optional(table.take("secrets").map(texts).transpose());
    let user = refusals.optional(table.get("user", user));
    let number = take_instances(&mut table, refusals);
    let instances = refusals.optional(number.map(instances).transpose());
    let (instances_min, instances_max) = instances.unwrap_or((1, 1));
    let cpus = refusals.optional(table.take("cpus").map(cpus).transpose());
    let after = refusals.optional(table.take("after").map(Value::list).transpose()).unwrap_or_default();
    let after = after.into_iter().filter_map(|value| refusals.keep(dependency(value))).collect();
    let ready = match table.take("ready") {
        Some(value) => refusals.keep(readiness(value, base.folder)),
        None => Some(Readiness::Started),
    };
    let ready_within = refusals.optional(table.get("ready_within", |value| value.duration(MILLISECOND..=DAY)));
    let restart = restart(table_of(&mut table, "restart", refusals), refusals);
    let stop = stop(table_of(&mut table, "stop", refusals), refusals);
    let ping = table.take("ping").and_then(|value| ping(value, ready.as_ref(), refusals));
    let memory_bytes_max = refusals.optional(table.get("memory_max", |value| value.size(1 << 20..=1 << 50)));
    let files_max = refusals.optional(table.get("files_max", |value| value.whole(16..=1 << 30)));
    let core_bytes_max = refusals.optional(table.get("core_max", |value| value.size(0..=1 << 50)));
    let is_once = switch(&mut table, "once", false, refusals);
    let is_singleton = switch(&mut table, "singleton", false, refusals);
    // Instances of one route share its calls. For other processes two instances at a time may be too many.
    let may_overlap = matches!(ready, Some(Readiness::Route(_)));
    let mut of_reload = table_of(&mut table, "reload", refusals);
    let reload = ReloadConfig {
        on_program: switch(&mut of_reload, "program", false, refusals),
        on_input: switch(&mut of_reload, "input", false, refusals),
        on_file: switch(&mut of_reload, "file", true, refusals),
        is_overlapping: switch(&mut of_reload, "overlap", may_overlap, refusals),
    };
    refusals.extend(of_reload.unknown());
    refusals.extend(table.unknown());
    let (Some((program, arguments)), Some(ready), true) = (command, ready, refusals.count() == before) else {
        return Err(after);
    };
    Ok(ProcessConfig {
        name: name.to_owned(),
        program: program_path(&program, base.folder),
        arguments,
        environment: environment.unwrap_or_default(),
        secrets: secrets.unwrap_or_default().into_iter().collect::<BTreeSet<_>>(),
        folder: folder.unwrap_or_else(|| base.folder.to_owned()),
        input,
        user,
        instances_min,
        instances_max,
        cpus: cpus.unwrap_or(CpusConfig::Any),
        after,
        ready,
        ready_within: ready_within.unwrap_or(Duration::from_secs(60)),
        restart,
        stop,
        ping,
        memory_bytes_max,
        files_max,
        core_bytes_max,
        is_once,
        is_singleton,
        reload,
        log_folder: log_folder.unwrap_or_else(|| base.log_folder.clone()),
    })
}

fn command(table: &mut Table<'_>) -> Result<(String, Vec<String>), ConfigError> {
    let command =
        table.take("command").ok_or_else(|| table.missing("command", "a list of a program and its arguments"))?;
    let refused = command.expected("a program and its arguments are allowed, each in quotation marks");
    let mut command = texts(command)?.into_iter();
    let program = command.next().filter(|program| !program.is_empty()).ok_or(refused)?;
    Ok((program, command.collect()))
}

/// Skips relative `PATH` entries: a later supervisor may have another current directory. An unknown name is refused
/// later.
fn program_path(program: &str, base: &Path) -> PathBuf {
    if program.contains('/') {
        return base.join(program);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).filter(|folder| folder.has_root());
    let found = folders.map(|folder| folder.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| PathBuf::from(program))
}

fn texts(value: Value<'_>) -> Result<Vec<String>, ConfigError> {
    let read = |value: Value<'_>| {
        let text = value.text()?;
        if text.contains('\0') {
            return Err(value.expected("a text without a zero byte is allowed"));
        }
        Ok(text.to_owned())
    };
    value.list()?.into_iter().map(read).collect()
}

/// Errors never show values, which may be secrets.
fn environment(document: &Document<'_>, process: &str, value: Value<'_>, refusals: &mut Refusals) -> Variables {
    let mut variables = Variables::default();
    let refused = value.refuse("a table of texts is allowed, as { NAME = \"TEXT\" }");
    let table = refusals.keep(value.table().map_err(|_| refused));
    for (name, value) in table.into_iter().flat_map(Table::named_values) {
        if name.is_empty() || name.contains(['=', '\0']) {
            // The text after the sign may be a value.
            refusals.add(document.refuse(&format!("{process}.environment"), "a name without = is allowed"));
            continue;
        }
        match value.text() {
            Err(_) => refusals.add(value.refuse("a text in quotation marks is allowed")),
            Ok(text) if text.contains('\0') => refusals.add(value.refuse("a text without a zero byte is allowed")),
            Ok(text) => drop(variables.insert(name, text.to_owned())),
        }
    }
    variables
}

fn group(value: &Value<'_>) -> Result<u32, ConfigError> {
    let name = value.text()?;
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(value.expected("a group of this machine is allowed")),
        Err(errno) => Err(value.refuse(format!("the groups of this machine cannot be read: {errno}"))),
    }
}

fn user(value: &Value<'_>) -> Result<UserConfig, ConfigError> {
    let name = value.text()?;
    match User::from_name(name) {
        Ok(Some(user)) => Ok(UserConfig { name: user.name, id: user.uid.as_raw(), group_id: user.gid.as_raw() }),
        Ok(None) => Err(value.expected("a user of this machine is allowed")),
        Err(errno) => Err(value.refuse(format!("the users of this machine cannot be read: {errno}"))),
    }
}

/// `copies` is the former name of `instances`.
fn take_instances<'a>(table: &mut Table<'a>, refusals: &mut Refusals) -> Option<Value<'a>> {
    let (value, former) = (table.take("instances"), table.take_former("copies"));
    if let Some(former) = &former {
        match value {
            Some(_) => {
                refusals.add(former.refuse("`copies` is the former name of `instances`, which is given as well"))
            }
            None => refusals.add_former(former.refuse("the key is called `instances` now; `copies` is still read")),
        }
    }
    value.or(former)
}

fn instances(value: Value<'_>) -> Result<(u32, u32), ConfigError> {
    let whole = |value: &Value<'_>, range| value.whole(range).map(|number| number as u32);
    if value.number().is_some() {
        return whole(&value, 1..=INSTANCES_MAX).map(|instances| (instances, instances));
    }
    let refused = value.expected("a number of instances is allowed, or { min = 1, max = 4 }");
    let mut table = value.table().map_err(|_| refused)?;
    let min = table.get("min", |value| whole(value, 0..=INSTANCES_MAX))?.unwrap_or(1);
    let max = table.take("max");
    let max = max.map(|value| {
        let max = whole(&value, 1..=INSTANCES_MAX)?;
        if max < min {
            Err(value.expected(format!("{min}, the least, to {INSTANCES_MAX} are allowed")))
        } else {
            Ok(max)
        }
    });
    let max = max.transpose()?.unwrap_or(min.max(1));
    table.end()?;
    Ok((min, max))
}

fn cpus(value: Value<'_>) -> Result<CpusConfig, ConfigError> {
    if value.is_text() {
        return value.read(str::parse::<CpuMask>).map(|mask| CpusConfig::Masks(vec![mask]));
    }
    if value.is_list() {
        let refused = value.expected("a mask for each instance is allowed, as [\"1\", \"2-3\"]");
        let masks: Vec<CpuMask> =
            value.list()?.iter().map(|value| value.read(str::parse::<CpuMask>)).collect::<Result<_, _>>()?;
        return if masks.is_empty() { Err(refused) } else { Ok(CpusConfig::Masks(masks)) };
    }
    let refused = value.expected("a mask as \"2-3\", a list of masks, or { own = 1 } is allowed");
    let mut table = value.table().map_err(|_| refused)?;
    let own = table.take("own").ok_or_else(|| table.missing("own", "a number of CPUs for each instance"))?;
    let own = own.whole(1..=1024)?;
    table.end()?;
    Ok(CpusConfig::Own(own as u32))
}

fn dependency(value: Value<'_>) -> Result<Dependency, ConfigError> {
    if value.is_text() {
        return Ok(Dependency { process: value.text()?.to_owned(), stage: DependencyStage::Ready });
    }
    let refused = value.expected("the name of a process is allowed, or { process = \"NAME\", is = \"initialised\" }");
    let mut table = value.table().map_err(|_| refused)?;
    let process = table.get("process", |value| value.text().map(str::to_owned))?;
    let process = process.ok_or_else(|| table.missing("process", "the name of a process"))?;
    let stages = [("initialised", DependencyStage::Initialised), ("ready", DependencyStage::Ready)];
    let stage = table.get("is", |value| value.choice(&stages))?.unwrap_or(DependencyStage::Ready);
    table.end()?;
    Ok(Dependency { process, stage })
}

fn readiness(value: Value<'_>, base: &Path) -> Result<Readiness, ConfigError> {
    if value.is_text() {
        return value.choice(&[("started", PlainReadiness::Started), ("notify", PlainReadiness::Notify)]).map(|way| {
            match way {
                PlainReadiness::Started => Readiness::Started,
                PlainReadiness::Notify => Readiness::Notify,
            }
        });
    }
    let allowed = "\"started\", \"notify\", { route = \"NAME\" }, { address = \"127.0.0.1:80\" }, { socket = \"PATH\" } or \
                   { line = \"TEXT\" } is allowed";
    let (refused, several) = (value.expected(allowed), value.refuse(format!("exactly one of these: {allowed}")));
    let mut table = value.table().map_err(|_| refused)?;
    let found = [
        table.get("route", |value| value.text().map(|text| Readiness::Route(text.to_owned())))?,
        table.get("address", |value| value.address().map(Readiness::Address))?,
        table.get("socket", |value| match value.text()? {
            "" => Err(value.expected("the path of a Unix socket is allowed")),
            text => Ok(Readiness::Socket(base.join(text))),
        })?,
        table.get("line", |value| match value.text()? {
            "" => Err(value.expected("a part of a line is allowed")),
            text => Ok(Readiness::Line(text.to_owned())),
        })?,
    ];
    table.end()?;
    let mut found = found.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some(readiness), None) => Ok(readiness),
        _ => Err(several),
    }
}

#[derive(Clone, Copy)]
enum PlainReadiness {
    Started,
    Notify,
}

fn restart(mut table: Table<'_>, refusals: &mut Refusals) -> RestartConfig {
    let policies =
        [("always", RestartPolicy::Always), ("on-failure", RestartPolicy::OnFailure), ("never", RestartPolicy::Never)];
    let policy = refusals.optional(table.get("policy", |value| value.choice(&policies)));
    let backoff_first = refusals.optional(table.get("backoff_first", |value| value.duration(MILLISECOND..=HOUR)));
    let backoff_first = backoff_first.unwrap_or(Duration::from_millis(100));
    let backoff_max = refusals.optional(table.get("backoff_max", |value| value.duration(backoff_first..=DAY)));
    let restarts_max = refusals.optional(table.get("restarts_max", |value| value.whole(0..=1_000_000)));
    let within = refusals.optional(table.get("within", |value| value.duration(MILLISECOND..=DAY)));
    let healthy_after = refusals.optional(table.get("healthy_after", |value| value.duration(MILLISECOND..=DAY)));
    refusals.extend(table.unknown());
    RestartConfig {
        policy: policy.unwrap_or(RestartPolicy::Always),
        backoff_first,
        backoff_max: backoff_max.unwrap_or(Duration::from_secs(30).max(backoff_first)),
        restarts_max: restarts_max.unwrap_or(10) as u32,
        within: within.unwrap_or(Duration::from_secs(60)),
        healthy_after: healthy_after.unwrap_or(Duration::from_secs(10)),
    }
}

fn stop(mut table: Table<'_>, refusals: &mut Refusals) -> StopConfig {
    let default = StopConfig::default();
    let signal = refusals.optional(table.get("signal", |value| value.choice(StopSignal::NAMES)));
    let grace = refusals.optional(table.get("grace", |value| value.duration(Duration::ZERO..=DAY)));
    refusals.extend(table.unknown());
    StopConfig { signal: signal.unwrap_or(default.signal), grace: grace.unwrap_or(default.grace) }
}

fn ping(value: Value<'_>, ready: Option<&Readiness>, refusals: &mut Refusals) -> Option<PingConfig> {
    let refused = value.expected("{ every = \"1 s\", within = \"500 ms\", failures_max = 3 } is allowed");
    let mut table = refusals.keep(value.table().map_err(|_| refused))?;
    let own = refusals.keep(table.get("route", |value| value.text().map(str::to_owned)));
    let route = match (own, ready) {
        (Some(Some(route)), _) => Some(route),
        (Some(None), Some(Readiness::Route(route))) => Some(route.clone()),
        (Some(None), Some(_)) => {
            refusals.add(table.missing("route", "a route that the process serves"));
            None
        }
        (None, _) | (_, None) => None,
    };
    let every = refusals.optional(table.get("every", |value| value.duration(Duration::from_millis(100)..=DAY)));
    let within = refusals.optional(table.get("within", |value| value.duration(MILLISECOND..=HOUR)));
    let failures_max = refusals.optional(table.get("failures_max", |value| value.whole(1..=1000)));
    refusals.extend(table.unknown());
    Some(PingConfig {
        route: route?,
        every: every.unwrap_or(Duration::from_secs(1)),
        within: within.unwrap_or(Duration::from_millis(500)),
        failures_max: failures_max.unwrap_or(3) as u32,
    })
}
