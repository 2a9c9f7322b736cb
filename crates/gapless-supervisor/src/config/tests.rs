//! Valid configurations, and error messages of invalid ones.

use super::SupervisorConfig;
use super::process::{CpusConfig, Dependency, DependencyStage, Readiness, RestartPolicy, StopSignal};
use crate::state_directory::StateDirectory;
use std::path::Path;
use std::time::Duration;

fn parse(text: &str) -> Result<SupervisorConfig, String> {
    SupervisorConfig::parse(text, "floor.toml", Path::new("/tmp/floor.toml")).map_err(|error| error.to_string())
}

#[test]
fn name_and_command_suffice() {
    let config = parse("[process.sleeper]\ncommand = [\"/bin/sleep\", \"1\"]").unwrap();
    assert_eq!(config.directory, Path::new("/tmp/floor.state"));
    assert_eq!(config.domain, Path::new("/tmp/floor.state/domain"));
    let process = config.process("sleeper").unwrap();
    assert_eq!((process.program.as_path(), &process.arguments[..]), (Path::new("/bin/sleep"), &["1".to_owned()][..]));
    assert_eq!((process.instances_min, process.instances_max, &process.cpus), (1, 1, &CpusConfig::Any));
    assert_eq!((&process.ready, process.restart.policy), (&Readiness::Started, RestartPolicy::Always));
    assert_eq!((process.stop.signal, process.stop.grace), (StopSignal::Terminate, Duration::from_secs(10)));
    assert_eq!(process.log_folder, Path::new("/tmp/floor.state/logs"));
    assert_eq!(config.process("nobody"), None);
}

#[test]
fn all_options_are_parsed() {
    let config = parse(
        r#"
        [supervisor]
        directory = "kept"
        domain = "/run/shop"
        log_bytes_max = "1 MiB"
        logs_kept = 3

        [process.matching]
        command = ["sh", "-c", "exec sleep 1"]
        folder = "/"

        [process.calculator]
        command = ["/bin/sh"]
        input = "/dev/zero"
        environment = { RUST_LOG = "info", API_KEY = "x" }
        secrets = ["API_KEY"]
        instances = { min = 2, max = 4 }
        cpus = "0"
        after = ["matching", { process = "matching", is = "initialised" }]
        ready = { route = "shop/double" }
        ready_within = "5 s"
        restart = { policy = "on-failure", backoff_first = "50 ms", backoff_max = "2 s", restarts_max = 3, within = "1 min", healthy_after = 20 }
        stop = { signal = "SIGINT", grace = "500 ms" }
        ping = { every = "2 s", failures_max = 5 }
        memory_max = "512 MiB"
        files_max = 4096
        core_max = 0
        singleton = true
        reload = { program = true, input = true, file = false }
        log_folder = "/var/log"
        "#,
    )
    .unwrap();
    assert_eq!(config.directory, Path::new("/tmp/kept"));
    assert_eq!((config.log_bytes_max, config.logs_kept), (1 << 20, 3));
    assert!(config.process("matching").unwrap().program.has_root());
    let process = config.process("calculator").unwrap();
    assert_eq!((process.instances_min, process.instances_max), (2, 4));
    let after = |stage| Dependency { process: "matching".to_owned(), stage };
    assert_eq!(process.after, [after(DependencyStage::Ready), after(DependencyStage::Initialised)]);
    assert_eq!(process.ready, Readiness::Route("shop/double".to_owned()));
    assert_eq!(process.restart.healthy_after, Duration::from_secs(20));
    let ping = process.ping.as_ref().unwrap();
    assert_eq!(
        (ping.route.as_str(), ping.every, ping.within),
        ("shop/double", Duration::from_secs(2), Duration::from_millis(500))
    );
    assert_eq!((process.memory_bytes_max, process.core_bytes_max), (Some(512 << 20), Some(0)));
    assert_eq!((process.reload.on_program, process.reload.on_file, process.is_singleton), (true, false, true));
    assert!(process.reload.is_overlapping && process.reload.on_input);
    assert_eq!(process.input.as_deref(), Some(Path::new("/dev/zero")));
}

#[test]
fn wrong_paths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let parse = |text: &str| SupervisorConfig::parse(text, "floor.toml", &folder.path().join("floor.toml"));
    let a = "[process.a]\ncommand = [\"/bin/true\"]\n";
    let of = |directory: &str| format!("[supervisor]\ndirectory = \"{directory}\"\n{a}");
    let refused = |text: &str, expected: &str| {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    parse(&of("empty")).unwrap();
    StateDirectory::create(&folder.path().join("begun"), None).unwrap();
    parse(&of("begun")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    refused(&of("file"), "floor.toml:2: supervisor.directory: ");
    refused(&of("file"), "is no directory");
    refused(&of(""), "is no state directory and holds other files; an empty or a new one is expected");
    let wanted = "floor.toml:3: process.a.ready.socket: \"\" was found; the path of a Unix socket is allowed";
    refused(&format!("{a}ready = {{ socket = \"\" }}"), wanted);
}

#[test]
fn former_key_is_read_with_a_warning() {
    let text = |key: &str| {
        format!(
            "[process.a]\ncommand = [\"/bin/true\"]\n{key} = {{ min = 2, max = 3 }}\n\
             [process.b]\ncommand = [\"/bin/true\"]\n{key} = 4\n"
        )
    };
    let (former, config) = (parse(&text("copies")).unwrap(), parse(&text("instances")).unwrap());
    assert_eq!((former.processes[0].instances_min, former.processes[0].instances_max), (2, 3));
    assert!(former.is_equivalent(&config) && config.warning.is_none());
    let expected =
        "floor.toml:3: process.a.copies: the key is called `instances` now; `copies` is still read, also in line 6";
    assert_eq!(former.warning.as_deref(), Some(expected));
    let error = parse("[process.a]\ncommand = [\"/bin/true\"]\ninstances = 1\ncopies = 1\n").unwrap_err();
    assert_eq!(
        error,
        "floor.toml:4: process.a.copies: `copies` is the former name of `instances`, which is given as well"
    );
}

#[test]
fn errors_name_the_line() {
    let a = "[process.a]\ncommand = [\"/bin/true\"]\n";
    let own = format!("{a}cpus = {{ own = 1 }}\ninstances = {{ max = 1000 }}");
    let cases: &[(&str, &str)] = &[
        ("", "floor.toml:1: process: no process is named"),
        ("process = 1", "floor.toml:1: process: 1 was found; a table is allowed"),
        ("[proces.a]", "floor.toml:1: proces: unknown; supervisor, process are allowed here"),
        ("[process.a]", "floor.toml:1: process.a.command: missing; a list of a program and its arguments"),
        ("[process.\"a/b\"]\ncommand = [\"/bin/true\"]", "floor.toml:1: process.a/b: letters, digits"),
        ("[process.a]\ncommand = \"/bin/true\"", "floor.toml:2: process.a.command: \"/bin/true\" was found; a list"),
        ("[process.a]\ncommand = []", "floor.toml:2: process.a.command: a list was found; a program and its arguments"),
        (
            "[process.a]\n\ncommand = [\"/bin/nobody\"]",
            "floor.toml:3: process.a.command: /bin/nobody cannot be started",
        ),
        (
            "[process.a]\ncommand = [\"no-such-program\"]",
            "floor.toml:2: process.a.command: no-such-program is not on the PATH, which is \"",
        ),
        ("[process.a]\ncommand = [\"/etc/passwd\"]", "floor.toml:2: process.a.command: /etc/passwd is not executable"),
        ("[process.a]\ncommand = [\"/bin\"]", "floor.toml:2: process.a.command: /bin is no program"),
        (&format!("{a}nice = 3"), "floor.toml:3: process.a.nice: unknown; command, folder,"),
        (&format!("{a}instances = 0"), "floor.toml:3: process.a.instances: 0 was found; whole numbers from 1 to 1000"),
        (
            &format!("{a}instances = {{ min = 3, max = 2 }}"),
            "floor.toml:3: process.a.instances.max: 2 was found; 3, the least, to 1000",
        ),
        (&format!("{a}instances = \"2\""), "floor.toml:3: process.a.instances: \"2\" was found; a number of instances"),
        (&format!("{a}after = [\"b\"]"), "floor.toml:3: process.a.after: \"b\" is no process of this file; a are"),
        (
            &format!("{a}after = [\"a\"]"),
            "floor.toml:3: process.a.after: a circle, in which each waits for the next: a → a",
        ),
        (
            &format!("{a}user = \"nobody-at-all\""),
            "floor.toml:3: process.a.user: \"nobody-at-all\" was found; a user of this machine",
        ),
        (&format!("{a}folder = \"/nowhere\""), "floor.toml:3: process.a.folder: /nowhere is no folder"),
        (
            &format!("{a}input = \"no-such-file\""),
            "floor.toml:3: process.a.input: /tmp/no-such-file cannot be read: No such file",
        ),
        (&format!("{a}input = \"/proc\""), "floor.toml:3: process.a.input: /proc is no file"),
        (&format!("{a}reload = {{ input = true }}"), "floor.toml:3: process.a.reload.input: there is no `input`"),
        (&format!("{a}secrets = [\"NO_SUCH_SECRET\"]"), "floor.toml:3: process.a.secrets: NO_SUCH_SECRET is neither"),
        (&format!("{a}environment = {{ A = 1 }}"), "floor.toml:3: process.a.environment.A: a text in quotation"),
        (&format!("{a}environment = {{ \"A=B\" = \"\" }}"), "floor.toml:3: process.a.environment: a name without ="),
        (&format!("{a}cpus = \"1000\""), "floor.toml:3: process.a.cpus: "),
        (&format!("{a}cpus = []"), "floor.toml:3: process.a.cpus: a list was found; a mask for each instance"),
        (&own, "floor.toml:3: process.a.cpus: 1000 CPUs are asked for up to here"),
        (
            &format!("{a}ready = \"soon\""),
            "floor.toml:3: process.a.ready: \"soon\" was found; \"started\", \"notify\" are allowed",
        ),
        (
            &format!("{a}ready = {{ line = \"x\", route = \"y\" }}"),
            "floor.toml:3: process.a.ready: exactly one of these",
        ),
        (
            &format!("{a}ready = {{ line = \"\" }}"),
            "floor.toml:3: process.a.ready.line: \"\" was found; a part of a line",
        ),
        (
            &format!("{a}ready = {{ route = \"a b\" }}"),
            "floor.toml:3: process.a.ready.route: \"a b\" is no route's name",
        ),
        (
            &format!("{a}ready = {{ route = \".a\" }}"),
            "floor.toml:3: process.a.ready.route: route: names that begin with '.'",
        ),
        (&format!("{a}ping = {{ route = \"/a\" }}"), "floor.toml:3: process.a.ping.route: \"/a\" is no route's name"),
        (
            &format!("{a}ping = {{ route = \"a\", every = \"1 ms\" }}"),
            "floor.toml:3: process.a.ping.every: \"1 ms\" was found; 100 ms to 1 d",
        ),
        (&format!("{a}ping = {{ route = \"a\", failures_max = 0 }}"), "floor.toml:3: process.a.ping.failures_max: 0"),
        (&format!("{a}ping = {{}}"), "floor.toml:3: process.a.ping.route: missing; a route"),
        (&format!("{a}ping = {{ every = \"1 s\" }}"), "floor.toml:3: process.a.ping.route: missing; a route"),
        (
            &format!("{a}restart = {{ policy = \"often\" }}"),
            "floor.toml:3: process.a.restart.policy: \"often\" was found; \"always\", \"on-failure\", \"never\"",
        ),
        (
            &format!("{a}restart = {{ backoff_first = \"2 s\", backoff_max = \"1 s\" }}"),
            "floor.toml:3: process.a.restart.backoff_max: \"1 s\" was found; 2 s to 1 d",
        ),
        (
            &format!("{a}once = true\nrestart = {{ policy = \"always\" }}"),
            "floor.toml:4: process.a.restart.policy: a task",
        ),
        (&format!("{a}once = true\nsingleton = true"), "floor.toml:4: process.a.singleton: a task"),
        (
            &format!("{a}stop = {{ signal = \"SIGKILL\", grace = 1 }}"),
            "floor.toml:3: process.a.stop.grace: SIGKILL leaves no time",
        ),
        (
            &format!("{a}stop = {{ signal = \"TERM\" }}"),
            "floor.toml:3: process.a.stop.signal: \"TERM\" was found; \"SIGTERM\"",
        ),
        (&format!("{a}memory_max = 5"), "floor.toml:3: process.a.memory_max: 5 was found; 1 MiB to 1024 TiB"),
        (&format!("[supervisor]\nsteer = true\n{a}"), "floor.toml:2: supervisor.steer: a group is missing"),
        (
            &format!("[supervisor]\ngroup = \"no-such-group\"\n{a}"),
            "floor.toml:2: supervisor.group: \"no-such-group\" was found; a group of this machine",
        ),
        (
            &format!("[supervisor]\nlog_bytes_max = 100\n{a}"),
            "floor.toml:2: supervisor.log_bytes_max: 100 was found; 4 KiB to 1 TiB",
        ),
        (
            &format!("[supervisor]\nlogs_kept = 101\n{a}"),
            "floor.toml:2: supervisor.logs_kept: 101 was found; whole numbers from 0 to 100",
        ),
        ("[process.a", "floor.toml:1: "),
    ];
    for (text, expected) in cases {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text}\nfound    {error}\nexpected {expected}");
    }
}

#[test]
fn errors_are_listed_by_line() {
    let text = r#"[supervisor]
logs_kept = 101
[process.a]
command = ["/bin/true"]
after = ["b", "nobody", 5]
instances = "many"
restart = { policy = "often", within = "soon", pause = 1 }
what = 1
[process.b]
command = ["/nowhere/b"]
environment = { A = 1, B = "b", C = [] }
[process.c]
command = ["/nowhere/c"]
after = ["a", "nobody"]
singleton = true
once = true
[process.d]
folder = "/"
ready = 5
ping = { every = "1 s" }
[other]
"#;
    let error = SupervisorConfig::parse(text, "floor.toml", Path::new("/tmp/floor.toml")).unwrap_err();
    let found: Vec<String> = error.iter().map(ToString::to_string).collect();
    let expected = [
        "floor.toml:2: supervisor.logs_kept: 101",
        "floor.toml:5: process.a.after: 5 was found",
        "floor.toml:5: process.a.after: \"nobody\" is no process",
        "floor.toml:6: process.a.instances: \"many\"",
        "floor.toml:7: process.a.restart.policy: \"often\"",
        "floor.toml:7: process.a.restart.within: \"soon\"",
        "floor.toml:7: process.a.restart.pause: unknown",
        "floor.toml:8: process.a.what: unknown",
        "floor.toml:11: process.b.environment.A: a text",
        "floor.toml:11: process.b.environment.C: a text",
        // Processes without errors of their own are also checked for inconsistencies.
        "floor.toml:13: process.c.command: /nowhere/c cannot be started",
        "floor.toml:14: process.c.after: \"nobody\" is no process of this file; c, a, b, d are",
        "floor.toml:15: process.c.singleton: a task",
        "floor.toml:17: process.d.command: missing",
        "floor.toml:19: process.d.ready: 5 was found",
        "floor.toml:21: other: unknown",
    ];
    let is_so = |(found, expected): (&String, &&str)| found.starts_with(expected);
    assert!(found.len() == expected.len() && found.iter().zip(&expected).all(is_so), "{found:#?}");
    assert_eq!(error.to_string(), found.join("; "), "in one line");
}

#[test]
fn errors_hide_secrets() {
    let environments = [
        "environment = { KEY = \"hunter2 }",
        "environment = { KEY = hunter2 }",
        "environment = { KEY = [\"hunter2\"] }",
        "environment = { KEY = { hunter2 = 1 } }",
        "environment = { KEY = \"hunter2\\u0000\" }",
        "environment = { KEY = \"hunter2\\q\" }",
        "environment = { KEY = \"hunter2\", KEY = \"hunter2\" }",
        "environment = { \"KEY=hunter2\" = \"\" }",
        "environment = \"KEY=hunter2\"",
        "environment = [\"KEY=hunter2\"]",
        "environment.KEY = \"hunter2",
        "environment.KEY = \"hunter2\" \"more\"",
        "environment.KEY = '''hunter2",
        "environment.KEY: hunter2",
        "environment.KEY = \"hunter2\"\ninstances = \"many\"",
    ];
    for environment in environments {
        let text = format!("[process.a]\ncommand = [\"/bin/true\"]\nsecrets = [\"KEY\"]\n{environment}\n");
        let error = parse(&text).expect_err(&text);
        assert!(error.starts_with("floor.toml:") && !error.contains("hunter2"), "{text}\n{error}");
    }
    for number in ["4711", "4711.5", "true"] {
        let text = format!("[process.a]\ncommand = [\"/bin/true\"]\nenvironment = {{ PIN = {number} }}\n");
        assert!(!parse(&text).unwrap_err().contains(number), "{text}");
    }
}

#[test]
fn debug_output_hides_secrets() {
    let config = parse("[process.a]\ncommand = [\"/bin/true\"]\nenvironment = { KEY = \"hunter2\" }\n").unwrap();
    let (whole, process) = (format!("{config:?}"), format!("{:#?}", config.processes));
    assert!(whole.contains("KEY") && process.contains("KEY"), "names stay");
    assert!(!whole.contains("hunter2") && !process.contains("hunter2"), "{whole}\n{process}");
}

#[test]
fn dependency_cycles_are_named() {
    let process = |name: &str, after: &str| format!("[process.{name}]\ncommand = [\"/bin/true\"]\nafter = [{after}]\n");
    let text = [process("a", ""), process("b", "\"a\", \"d\""), process("c", "\"b\""), process("d", "\"c\"")].concat();
    let error = parse(&text).unwrap_err();
    assert!(
        error.contains("floor.toml:6: process.b.after: a circle, in which each waits for the next: b → d → c → b"),
        "{error}"
    );
}

#[test]
fn missing_file_is_named() {
    let error = SupervisorConfig::load("/nowhere/floor.toml").unwrap_err().to_string();
    assert!(error.contains("/nowhere/floor.toml"), "{error}");
}

#[test]
fn example_file_has_defaults() {
    let guide = include_str!("../../../../docs/guides/supervisor.toml");
    let of = |text: &str| SupervisorConfig::parse_in_force(text, Path::new("/tmp/supervisor.toml")).unwrap();
    let shortest = of("[process.calculator]\ncommand = [\"/bin/sleep\", \"1000\"]\n");
    assert_eq!(of(guide), shortest);
    // Keys without a default are valid as in the comments; "svc" and "traders" do not exist here.
    let all = guide.replace("\n#~ ", "\n").replace("\"svc\"", "\"root\"").replace("\"traders\"", "\"root\"");
    let all = of(&all);
    let process = all.process("calculator").unwrap();
    assert!(all.group.is_some() && all.cpus.is_some() && process.user.is_some() && process.ping.is_some());
    assert_ne!((&process.cpus, process.memory_bytes_max), (&CpusConfig::Any, None));
    assert_ne!((process.files_max, process.core_bytes_max), (None, None));
    assert!(process.input.is_some());
}

#[test]
fn path_excludes_current_directory() {
    assert!(Path::new("Cargo.toml").is_file());
    let error = parse("[process.a]\ncommand = [\"Cargo.toml\"]").unwrap_err();
    let path = std::env::var("PATH").unwrap();
    assert!(error.contains("Cargo.toml is not on the PATH") && error.contains(&path), "{error}");
}
