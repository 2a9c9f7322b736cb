//! Every option by every name, every default, every refusal.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{CommandFactory, Parser};

use super::settings::*;
use super::*;
use gapless_measure::workbook::CellAddress;

#[derive(Debug, Parser)]
#[command(name = "canonical")]
struct TestProgram {
    #[command(flatten)]
    arguments: CanonicalArguments,
}

fn parse(line: &[&str]) -> Result<CanonicalArguments, String> {
    let line = std::iter::once("canonical").chain(line.iter().copied());
    TestProgram::try_parse_from(line).map(|program| program.arguments).map_err(|error| error.to_string())
}

fn resolve(line: &str) -> Result<CanonicalOptions, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let cpus = BTreeSet::from([0, 1]);
    parse(&words)?.resolve(&cpus).map_err(|error| error.to_string())
}

fn single(line: &str) -> RunSettings {
    match resolve(line).unwrap().plan {
        RunPlan::Single(run) => *run,
        RunPlan::Matrix(_) => panic!("{line} is a single run"),
    }
}

fn matrix(line: &str) -> Vec<RunSettings> {
    match resolve(line).unwrap().plan {
        RunPlan::Matrix(runs) => runs,
        RunPlan::Single(_) => panic!("{line} is a matrix"),
    }
}

/// Each option of the reference: published long name, short letter, our long name, a value, and whether it arrived.
type Expectation = (&'static str, &'static str, &'static str, Option<&'static str>, fn(&CanonicalArguments) -> bool);

fn mask(text: &str) -> Option<CpuMask> {
    Some(text.parse().unwrap())
}

const REFERENCE: &[Expectation] = &[
    ("--encoding", "-l", "--encoding", Some("sbe.random"), |a| a.encoding == Some(MessageEncoding::SbeRandom)),
    ("--count", "-c", "--count", Some("5"), |a| a.count == Some(5)),
    ("--rate", "-r", "--rate", Some("6"), |a| a.rate == Some(6)),
    ("--warmupTime", "-t", "--warmup-time", Some("0.5"), |a| a.warmup_time == Some(0.5)),
    ("--emptyMessage", "-E", "--empty-message", None, |a| a.empty_message),
    ("--noLatencyWrites", "-a", "--no-latency-writes", None, |a| a.no_latency_writes),
    ("--printIntervalStats", "-b", "--print-interval-stats", None, |a| a.print_interval_stats),
    ("--outputFile", "-O", "--output-file", Some("x.xlsx"), |a| a.output_file == Some("x.xlsx".into())),
    ("--outputCell", "-C", "--output-cell", Some("5-3"), |a| a.output_cell == CellAddress::new(5, 3)),
    ("--outputThroughput", "-T", "--output-throughput", None, |a| a.output_throughput),
    ("--injectorCPUAffinityMask", "-j", "--injector-cpu-mask", Some("[1]"), |a| a.injector_cpu_mask == mask("[1]")),
    ("--muxCPUAffinityMask", "-y", "--service-cpu-mask", Some("[0,1]"), |a| a.service_cpu_mask == mask("[0,1]")),
    ("--busDetachedSendCPUAffinityMask", "-o", "--detached-send-cpu-mask", Some("[2]"), |a| {
        a.detached_send_cpu_mask == mask("[2]")
    }),
    ("--busDetachedSend", "-u", "--detached-send", None, |a| a.detached_send),
    ("--busDetachedSendQueueDepth", "-n", "--detached-send-queue-depth", Some("64"), |a| {
        a.detached_send_queue_depth == Some(64)
    }),
    ("--enablePersistence", "-e", "--enable-persistence", None, |a| a.enable_persistence),
    ("--persisterLogLocation", "-k", "--log-location", Some("dir"), |a| a.log_location == Some("dir".into())),
    ("--persisterInitialLogLength", "-i", "--initial-log-length", Some("2"), |a| a.initial_log_length == Some(2.0)),
    ("--persisterZeroOutInitial", "-z", "--zero-out-initial", None, |a| a.zero_out_initial),
    ("--persisterWriteBufferSize", "-w", "--write-buffer-size", Some("4096"), |a| a.write_buffer_size == Some(4096)),
    ("--persisterFlushOnCommit", "-f", "--flush-on-commit", None, |a| a.flush_on_commit),
    ("--persisterFlushUsingMappedMemory", "-m", "--flush-using-mapped-memory", None, |a| a.flush_using_mapped_memory),
    ("--persisterDetached", "-d", "--detached-persister", None, |a| a.detached_persister),
    ("--persisterWriterCPUAffinityMask", "-x", "--persister-cpu-mask", Some("[1]"), |a| {
        a.persister_cpu_mask == mask("[1]")
    }),
    ("--enableClustering", "-v", "--enable-clustering", None, |a| a.enable_clustering),
    ("--clusteringLocalIfAddr", "-I", "--clustering-interface", Some("10.0.0.1"), |a| {
        a.clustering_interface == Some([10, 0, 0, 1].into())
    }),
    ("--clusteringDiscoveryLocalIfAddr", "-U", "--discovery-interface", Some("10.0.0.2"), |a| {
        a.discovery_interface == Some([10, 0, 0, 2].into())
    }),
    ("--clusteringLinkSpinRead", "-W", "--replication-spin-read", None, |a| a.replication_spin_read),
    ("--clusteringLinkReaderCPUAffinityMask", "-V", "--replication-reader-cpu-mask", Some("[1]"), |a| {
        a.replication_reader_cpu_mask == mask("[1]")
    }),
    ("--clusteringDetachedSend", "-S", "--replication-detached-send", None, |a| a.replication_detached_send),
    ("--clusteringDetachedSenderCPUAffinityMask", "-A", "--replication-sender-cpu-mask", Some("[1]"), |a| {
        a.replication_sender_cpu_mask == mask("[1]")
    }),
    ("--clusteringDetachedDispatch", "-D", "--replication-detached-dispatch", None, |a| {
        a.replication_detached_dispatch
    }),
    ("--clusteringDetachedDispatcherCPUAffinityMask", "-B", "--replication-dispatcher-cpu-mask", Some("[1]"), |a| {
        a.replication_dispatcher_cpu_mask == mask("[1]")
    }),
];

#[test]
fn reference_options_have_all_names() {
    assert_eq!(REFERENCE.len(), 33);
    for &(published, short, long, value, arrived) in REFERENCE {
        for name in [published, short, long] {
            let line: Vec<&str> = std::iter::once(name).chain(value).collect();
            let arguments = parse(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            assert!(arrived(&arguments), "{line:?} did not arrive");
            let is_of_ours = ["--enableClustering", "--clusteringLocalIfAddr", "--clusteringDiscoveryLocalIfAddr"];
            let chooses = is_of_ours.contains(&published);
            assert_eq!(
                arguments.is_default_matrix(),
                chooses,
                "{line:?} makes a single run, unless it chooses from the matrix"
            );
            let others = REFERENCE.iter().filter(|(_, _, _, _, arrived)| arrived(&arguments)).count();
            assert_eq!(others, 1, "{line:?} set something else as well");
        }
    }
}

#[test]
fn help_has_examples_and_defaults() {
    TestProgram::command().debug_assert();
    let help = TestProgram::command().render_long_help().to_string();
    for expected in ["Examples:", "10,000,000", "100,000", "1024", "8192", "0.0.0.0", "--write-buffer-size", "ROW-COL"]
    {
        assert!(help.contains(expected), "{expected} is missing in the help");
    }
    assert!(!help.contains("warmupTime"), "published names are aliases and not shown");
}

#[test]
fn default_is_the_short_matrix() {
    let runs = matrix("");
    assert_eq!(runs.len(), 9);
    let distinct: BTreeSet<String> =
        runs.iter().map(|run| format!("{} {} {}", run.mode, run.encoding, run.sessions)).collect();
    assert_eq!(distinct.len(), 9);
    let latency = |sessions| {
        let of = |run: &&RunSettings| run.mode == RunMode::Latency && run.sessions == sessions;
        runs.iter().filter(of).map(|run| run.encoding).collect::<Vec<_>>()
    };
    assert_eq!((latency(1), latency(1000)), (MessageEncoding::ALL.to_vec(), vec![MessageEncoding::SbeSerial]));
    for run in &runs {
        assert_eq!((run.tier, run.cpu, run.program), (RunTier::Journal, CpuConfiguration::Default, ServiceKind::Es));
        assert_eq!((run.repeats_per_million, run.client_processes), (10_000, 0));
        assert!(run.mode == RunMode::Latency || run.sessions == 1000);
        assert_eq!(run.rate_per_s, (run.mode == RunMode::Latency).then_some(10_000));
        assert_eq!(run.journal.as_ref().unwrap().directory, None);
    }
    assert_eq!(resolve("").unwrap().output, OutputSettings::default());
}

#[test]
fn ours_choose_from_the_matrix() {
    assert_eq!(matrix("--all").len(), 3 * 3 * (2 * 4 + 1));
    assert_eq!(matrix("--all --tier sync").len(), 3 * (2 * 4 + 1));
    assert_eq!(matrix("--all --cpu min --mode latency").len(), 3 * (4 + 1));
    assert!(matrix("--mode throughput --tier memory").iter().all(|run| {
        run.mode == RunMode::Throughput
            && run.tier == RunTier::Memory
            && run.journal.is_none()
            && run.rate_per_s.is_none()
    }));
    assert!(matrix("--cpu MAX").iter().all(|run| run.cpu == CpuConfiguration::Max));
    assert_eq!(matrix("--mode throughput --sessions 7").len(), 4);
    let runs = matrix("--sessions 7 --repeat-percent 2.5 --client-processes 3 --program es");
    assert!(runs.iter().all(|run| {
        (run.sessions, run.repeats_per_million, run.client_processes, run.program) == (7, 25_000, 3, ServiceKind::Es)
    }));
}

#[test]
fn single_run_has_reference_defaults() {
    let run = single("-e");
    assert_eq!(run.encoding, MessageEncoding::ProtobufSerial);
    assert_eq!((run.count, run.rate_per_s, run.warm_up_ns), (10_000_000, Some(100_000), 2_000_000_000));
    assert_eq!((run.mode, run.tier, run.cpu), (RunMode::Latency, RunTier::Journal, CpuConfiguration::Default));
    assert!(!run.empty_message && run.detached_send_queue_depth.is_none());
    assert_eq!(run.affinity, Affinity::default());
    assert_eq!(
        run.journal,
        Some(JournalSettings {
            directory: None,
            initial_length_bytes: 1 << 30,
            zero_out_initial: false,
            write_buffer_bytes: 8192,
            flush_on_commit: false,
            mapped: Some(false),
            detached: None,
        })
    );
    assert_eq!(single("-u").detached_send_queue_depth, Some(1024));
}

#[test]
fn published_command_line_is_accepted() {
    let options = resolve(
        "-l xbuf2.serial -c 600000 -r 10000 -t 10 -e -f -d -x [1] -y [0] --busDetachedSend \
         --busDetachedSendQueueDepth 2048 --persisterLogLocation logs -i 4 -z -w 65536 -m -a -b",
    )
    .unwrap();
    assert_eq!(options.warnings, Vec::<String>::new());
    assert_eq!(options.output, OutputSettings { print_interval_stats: true, ..OutputSettings::default() });
    let RunPlan::Single(run) = options.plan else { panic!("a single run") };
    assert_eq!((run.count, run.rate_per_s, run.warm_up_ns), (600_000, Some(10_000), 10_000_000_000));
    assert_eq!(run.detached_send_queue_depth, Some(2048));
    assert_eq!((run.affinity.service, run.affinity.persister), (mask("[0]"), mask("[1]")));
    let journal = run.journal.unwrap();
    assert_eq!(journal.directory, Some("logs".into()));
    assert_eq!((journal.initial_length_bytes, journal.write_buffer_bytes), (4 << 30, 65_536));
    assert!(journal.flush_on_commit && journal.zero_out_initial);
    assert_eq!((journal.mapped, journal.detached), (Some(true), Some(true)));
}

#[test]
fn other_names_of_the_encodings() {
    for (text, encoding) in [
        ("sbe.serial", MessageEncoding::SbeSerial),
        ("quark.serial", MessageEncoding::SbeSerial),
        ("quark.random", MessageEncoding::SbeRandom),
        ("Xbuf2.Serial", MessageEncoding::ProtobufSerial),
        ("xbuf2.random", MessageEncoding::ProtobufRandom),
        ("protobuf.random", MessageEncoding::ProtobufRandom),
    ] {
        assert_eq!(text.parse(), Ok(encoding));
    }
    let error = parse(&["-l", "json"]).unwrap_err();
    assert!(error.contains("sbe.serial") && error.contains("json"), "{error}");
    assert_eq!(MessageEncoding::SbeSerial.access(), MessageAccess::Direct);
    assert_eq!(MessageEncoding::ProtobufRandom.access(), MessageAccess::Indirect);
}

#[test]
fn invalid_numbers_name_expected_value() {
    for line in [
        ["-c", "0"],
        ["-c", "-5"],
        ["--count", "1.5"],
        ["-c", ","],
        ["-c", "99999999999999999999"],
        ["-r", "0"],
        ["-r", "-1"],
        ["-t", "-1"],
        ["-t", "NaN"],
        ["-t", "inf"],
        ["-n", "0"],
        ["-i", "0"],
        ["-i", "-1"],
        ["-w", "0"],
        ["-w", "-8192"],
        ["--sessions", "0"],
        ["--repeat-percent", "101"],
        ["--repeat-percent", "-1"],
        ["--client-processes", "0"],
        ["-C", "0-1"],
        ["-C", "C5"],
        ["-C", "1-16385"],
        ["-C", "-1-2"],
        ["-j", "1"],
        ["-y", "[]"],
        ["-o", "[a]"],
        ["-x", "[99999]"],
        ["-I", "eth0"],
        ["--tier", "disk"],
        ["--mode", "fast"],
        ["--cpu", "7"],
    ] {
        let error = parse(&line).expect_err(&line.join(" "));
        assert!(
            error.contains("expected") || error.contains("possible values") || error.contains("invalid"),
            "{error}"
        );
        assert!(error.contains(line[1]), "the message names what was found: {error}");
    }
    assert!(parse(&["-C", "0-1"]).unwrap_err().contains("ROW-COL"));
    assert!(parse(&["-j", "1"]).unwrap_err().contains("[1] or [2,3]"));
}

#[test]
fn separators_and_no_warm_up_are_valid() {
    assert_eq!(single("-c 5,000,000 -t 0").count, 5_000_000);
    assert_eq!(single("-c 5_000_000 -t 0").warm_up_ns, 0);
}

#[test]
fn either_program_runs_on_one_node() {
    let runs = matrix("--program sr");
    assert_eq!(runs.len(), matrix("").len());
    for run in runs.iter().chain([&single("-c 10 --program sr"), &single("-c 10 -e --program sr")]) {
        assert!(run.program == ServiceKind::Sr && run.cluster.is_none());
    }
}

#[test]
fn what_is_of_a_cluster_needs_one() {
    let cluster = REFERENCE.iter().skip_while(|(published, ..)| *published != "--enableClustering").skip(1);
    let lines = cluster.map(|(published, _, _, value, _)| format!("{published} {}", value.unwrap_or_default()));
    let ours = ["--tier quorum", "--tier quorum-sync", "--backup-address h:1", "--replication-link tcp"];
    let ours = ours.map(str::to_owned);
    let mut count = 0;
    for line in lines.chain(ours) {
        let error = resolve(&line).expect_err(&line);
        assert!(error.starts_with("--") && error.ends_with("needs --enable-clustering"), "{line}: {error}");
        let needs_role = line.starts_with("--backup-address");
        let with_one = if needs_role { "-v --role primary" } else { "-v" };
        assert!(resolve(&format!("{with_one} {line}")).is_ok(), "{line}");
        count += 1;
    }
    assert_eq!(count, 12);
    for (line, what) in [
        ("-v --tier journal", "--tier journal is that of one node"),
        ("-v --client-processes 2", "--client-processes"),
        ("--role primary -I 10.0.0.1 --replication-link shared-memory", "--replication-link shared-memory"),
        ("-v --backup-address h:1", "--backup-address has no use with --enable-clustering on one machine"),
    ] {
        assert!(resolve(line).expect_err(line).starts_with(what), "{line}");
    }
}

#[test]
fn clustered_run_has_tier_and_matrix() {
    assert_eq!(single("-v -c 1").tier, RunTier::Quorum);
    assert!(single("-v -c 1").journal.is_some(), "what a quorum has is journaled");
    assert_eq!(single("-v -c 1 --tier quorum-sync").tier, RunTier::QuorumSync);
    let cluster = single("-c 1 --role primary -I 10.0.0.1 -U 10.0.0.1 -V [0] --backup-address host2").cluster.unwrap();
    assert_eq!((cluster.role, cluster.interface), (Some(HostRole::Primary), Some([10, 0, 0, 1].into())));
    assert_eq!((cluster.backup_address.as_deref(), cluster.backup_cpus), (Some("host2"), mask("[0]")));
    let link = |line| single(line).cluster.unwrap().link;
    assert_eq!(link("-v -c 1"), ReplicationLink::Tcp);
    assert_eq!(link("-v -c 1 --replication-link shared-memory"), ReplicationLink::SharedMemory);
    let matrix = resolve("-v --replication-link shared-memory").unwrap().plan;
    assert!(matrix.runs().iter().all(|run| run.cluster.as_ref().unwrap().link == ReplicationLink::SharedMemory));
    let matrix = resolve("-v").unwrap().plan;
    assert!(matrix.runs().len() > 4 && matrix.runs().iter().all(|run| run.tier == RunTier::Quorum));
    for program in [ServiceKind::Es, ServiceKind::Sr] {
        assert!(matrix.runs().iter().any(|run| run.program == program));
    }
    let all = resolve("-v --all").unwrap().plan;
    assert!(all.runs().iter().any(|run| run.tier == RunTier::QuorumSync));
    assert!(single("-c 1").cluster.is_none());
}

#[test]
fn useless_options_name_their_mode() {
    let refused = |line: &str, option: &str, mode: &str| {
        let error = resolve(line).expect_err(line);
        assert!(error.starts_with(option) && error.contains(mode), "{line}: {error}");
    };
    refused("-v -j [0] -y [1]", "--injector-cpu-mask [0] contradicts --service-cpu-mask [1]", "--enable-clustering");
    assert!(resolve("-v -j [0] -y [1] --cpu max").is_ok() && resolve("-v -j [1] -y [1]").is_ok());
    for line in [
        "-c 5",
        "-l sbe.serial",
        "-r 5",
        "-t 0",
        "-E",
        "-a",
        "-b",
        "-O x.xlsx",
        "-j [0]",
        "-y [0]",
        "-e",
        "-i 1",
        "-z",
        "-w 64",
        "-f",
        "-m",
        "-d",
        "-x [0]",
        "-u",
        "-n 5",
        "-o [0]",
        "-W",
        "-S",
        "-A [0]",
        "-D",
        "-B [0]",
        "-I 10.0.0.1",
        "--tier quorum",
        "--mode latency",
        "--program es",
        "--cpu min",
        "--all",
        "--quick",
        "--full",
        "--json x",
        "--hlog x",
        "--strict",
        "--sessions 5",
        "--repeat-percent 5",
        "--client-processes 2",
        "--replication-link tcp",
    ] {
        refused(&format!("--role backup {line}"), "--", "has no use with --role backup");
    }
    assert!(resolve("--role backup -v -k there -V [0] -U 10.0.0.1 --backup-address 0.0.0.0:4301").is_ok());
    refused("-b --client-processes 2", "--print-interval-stats", "--client-processes");
    for mode in ["", "--mode latency", "-v", "--program sr"] {
        refused(&format!("-O x.xlsx -C 1-1 -T {mode}"), "--output-throughput", "mode latency");
    }
    refused("-O x.xlsx -C 1-1 --mode throughput", "--output-cell", "mode throughput");
    assert!(resolve("-O x.xlsx -C 1-1 --mode throughput -r 5").is_ok());
}

#[test]
fn a_quick_matrix_has_the_same_rows() {
    for line in ["", "-v", "-v --all --tier quorum"] {
        let rows = |line: &str| {
            let of = |run: &RunSettings| {
                (run.program.name(), run.cpu.name(), run.mode.name(), run.encoding.name(), run.sessions)
            };
            matrix(line).iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(rows(&format!("{line} --quick")), rows(line));
    }
    assert!(matrix("-v --quick").iter().all(|run| run.count <= 10_000));
    assert_eq!(matrix("-v --all --tier quorum").len(), 3 * 2 * (4 + 1 + 3 + 4));
    assert_eq!(matrix("-v").len(), 4 + 1 + 3 + 4 + 2, "of state replication two rows");
    assert!(resolve("--quick -c 5").expect_err("a single run").contains("--quick runs a matrix"));
}

#[test]
fn full_matrix_has_the_published_counts() {
    let runs = matrix("-v --all --full --tier quorum");
    assert_eq!(runs.len(), matrix("-v --all --tier quorum").len());
    for run in runs.iter().filter(|run| run.is_usual()) {
        let expected = match run.mode {
            RunMode::Latency => (600_000, 10_000_000_000),
            RunMode::Throughput => (5_000_000, 2_000_000_000),
        };
        assert_eq!((run.count, run.warm_up_ns), expected);
    }
    assert!(resolve("--full --quick").expect_err("both").contains("--full contradicts --quick"));
    assert!(resolve("--full -c 5").expect_err("a single run").contains("--full runs a matrix"));
}

#[test]
fn published_cluster_rates_are_rows() {
    let of = |run: &RunSettings| (run.encoding, run.rate_per_s);
    let rows: Vec<_> = matrix("-v --program es").iter().map(of).collect();
    for per_s in [10_000, 50_000, 100_000, 200_000] {
        assert!(rows.contains(&(MessageEncoding::ProtobufSerial, Some(per_s))), "{per_s}: {rows:?}");
    }
    let published = single("-v -e --mode latency");
    assert_eq!(of(&published), (MessageEncoding::ProtobufSerial, Some(100_000)));
}

#[test]
fn threads_of_a_cluster_are_settings() {
    let threads = |line: &str| single(line).cluster.unwrap().threads;
    assert_eq!(threads("-v -c 1"), ReplicationThreads::default());
    let all = threads("-v -W -S -A [0] -D -B [1]");
    assert!(all.spins && all.detached_send && all.detached_dispatch);
    assert_eq!((all.sender, all.dispatcher), (mask("[0]"), mask("[1]")));
    assert_eq!(threads("-v --cpu max -B [1]").dispatcher, mask("[1]"), "max dispatches on a thread of its own");
    let run = single("-v -u -n 64 -o [1] -f");
    assert_eq!((run.detached_send_queue_depth, run.affinity.sender.clone()), (Some(64), mask("[1]")));
    assert!(run.journal.unwrap().flush_on_commit && !run.cluster.unwrap().is_one_thread);
    assert_eq!(single("-v -x [1] --tier quorum-sync").affinity.persister, mask("[1]"));
}

#[test]
fn useless_cluster_options_warn() {
    for (line, option) in [
        ("-v -d", "--detached-persister"),
        ("-v -x [1]", "--persister-cpu-mask"),
        ("-v -n 5", "--detached-send-queue-depth"),
        ("-v -o [1]", "--detached-send-cpu-mask"),
        ("-v -A [1]", "--replication-sender-cpu-mask"),
        ("-v -B [1]", "--replication-dispatcher-cpu-mask"),
        ("-v -S --replication-link shared-memory", "--replication-detached-send"),
        ("-v -c 1 -U 10.0.0.1", "--discovery-interface"),
    ] {
        let warnings = resolve(line).unwrap().warnings;
        let is_told = warnings
            .iter()
            .any(|warning| warning.starts_with(&format!("no effect with --enable-clustering: {option}")));
        assert!(is_told, "{line}: {warnings:?}");
    }
    for line in
        ["-v -W", "-v -S -A [1]", "-v -D -B [1]", "-v -u -n 5 -o [1]", "-v -f", "-v -d -x [1] --tier quorum-sync"]
    {
        assert_eq!(resolve(line).unwrap().warnings, Vec::<String>::new(), "{line}");
    }
}

#[test]
fn tier_must_match_persistence() {
    assert_eq!(single("-c 1").tier, RunTier::Memory);
    assert!(single("-c 1").journal.is_none());
    assert_eq!(single("-c 1 -e").tier, RunTier::Journal);
    assert_eq!(single("-c 1 --tier journal").tier, RunTier::Journal);
    assert_eq!(single("-c 1 --tier sync").tier, RunTier::Sync);
    assert_eq!(single("-e --tier sync").tier, RunTier::Sync);
    assert!(single("-k logs --tier sync").journal.is_some());
    for option in ["-e", "-k logs", "-i 1", "-z", "-w 1", "-f", "-m", "-d", "-x [0]"] {
        let error = resolve(&format!("{option} --tier memory")).expect_err(option);
        assert!(error.contains("contradicts --tier memory"), "{error}");
    }
}

#[test]
fn an_option_without_effect_is_refused() {
    for (line, option, needed) in [
        ("-f -k logs", "--log-location", "add --enable-persistence"),
        ("-z", "--zero-out-initial", "add --enable-persistence"),
        ("-n 5", "--detached-send-queue-depth", "without --detached-send"),
        ("-o [0]", "--detached-send-cpu-mask", "without --detached-send or --cpu max"),
        ("-e -x [0]", "--persister-cpu-mask", "without --detached-persister or --cpu max"),
    ] {
        let error = resolve(line).expect_err(line);
        assert!(error.starts_with(option) && error.contains(needed), "{error}");
    }
    assert!(resolve("-e -x [0] -o [1] --cpu max").unwrap().warnings.is_empty());
    assert!(resolve("-e -f -k logs -u -n 5").unwrap().warnings.is_empty());
}

#[test]
fn missing_cpu_warns_and_pins_nothing() {
    let options = resolve("-j [1] -y [0,9]").unwrap();
    assert_eq!(options.warnings, ["--service-cpu-mask [0,9]: CPU 9 is not there; the thread is not pinned"]);
    let affinity = &options.plan.runs()[0].affinity;
    assert_eq!((&affinity.injector, &affinity.service), (&mask("[1]"), &None));
    let lacks = "--replication-reader-cpu-mask [9]: CPU 9 is not there; the thread is not pinned";
    for (line, warnings, backup_cpus) in [
        ("-v -V [1]", &[][..], mask("[1]")),
        ("-v -V [9]", &[lacks][..], None),
        ("--role backup -V [9]", &[lacks][..], None),
        ("-v --role primary -V [9]", &[][..], mask("[9]")),
    ] {
        let options = resolve(line).unwrap();
        assert_eq!(options.warnings, warnings, "{line}");
        assert_eq!(options.plan.runs()[0].cluster.as_ref().unwrap().backup_cpus, backup_cpus, "{line}");
    }
}

#[test]
fn masks_are_lists_in_brackets() {
    let cpus = |text: &str| text.parse::<CpuMask>().map(|mask| mask.cpus());
    assert_eq!(cpus("[3, 1,1]"), Ok(vec![1, 3]));
    assert_eq!(mask("[3,1]").unwrap().to_string(), "[1,3]");
    for bad in ["", "[", "[1", "1]", "[1;2]", "[-1]", "[1,]"] {
        assert!(cpus(bad).is_err(), "{bad}");
    }
}

#[test]
fn throughput_has_no_default_rate() {
    assert_eq!(single("-c 5 --mode throughput").rate_per_s, None);
    assert_eq!(single("-c 5 --mode throughput -r 7").rate_per_s, Some(7));
}

#[test]
fn outputs_and_their_contradictions() {
    let hlog = |line: &str| resolve(line).unwrap().output.hlog.map(|hlog| (hlog.path, hlog.named));
    assert_eq!(hlog("-c 1"), Some((PathBuf::from("canonical.hlog"), false)));
    assert_eq!(hlog("-c 1 -a"), None);
    assert_eq!(hlog("--json src/out.json"), Some((PathBuf::from("src/out.hlog"), false)));
    assert_eq!(hlog("--json -"), None);
    assert_eq!(hlog("--json run.hlog"), None);
    assert_eq!(hlog("--hlog x.hlog --json -"), Some((PathBuf::from("x.hlog"), true)));
    assert!(resolve("--json -").unwrap().output.json_on_stdout());

    let workbook = resolve("-O x.xlsx -C 2-3 -T --mode throughput").unwrap().output.workbook.unwrap();
    assert_eq!((workbook.cell, workbook.figure), (CellAddress::new(2, 3), SheetFigure::Throughput));
    let workbook = resolve("-O x.xlsx").unwrap().output.workbook.unwrap();
    assert_eq!((workbook.cell, workbook.figure), (None, SheetFigure::LatencyP50));

    for (line, expected) in [
        ("-C 1-1", "need --output-file"),
        ("-T", "need --output-file"),
        ("-a --hlog x", "leave one out"),
        ("--json x --hlog x", "the same file"),
        ("--all -c 5", "cannot be combined"),
    ] {
        let error = resolve(line).expect_err(line);
        assert!(error.contains(expected), "{error}");
    }
}
