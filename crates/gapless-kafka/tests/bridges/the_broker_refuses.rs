use crate::machines::{ALL, BridgePlan, BridgeProcess, TestMachine, Work};
use gapless_kafka::client::{BrokerConnection, Compression, TopicSpec, Topics};
use gapless_rpc::{CallError, Retry};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use std::time::Duration;

pub fn module() -> Module {
    let module = Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("topics_are_refused", topics_are_refused)
        .scenario("passwords_are_refused", passwords_are_refused);
    #[cfg(feature = "tls-tests")]
    let module = module.scenario("certificates_are_refused", certificates_are_refused);
    module
}

const PASSWORD: &str = "secret-of-bridges";
const WRONG: &str = "secret-of-others";

fn users<'a>(users: &[&'a str], rules: &[&'a str]) -> Vec<&'a str> {
    let each = |name: &'static str| move |value: &&'a str| [name, *value];
    users.iter().flat_map(each("--sasl")).chain(rules.iter().flat_map(each("--allow"))).collect()
}

fn start(machine: &TestMachine, user: &str, password: &str, plan: BridgePlan<'_>) -> BridgeProcess {
    let more = format!(
        "[kafka.properties]\n\"security.protocol\" = \"SASL_PLAINTEXT\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"{user}\"\n[kafka.secrets]\n\
         \"sasl.password\" = {{ environment = \"TEST_PASSWORD\" }}\n"
    );
    let environment = vec![("TEST_PASSWORD".to_owned(), password.to_owned())];
    machine.start(&BridgePlan { more, environment, ..plan })
}

#[track_caller]
fn until_alone(here: &TestMachine, there: &TestMachine) {
    until("the route is gone", || matches!(here.call(Work::Name), Err(CallError::NoRoute { .. })));
    assert_eq!(there.call(Work::Name).unwrap(), b"one");
}

fn topics_are_refused() {
    let names = ["root", "here", "there", "without_presence", "without_inbox"];
    let known: Vec<String> = names.iter().map(|name| format!("{name}:{PASSWORD}")).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let arguments = users(
        &known,
        &[
            "there:READ:test.",
            "there:WRITE:test.",
            "there:DESCRIBE_CONFIGS:test.",
            "here:READ:test.presence",
            "here:WRITE:test.presence",
            "here:DESCRIBE_CONFIGS:test.presence",
            "here:READ:test.inbox.here",
            "here:WRITE:test.inbox.here",
            "here:DESCRIBE_CONFIGS:test.inbox.here",
            "without_presence:READ:test.inbox.without_presence",
            "without_presence:WRITE:test.inbox.without_presence",
            "without_inbox:READ:test.presence",
            "without_inbox:WRITE:test.presence",
            "without_inbox:DESCRIBE_CONFIGS:test.presence",
            "without_inbox:WRITE:test.inbox.without_inbox",
            "without_inbox:DESCRIBE_CONFIGS:test.inbox.without_inbox",
        ],
    );
    let Some(broker) = KafkaBroker::start(&[&["--acl"][..], &arguments].concat()) else { return };
    let root = BrokerConnection::new(&broker.address(), "gapless-test")
        .with("security.protocol", "SASL_PLAINTEXT")
        .with("sasl.mechanism", "PLAIN")
        .with("sasl.username", "root")
        .with("sasl.password", PASSWORD);
    let topics = Topics::connect(&root, PATIENCE).unwrap();
    topics.ensure(&TopicSpec::compacted("test.presence"), PATIENCE).unwrap();
    for name in &names[1..] {
        let inbox = TopicSpec::inbox(&format!("test.inbox.{name}"), Duration::from_secs(3_600), Compression::None);
        topics.ensure(&inbox, PATIENCE).unwrap();
    }
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _one = there.instance("one");
    let plan = |machine: &TestMachine, offer, take| machine.plan(broker.address(), offer, take);
    let _other = start(&there, "there", PASSWORD, plan(&there, ALL, ""));

    let refused = BridgePlan { name: "without_presence", ..plan(&there, ALL, "") };
    let words = start(&there, "without_presence", PASSWORD, refused).until_failed();
    assert!(words.contains("test.presence") && words.contains("TopicAuthorizationFailed"), "{words}");

    let refused = BridgePlan { name: "without_inbox", ..plan(&there, ALL, "") };
    let without_inbox = start(&there, "without_inbox", PASSWORD, refused);
    let words = without_inbox.until_event("refused: ");
    assert!(words.contains("test.inbox.without_inbox") && words.contains("TopicAuthorizationFailed"), "{words}");
    without_inbox.until_event("not_serving: ");

    let bridge = start(&here, "here", PASSWORD, plan(&here, "", ALL));
    bridge.until_event("serving: ");
    let mut last = None;
    until("the call is refused", || {
        last = here.call_with(Work::Name, |options| options.retry = Retry::Never).err();
        matches!(last, Some(CallError::NotBegun { .. }))
    });
    let words = last.map(|error| error.to_string()).unwrap_or_default();
    assert!(words.contains("test.inbox.there") && words.contains("TopicAuthorizationFailed"), "{words}");
    let words = bridge.until_event("refused: ");
    assert!(words.contains("test.inbox.there") && words.contains("TopicAuthorizationFailed"), "{words}");
    assert_eq!(there.call(Work::Name).unwrap(), b"one");

    broker.allow(&["here:WRITE:test.inbox.there", "without_inbox:READ:test.inbox.without_inbox"]);
    without_inbox.until_event("serving: serving");
    here.until_answered_by("one");
}

fn passwords_are_refused() {
    let known = [format!("root:{PASSWORD}"), format!("app:{PASSWORD}")];
    let other = [format!("root:{PASSWORD}"), format!("app:{WRONG}")];
    let with = |users: &[String; 2]| ["--sasl".to_owned(), users[0].clone(), "--sasl".to_owned(), users[1].clone()];
    let (known, other) = (with(&known), with(&other));
    let [known, other] = [&known, &other].map(|arguments| arguments.each_ref().map(String::as_str));
    let Some(mut broker) = KafkaBroker::start(&known) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _one = there.instance("one");
    let plan = |machine: &TestMachine, offer, take| machine.plan(broker.address(), offer, take);
    let words = start(&there, "app", WRONG, plan(&there, ALL, "")).until_failed();
    assert!(words.contains("Authentication") && !words.contains(WRONG), "{words}");
    assert_eq!(there.call(Work::Name).unwrap(), b"one");

    let bridges =
        [start(&here, "app", PASSWORD, plan(&here, "", ALL)), start(&there, "app", PASSWORD, plan(&there, ALL, ""))];
    here.until_answered_by("one");
    broker.restart_with(&other);
    for bridge in &bridges {
        let words = bridge.until_event("refused: ");
        assert!(words.contains("Authentication") && !words.contains(PASSWORD), "{words}");
    }
    until_alone(&here, &there);
    broker.restart_with(&known);
    here.until_answered_by("one");
}

#[cfg(feature = "tls-tests")]
fn certificates_are_refused() {
    let (host, folder) = (gapless_testkit::ports::own_loopback(), tempfile::tempdir().unwrap());
    let tls = folder.path().to_str().expect("the folder has a plain name");
    let authority = gapless_testkit::kafka_broker::CertificateAuthority::new(folder.path());
    authority.certify(folder.path(), host, 2001);
    let Some(mut broker) = KafkaBroker::start_at(host, None, &["--tls", tls]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _one = there.instance("one");
    let start = |machine: &TestMachine, offer, take| {
        let more = format!(
            "[kafka.properties]\n\"security.protocol\" = \"SSL\"\n\"ssl.ca.location\" = {:?}\n",
            folder.path().join("ca.pem").display().to_string()
        );
        machine.start(&BridgePlan { more, ..machine.plan(format!("{host}:9092"), offer, take) })
    };
    let words = start(&there, ALL, "").until_failed();
    assert!(words.contains("certificate verify failed") && words.contains("expired"), "{words}");
    assert_eq!(there.call(Work::Name).unwrap(), b"one");

    authority.certify(folder.path(), host, 4096);
    broker.restart();
    let bridges = [start(&here, "", ALL), start(&there, ALL, "")];
    here.until_answered_by("one");
    authority.certify(folder.path(), host, 2001);
    broker.restart();
    for bridge in &bridges {
        let words = bridge.until_event("refused: ");
        assert!(words.contains("certificate verify failed") && words.contains("expired"), "{words}");
    }
    until_alone(&here, &there);
    authority.certify(folder.path(), host, 4096);
    broker.restart();
    here.until_answered_by("one");
}
