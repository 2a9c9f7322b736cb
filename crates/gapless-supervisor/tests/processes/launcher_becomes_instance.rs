use super::test_place::{TestPlace, lines, name};
use gapless_agent::CpuMask;
use gapless_supervisor::control_groups::ControlGroups;
use gapless_supervisor::launch::{STATUS_ALREADY, STATUS_FAILED};
use gapless_supervisor::state_directory::{LaunchPlan, ResourceLimits, UserIdentity};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::scenarios::Module;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

const NOBODY: u32 = 65534;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("instance_gets_exactly_its_plan", instance_gets_exactly_its_plan)
        .scenario("signals_are_reset", signals_are_reset)
        .scenario("instance_runs_as_its_user", instance_runs_as_its_user)
        .scenario("instance_joins_its_control_group", instance_joins_its_control_group)
        .scenario("input_must_be_a_readable_file", input_must_be_a_readable_file)
        .scenario("failures_are_reported_in_one_line", failures_are_reported_in_one_line)
        .scenario("unprivileged_failure_is_reported", unprivileged_failure_is_reported)
        .scenario("failure_on_full_disk_is_reported", failure_on_full_disk_is_reported)
        .scenario("superseded_plan_starts_nothing", superseded_plan_starts_nothing)
}

fn launch_below(place: &TestPlace, before: &str, plan: &LaunchPlan) -> ExitStatus {
    let instance = name("a.1");
    let files = place.directory.instance(&instance);
    files.prepare().unwrap();
    files.write_launch(plan).unwrap();
    let launcher = place.launcher(&instance, plan.incarnation);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$@\""), "sh"]).arg(launcher.get_program()).args(launcher.get_args());
    command.stderr(Stdio::null()).status().unwrap()
}

fn launch(place: &TestPlace, plan: &LaunchPlan) -> ExitStatus {
    launch_below(place, "", plan)
}

fn script(place: &TestPlace, incarnation: u64, text: &str) -> LaunchPlan {
    let mut plan = place.plan(&name("a.1"), incarnation, "");
    plan.program = "sh".into();
    plan.arguments = vec!["-c".to_owned(), text.to_owned(), "name".to_owned(), "x y".to_owned(), String::new()];
    plan
}

fn instance_gets_exactly_its_plan() {
    let place = TestPlace::without_supervisor();
    let folder = place.folder().join("a folder");
    std::fs::create_dir(&folder).unwrap();
    let text = "pwd; echo \"$# $1 $2\"; env | grep -v -e ^PWD -e ^SHLVL -e ^_ -e ^PATH -e ^OLDPWD | sort; ulimit -n; ulimit -c; \
                ulimit -Hn; grep Cpus_allowed_list /proc/self/status; wc -c; ls -l /proc/self/fd/0 | grep -c /dev/null; \
                ulimit -d; ulimit -v; cut -d ' ' -f 1,5,6 /proc/$$/stat; echo error >&2";
    let mut plan = script(&place, 1, text);
    plan.folder = folder.clone();
    plan.environment.insert("SECRET".to_owned(), "a\"b".to_owned());
    plan.notify_socket = Some("/run/notify".into());
    plan.limits = ResourceLimits { files_max: Some(64), core_bytes_max: Some(0), memory_bytes_max: Some(1 << 30) };
    plan.cpus = CpuMask::of(&[0]);
    std::fs::write(&plan.log, "from before\n").unwrap();
    assert!(launch_below(&place, "export OTHER=1; cd /;", &plan).success());
    let lines = lines(&plan.log);
    let expected = [
        "from before",
        folder.to_str().unwrap(),
        "2 x y ",
        "GAPLESS_COPY=a.1",
        "GAPLESS_INSTANCE=a.1",
        "NOTIFY_SOCKET=/run/notify",
        "SECRET=a\"b",
        "64",
        "0",
        "64",
        "Cpus_allowed_list:\t0",
        "0",
        "1",
        // Private memory, in KiB; the address space is unlimited because of shared regions.
        "1048576",
        "unlimited",
    ];
    assert_eq!(lines[..15], expected, "{lines:?}");
    let ids = lines[15].split(' ').collect::<Vec<_>>();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "it leads a session and a group: {ids:?}");
    assert_eq!(lines[16..], ["error"]);

    let mut plan = script(&place, 2, "echo runs");
    plan.cpus = CpuMask::of(&[0, 1023]);
    assert!(launch(&place, &plan).success());
    let lines = super::test_place::lines(&plan.log);
    assert!(lines[17].contains("1023") && lines[17].starts_with("a.1: ") && lines[18] == "runs", "{lines:?}");
}

fn signals_are_reset() {
    let place = TestPlace::without_supervisor();
    let plan = script(&place, 1, "cat /proc/self/status");
    assert!(launch_below(&place, "trap '' HUP INT CHLD USR1;", &plan).success());
    let lines = lines(&plan.log);
    let lines = lines.iter().filter(|line| ["SigBlk", "SigIgn", "SigCgt"].iter().any(|name| line.starts_with(name)));
    let lines = lines.collect::<Vec<_>>();
    // Signals reserved by the C library cannot be reset; an ancestor may have changed them.
    let changeable = |line: &&String| u64::from_str_radix(&line[line.len() - 16..], 16).unwrap() & !(3 << 31);
    assert!(lines.len() == 3 && lines.iter().all(|line| changeable(line) == 0), "{lines:?}");
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: only root may become another user");
    }
    is_root
}

fn instance_runs_as_its_user() {
    if !is_root() {
        return;
    }
    let place = TestPlace::without_supervisor();
    std::os::unix::fs::chown(place.folder(), Some(NOBODY), None).unwrap();
    let mut plan = script(&place, 1, "grep -e ^Uid -e ^Gid -e ^Groups -e ^Cap /proc/self/status");
    plan.identity = Some(UserIdentity { user: NOBODY, group: 12345, groups: vec![23456] });
    assert!(launch(&place, &plan).success());
    let lines = lines(&plan.log);
    let (user, group) = (format!("Uid:{}", "\t65534".repeat(4)), format!("Gid:{}", "\t12345".repeat(4)));
    assert_eq!(lines[..3], [&user, &group, "Groups:\t23456 "], "{lines:?}");
    assert!(lines[4].starts_with("CapPrm") && lines[4].ends_with("0000000000000000"), "{lines:?}");
    for identity in [
        UserIdentity { user: u32::MAX, group: 1, groups: vec![] },
        UserIdentity { user: 1, group: u32::MAX, groups: vec![] },
        UserIdentity { user: 1, group: 1, groups: vec![u32::MAX] },
    ] {
        plan.incarnation += 1;
        plan.identity = Some(identity);
        assert_eq!(
            launch(&place, &plan).code(),
            Some(i32::from(STATUS_FAILED)),
            "the kernel would take -1 for unchanged"
        );
    }
}

fn instance_joins_its_control_group() {
    let place = TestPlace::without_supervisor();
    let groups = match ControlGroups::make(&place.directory) {
        Ok(groups) => groups,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let group = groups.of_instance(&name("a.1"));
    let mut plan = script(&place, 1, "cat /proc/self/cgroup; ulimit -d");
    plan.cgroup = Some(group.clone());
    plan.limits.memory_bytes_max = Some(1 << 30);
    assert!(launch(&place, &plan).success());
    let told = lines(&plan.log);
    let is_in =
        told.iter().any(|line| line.ends_with(&format!("{}/a.1", groups.root().file_name().unwrap().display())));
    assert!(is_in, "{told:?}");
    match std::fs::read_to_string(group.join("memory.max")) {
        Ok(text) => assert_eq!((text.trim(), told.last().unwrap().as_str()), ("1073741824", "unlimited")),
        Err(_) => assert_eq!(told.last().unwrap(), "1048576"),
    }
    groups.remove();
    assert!(!groups.root().exists());
}

fn input_must_be_a_readable_file() {
    let place = TestPlace::without_supervisor();
    let input = place.folder().join("in put");
    std::fs::write(&input, "from a file\n").unwrap();
    let with = |incarnation, input: &Path, text: &str| LaunchPlan {
        input: Some(input.to_owned()),
        ..script(&place, incarnation, text)
    };
    // The launcher opens without blocking; the program's reads block as usual.
    let plan = with(1, &input, "cat; sed -n 's/^flags:.*\\(.....\\)$/\\1/p' /proc/$$/fdinfo/0");
    assert!(launch(&place, &plan).success());
    assert_eq!(lines(&plan.log)[0], "from a file");
    let flags = u32::from_str_radix(&lines(&plan.log)[1], 8).unwrap();
    assert_eq!(flags & 0o4000, 0, "{flags:o}");
    assert!(launch(&place, &with(2, Path::new("/dev/zero"), "head -c 1 | wc -c")).success());

    check_failure(&place, &with(3, Path::new("/no/input"), "echo never"), "opening its input /no/input: No such file");
    check_failure(&place, &with(4, place.folder(), "echo never"), "is no file");
    let pipe = place.folder().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    check_failure(&place, &with(5, &pipe, "echo never"), "is no file");
    if is_root() {
        std::os::unix::fs::chown(place.folder(), Some(NOBODY), None).unwrap();
        std::fs::set_permissions(&input, PermissionsExt::from_mode(0o600)).unwrap();
        let identity = Some(UserIdentity { user: NOBODY, group: NOBODY, groups: vec![] });
        check_failure(&place, &LaunchPlan { identity, ..with(6, &input, "cat") }, "in put: Permission denied");
    }
}

fn check_failure(place: &TestPlace, plan: &LaunchPlan, expected: &str) {
    let status = launch(place, plan);
    assert_eq!(status.code(), Some(i32::from(STATUS_FAILED)), "{expected}");
    let files = place.directory.instance(&name("a.1"));
    let failure = files.read_launch_failure(plan.incarnation).unwrap().expect("a reason");
    assert!(failure.reason.contains(expected) && !failure.already_runs, "{expected}: {failure:?}");
    assert!(!failure.reason.contains('\n'), "{failure:?}");
    assert!(files.lock().unwrap().is_some());
}

fn failures_are_reported_in_one_line() {
    let place = TestPlace::without_supervisor();
    let mut incarnation = 0;
    let mut plan = || {
        incarnation += 1;
        script(&place, incarnation, "echo never")
    };
    let check = |plan: LaunchPlan, expected: &str, in_log: bool| {
        check_failure(&place, &plan, expected);
        let told = lines(&plan.log).into_iter().filter(|line| line.contains(expected)).count();
        assert_eq!(told, usize::from(in_log), "{expected}");
        assert!(!lines(&plan.log).iter().any(|line| line == "never"));
    };
    check(LaunchPlan { program: "/no/such program".into(), ..plan() }, "/no/such program: No such file", true);
    check(LaunchPlan { program: "no-such-name".into(), ..plan() }, "no-such-name: No such file", true);
    let text = place.folder().join("text");
    std::fs::write(&text, "").unwrap();
    check(LaunchPlan { program: text, ..plan() }, "/text: Permission denied", true);
    check(LaunchPlan { folder: "/no/folder".into(), ..plan() }, "folder /no/folder", true);
    check(LaunchPlan { arguments: vec!["a\0b".to_owned()], ..plan() }, "running sh: ", true);
    check(LaunchPlan { log: "/no/log".into(), ..plan() }, "its log /no/log", false);
    check(LaunchPlan { log: place.folder().to_owned(), ..plan() }, "Is a directory", false);
    let few = ResourceLimits { files_max: Some(3), ..ResourceLimits::default() };
    check(LaunchPlan { limits: few, ..plan() }, "running sh: Too many open files", true);

    let plan = LaunchPlan { cgroup: Some("/no/group".into()), ..plan() };
    assert!(launch(&place, &plan).success());
    let told = lines(&plan.log);
    let [.., reason, never] = &told[..] else { panic!("{told:?}") };
    assert!(reason.contains("making the control group /no/group") && never == "never", "{told:?}");

    let instance = place.directory.instance(&name("a.1"));
    for text in ["", "{\"incarnation\":100}", "[[[[", "\u{0}"] {
        std::fs::write(instance.path().join("launch"), text).unwrap();
        let status = place.launcher(instance.name(), 100).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(i32::from(STATUS_FAILED)));
        let reason = instance.read_launch_failure(100).unwrap().unwrap().reason;
        assert!(reason.contains("a.1/launch"), "{reason}");
    }
    std::fs::remove_file(instance.path().join("launch")).unwrap();
    let output = place.launcher(instance.name(), 101).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("a.1: not started: there is no intent"), "{output:?}");
    std::fs::remove_dir_all(instance.path()).unwrap();
    let output = place.launcher(instance.name(), 102).output().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(STATUS_FAILED)), "{output:?}");
}

fn unprivileged_failure_is_reported() {
    if !is_root() {
        return;
    }
    let place = TestPlace::without_supervisor();
    let mut plan = script(&place, 1, "true");
    plan.program = "/no/such/program".into();
    plan.folder = "/".into();
    plan.identity = Some(UserIdentity { user: NOBODY, group: NOBODY, groups: vec![] });
    std::fs::write(place.directory.instance(&name("a.1")).path().with_file_name("x"), "").unwrap();
    check_failure(&place, &plan, "/no/such/program: No such file");
    plan.incarnation = 2;
    plan.program = "/no/such".into();
    check_failure(&place, &plan, "/no/such: No such file");
}

fn failure_on_full_disk_is_reported() {
    let place = TestPlace::without_supervisor();
    let Some(disk) = SmallDisk::mount(&place.folder().join("disk"), 64) else { return };
    let mut plan = script(&place, 1, "echo much; echo more >&2; echo runs > \"$0\"");
    plan.arguments[2] = place.folder().join("proof").to_str().unwrap().to_owned();
    plan.log = disk.path.join("log");
    let _full = std::fs::write(disk.path.join("filler"), vec![1; 100_000]);
    assert!(launch(&place, &plan).success());
    assert_eq!(lines(&place.folder().join("proof")), ["runs"]);
    plan.incarnation = 2;
    plan.program = "/no/such/program".into();
    check_failure(&place, &plan, "/no/such/program");
}

fn superseded_plan_starts_nothing() {
    let place = TestPlace::without_supervisor();
    let plan = script(&place, 5, "echo runs");
    let instance = name("a.1");
    let files = place.directory.instance(&instance);
    files.prepare().unwrap();
    files.write_launch(&plan).unwrap();
    for other in [4, 6] {
        let status = place.launcher(&instance, other).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(i32::from(STATUS_ALREADY)));
        let failure = files.read_launch_failure(other).unwrap().unwrap();
        assert!(failure.already_runs && failure.reason.contains("is 5"), "{failure:?}");
    }
    assert!(launch(&place, &plan).success());
    let again = launch(&place, &plan);
    assert_eq!(again.code(), Some(i32::from(STATUS_ALREADY)), "a plan starts only once");
    assert_eq!(lines(&plan.log), ["runs"]);
}
