//! A process that writes over everything that it shares and may write spoils calls of the routes that it serves, and nothing else.

use super::copy_process::{Ask, Told, start};
use gapless_rpc::{CallOptions, Domain, DomainOptions};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use std::io::Write;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!()).with_choices("another_route_does_not_notice", another_route_does_not_notice)
}

fn another_route_does_not_notice(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let domain = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let mut mad = start(&path, 2, &["mad"]);
    let _sane = start(&path, 2, &["sane"]);
    let mut orders = mad.input();
    let spoiled = domain.caller::<Ask, Told>("mad").unwrap();
    let sound = domain.caller::<Ask, Told>("sane").unwrap();
    let short = CallOptions { timeout: Some(Duration::from_millis(20)), ..CallOptions::default() };
    let (mut replies, mut others) = (0, 0);
    for round in 0..300 {
        writeln!(orders, "scribble {}", random.below(u64::MAX)).unwrap();
        let pending: Vec<_> = (0..4).map(|number| spoiled.start_with(Ask::Increment(number), &short)).collect();
        for number in 0..10 {
            assert_eq!(sound.call(Ask::Increment(number)), Ok(Told::Number(number + 1)), "in round {round}");
        }
        // Whatever comes of these, it comes, and this process goes on.
        for call in pending {
            match call.wait() {
                Ok(_) => replies += 1,
                Err(_) => others += 1,
            }
        }
        // It may have killed itself.
        if mad.ended().is_some() {
            mad = start(&path, 2, &["mad"]);
            orders = mad.input();
        }
    }
    println!("{replies} replies, {others} other outcomes of the route that was scribbled over");
    mad.kill();
    assert_eq!(sound.call(Ask::Increment(1)), Ok(Told::Number(2)));
}
